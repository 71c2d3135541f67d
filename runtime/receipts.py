# SPDX-License-Identifier: Apache-2.0
"""Receipts of one consumer's requests: ready only when every byte is covered exactly once."""

from __future__ import annotations

import bisect
import enum
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kvreshard.runtime.digests import DIGEST_BYTES
from kvreshard.runtime.errors import ReceiptError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kvreshard.runtime.messages import ConsumerKey, Receipt, Write
    from kvreshard.runtime.regions import Region


class RequestState(enum.Enum):
    """Where a request stands. READY, FAILED and ABORTED are final."""

    WAITING = "waiting"
    READY = "ready"
    FAILED = "failed"
    ABORTED = "aborted"


#: What one producer is to write of each region it sends: (layer, component) to the offset and
#: length in bytes within a block. A region it does not send is not in it.
ProducerPlan = dict[tuple[str, str], tuple[int, int]]


class ByteAccount(NamedTuple):
    """Bytes of one request: what the plan moves, what was reported sent, what has to arrive."""

    planned: int
    sent: int
    expected: int


class RequestReceipts:
    """The receipts of one request at one consumer rank.

    Any contradiction makes the request fail and is raised: what a wrong receipt reports may have
    been written.
    """

    def __init__(
        self,
        *,
        request_id: str,
        consumer: ConsumerKey,
        regions: Iterable[Region],
        blocks: tuple[int, ...],
        plans: Mapping[int, ProducerPlan],
        with_digests: bool,
    ) -> None:
        """Expect one receipt of each producer in `plans`, of exactly what its plan says.

        Together they have to cover all blocks of all regions, whatever the plans say.
        """
        self.request_id = request_id
        self.consumer = consumer
        self.blocks = blocks
        self.producers = frozenset(plans)
        self.with_digests = with_digests
        self.state = RequestState.WAITING
        #: Why the request failed, or why all receipts together are not enough.
        self.reason = ""
        self.receipts: dict[int, Receipt] = {}
        #: Producers that may still write into this consumer's blocks. One that failed without
        #: being quiet stays: even when its engine is gone, bytes may wait in a socket buffer.
        self.may_still_write = set(plans)
        self._regions = {region.key: region for region in regions}
        #: Per region, sorted (offset, length, producer) within a block, in bytes.
        self._intervals: dict[tuple[str, str], list[tuple[int, int, int]]] = {
            key: [] for key in self._regions
        }
        self._plans = plans

    @property
    def account(self) -> ByteAccount:
        """Bytes planned, sent and expected so far."""
        return ByteAccount(
            planned=len(self.blocks)
            * sum(length for plan in self._plans.values() for _, length in plan.values()),
            sent=sum(receipt.bytes_sent for receipt in self.receipts.values()),
            expected=len(self.blocks) * sum(r.block_bytes for r in self._regions.values()),
        )

    @property
    def holds_blocks(self) -> bool:
        """Whether the destination blocks must not be used for anything else."""
        if self.state is RequestState.READY:
            return False
        return self.state is RequestState.WAITING or bool(self.may_still_write)

    @property
    def is_covered(self) -> bool:
        """Whether the receipts cover each byte exactly once and the accounts agree."""
        account = self.account
        return (
            self.receipts.keys() == self.producers
            and not self.gap()
            and account.planned == account.sent == account.expected
        )

    def add(self, receipt: Receipt) -> None:
        """Take one receipt in; the state may become FAILED, never READY (the peer decides that).

        Raises ReceiptError for a receipt of another consumer (the request is untouched), an
        unexpected or repeated producer, blocks that were not asked for, intervals that are not
        this producer's, an overlap.
        """
        if receipt.request_id != self.request_id or receipt.consumer != self.consumer:
            raise ReceiptError(
                f"receipt for request {receipt.request_id!r} of {_whom(receipt.consumer)} came to "
                f"request {self.request_id!r} of {_whom(self.consumer)}"
            )
        if receipt.producer_rank not in self.producers:
            raise self._contradiction(
                f"receipt from producer {receipt.producer_rank}; expected are "
                f"{sorted(self.producers)}"
            )
        if receipt.producer_rank in self.receipts:
            raise self._contradiction(
                f"a second receipt from producer {receipt.producer_rank}; legal is one"
            )
        self.receipts[receipt.producer_rank] = receipt
        if receipt.quiescent:
            self.may_still_write.discard(receipt.producer_rank)
        if receipt.failure:
            self.fail(f"producer {receipt.producer_rank}: {receipt.failure}")
            return
        self._check_receipt(receipt)
        for write in receipt.writes:
            self._take_interval(write, receipt.producer_rank)

    def fail(self, reason: str) -> None:
        """Mark failed, unless the request is final already. The first reason stays."""
        if self.state is RequestState.WAITING:
            self.state = RequestState.FAILED
            self.reason = reason

    def gap(self) -> str:
        """The first bytes nobody wrote, in words; empty when there are none."""
        for region in self._regions.values():
            offset = 0
            for start, length, _ in self._intervals[region.key]:
                if start > offset:
                    break
                offset = start + length
            if offset < region.block_bytes:
                return (
                    f"{region.label}: bytes from {offset} of each block of {region.block_bytes} "
                    "were not written"
                )
        return ""

    def _check_receipt(self, receipt: Receipt) -> None:
        rank = receipt.producer_rank
        if not receipt.quiescent:
            raise self._contradiction(f"producer {rank} wrote everything and may still write")
        if receipt.destination_blocks != self.blocks:
            raise self._contradiction(
                f"producer {rank} wrote blocks {list(receipt.destination_blocks)}; asked for were "
                f"{list(self.blocks)}"
            )
        for write in receipt.writes:
            self._check_write(rank, write)
        self._check_plan(rank, receipt.writes)
        reported = len(self.blocks) * sum(write.length for write in receipt.writes)
        if receipt.bytes_sent != reported:
            raise self._contradiction(
                f"producer {rank} sent {receipt.bytes_sent} bytes and reports intervals of "
                f"{reported}"
            )

    def _check_plan(self, rank: int, writes: tuple[Write, ...]) -> None:
        """Receipts that cover everything together may still each report another one's part."""
        plan = self._plans[rank]
        wrote = {(write.layer, write.component): (write.offset, write.length) for write in writes}
        if len(wrote) != len(writes):
            raise self._contradiction(f"producer {rank} reports a region twice; legal is once")
        for layer, component in sorted(plan.keys() | wrote.keys()):
            planned, reported = plan.get((layer, component)), wrote.get((layer, component))
            if planned != reported:
                raise self._contradiction(
                    f"producer {rank} layer {layer!r} component {component!r}: wrote "
                    f"{_interval(reported)}; its plan is {_interval(planned)}"
                )

    def _check_write(self, rank: int, write: Write) -> None:
        region = self._regions.get((write.layer, write.component))
        where = f"producer {rank} layer {write.layer!r} component {write.component!r}"
        if region is None:
            raise self._contradiction(f"{where}: no such region here")
        unit = region.bytes_per_head
        end = write.offset + write.length
        if not 0 <= write.offset < end <= region.block_bytes or write.offset % unit or end % unit:
            raise self._contradiction(
                f"{where}: bytes {write.offset} to {end}; legal is whole heads of {unit} bytes "
                f"within a block of {region.block_bytes}"
            )
        digests = len(self.blocks) * (write.length // unit) if self.with_digests else 0
        if len(write.digests) != digests * DIGEST_BYTES:
            raise self._contradiction(
                f"{where}: {len(write.digests)} bytes of digests; expected {digests} digests of "
                f"{DIGEST_BYTES}"
            )

    def _take_interval(self, write: Write, rank: int) -> None:
        # Every receipt covers the same blocks, so intervals within a block are enough.
        intervals = self._intervals[(write.layer, write.component)]
        bisect.insort(intervals, (write.offset, write.length, rank))
        for (start, length, one), (next_start, _, other) in pairwise(intervals):
            if start + length > next_start:
                raise self._contradiction(
                    f"layer {write.layer!r} component {write.component!r}: producers {one} and "
                    f"{other} both wrote byte {next_start} of each block"
                )

    def _contradiction(self, detail: str) -> ReceiptError:
        text = f"request {self.request_id!r}: {detail}"
        self.fail(text)
        return ReceiptError(text)


def wrong_digest(ours: bytes, theirs: bytes) -> int:
    """Index of the first digest that differs; -1 when all are equal."""
    mine = np.frombuffer(ours, dtype=np.uint8).reshape(-1, DIGEST_BYTES)
    sent = np.frombuffer(theirs, dtype=np.uint8).reshape(-1, DIGEST_BYTES)
    different = np.flatnonzero((mine != sent).any(axis=1))
    return int(different[0]) if len(different) else -1


def _interval(interval: tuple[int, int] | None) -> str:
    if interval is None:
        return "nothing"
    offset, length = interval
    return f"bytes {offset} to {offset + length} of each block"


def _whom(consumer: ConsumerKey) -> str:
    return f"consumer tp_rank {consumer.tp_rank} dp_rank {consumer.dp_rank}"
