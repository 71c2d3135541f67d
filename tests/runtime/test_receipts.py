# SPDX-License-Identifier: Apache-2.0
"""A request is ready only when its receipts cover every byte exactly once."""

from __future__ import annotations

import contextlib
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvreshard.runtime.errors import ReceiptError
from kvreshard.runtime.messages import ConsumerKey, Receipt, Write
from kvreshard.runtime.receipts import RequestReceipts, RequestState
from kvreshard.runtime.regions import Region

HEADS, PER_HEAD = 4, 64
BLOCKS = (5, 2, 9)
CONSUMER = ConsumerKey(tp_rank=0, dp_rank=1)


def region(layer: str) -> Region:
    return Region(
        layer=layer,
        component="kv",
        total_num_kv_heads=HEADS,
        layout="LBHNC",
        dtype="uint8",
        base_address=4096,
        length=16 * HEADS * PER_HEAD,
        num_blocks=16,
        block_bytes=HEADS * PER_HEAD,
        heads=HEADS,
        bytes_per_head=PER_HEAD,
        block_size=1,
        bytes_per_token=PER_HEAD,
    )


def request(plans: dict[int, tuple[Write, ...]], layers: int = 2) -> RequestReceipts:
    """A request whose producers are to write these."""
    return RequestReceipts(
        request_id="r",
        consumer=CONSUMER,
        regions=[region(f"layers.{layer}") for layer in range(layers)],
        blocks=BLOCKS,
        plans={
            rank: {(one.layer, one.component): (one.offset, one.length) for one in writes}
            for rank, writes in plans.items()
        },
        with_digests=False,
    )


def write(layer: int, first: int, count: int) -> Write:
    return Write(
        layer=f"layers.{layer}",
        component="kv",
        offset=first * PER_HEAD,
        length=count * PER_HEAD,
        digests=b"",
    )


def receipt(producer: int, *writes: Write, **changes: object) -> Receipt:
    fields: dict[str, object] = {
        "request_id": "r",
        "consumer": CONSUMER,
        "producer_rank": producer,
        "failure": "",
        "quiescent": True,
        "destination_blocks": BLOCKS,
        "writes": writes,
        "bytes_sent": len(BLOCKS) * sum(one.length for one in writes),
    }
    return msgspec.convert(fields | changes, Receipt)


def both(first: int, count: int) -> tuple[Write, Write]:
    return write(0, first, count), write(1, first, count)


def test_receipts_that_meet_cover_the_request() -> None:
    held = request({0: both(0, 1), 2: both(1, 3)})
    held.add(receipt(2, *both(1, 3)))
    assert held.gap() != ""
    held.add(receipt(0, *both(0, 1)))
    assert held.is_covered
    assert held.account == (1536, 1536, 1536)
    assert held.gap() == ""


def test_a_plan_that_leaves_a_gap_is_never_ready() -> None:
    held = request({0: both(0, 3)})
    held.add(receipt(0, *both(0, 3)))
    assert held.account.planned == held.account.sent
    assert not held.is_covered


@pytest.mark.parametrize(
    ("writes", "message"),
    [
        (
            both(1, 3),
            "wrote bytes 64 to 256 of each block; its plan is bytes 0 to 64 of each block",
        ),
        ((write(1, 0, 1),), "wrote nothing; its plan is bytes 0 to 64 of each block"),
    ],
)
def test_a_receipt_of_another_plan_fails_the_request(
    writes: tuple[Write, ...], message: str
) -> None:
    held = request({0: both(0, 1), 2: both(1, 3)})
    text = f"request 'r': producer 0 layer 'layers.0' component 'kv': {message}"
    with pytest.raises(ReceiptError) as raised:
        held.add(receipt(0, *writes))
    assert str(raised.value) == text
    assert held.state is RequestState.FAILED
    assert held.reason == text


def test_a_part_of_a_region_twice_is_refused() -> None:
    held = request({0: both(0, 4)})
    with pytest.raises(ReceiptError, match="producer 0 reports a region twice"):
        held.add(receipt(0, write(0, 0, 2), write(0, 2, 2), write(1, 0, 4)))


def test_a_lost_receipt_leaves_the_request_waiting() -> None:
    held = request({0: both(0, 4), 2: ()})
    held.add(receipt(0, *both(0, 4)))
    assert held.state is RequestState.WAITING
    assert not held.is_covered
    assert held.holds_blocks


def test_a_gap_is_named() -> None:
    held = request({0: both(0, 1), 2: (write(0, 1, 3), write(1, 2, 2))})
    held.add(receipt(0, *both(0, 1)))
    held.add(receipt(2, write(0, 1, 3), write(1, 2, 2)))
    assert not held.is_covered
    assert held.gap() == (
        "layer 'layers.1' component 'kv': bytes from 64 of each block of 256 were not written"
    )


def test_a_gap_at_the_end_is_named() -> None:
    held = request({0: both(0, 3)})
    held.add(receipt(0, *both(0, 3)))
    assert held.gap() == (
        "layer 'layers.0' component 'kv': bytes from 192 of each block of 256 were not written"
    )


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            receipt(0, *both(0, 2)),
            receipt(2, *both(1, 3)),
            (
                "request 'r': layer 'layers.0' component 'kv': producers 0 and 2 both wrote byte "
                "64 of "
                "each block"
            ),
        ),
        (
            receipt(0, *both(0, 2)),
            receipt(0, *both(2, 2)),
            "request 'r': a second receipt from producer 0; legal is one",
        ),
        (
            receipt(0, *both(0, 2)),
            receipt(1, *both(2, 2)),
            "request 'r': receipt from producer 1; expected are [0, 2]",
        ),
        (
            receipt(0, *both(0, 2)),
            receipt(2, *both(2, 2), destination_blocks=(5, 2)),
            "request 'r': producer 2 wrote blocks [5, 2]; asked for were [5, 2, 9]",
        ),
        (
            receipt(0, *both(0, 2)),
            receipt(2, *both(2, 2), bytes_sent=1),
            "request 'r': producer 2 sent 1 bytes and reports intervals of 768",
        ),
        (
            receipt(0, *both(0, 2)),
            receipt(2, write(0, 2, 2), write(7, 2, 2)),
            "request 'r': producer 2 layer 'layers.7' component 'kv': no such region here",
        ),
        (
            receipt(0, *both(0, 2)),
            receipt(2, *both(2, 3)),
            (
                "request 'r': producer 2 layer 'layers.0' component 'kv': bytes 128 to 320; "
                "legal is "
                "whole heads of 64 bytes within a block of 256"
            ),
        ),
    ],
)
def test_a_contradiction_fails_the_request(first: Receipt, second: Receipt, message: str) -> None:
    held = request({0: first.writes, 2: second.writes})
    held.add(first)
    with pytest.raises(ReceiptError) as raised:
        held.add(second)
    assert str(raised.value) == message
    assert held.state is RequestState.FAILED
    assert held.reason == message


def test_half_a_head_is_refused() -> None:
    held = request({0: both(0, 4)})
    half = Write(layer="layers.0", component="kv", offset=0, length=32, digests=b"")
    with pytest.raises(ReceiptError, match="bytes 0 to 32; legal is whole heads"):
        held.add(receipt(0, half))


def test_digests_nobody_asked_for_are_refused() -> None:
    held = request({0: both(0, 4)})
    odd = Write(layer="layers.0", component="kv", offset=0, length=64, digests=b"x")
    with pytest.raises(ReceiptError, match="1 bytes of digests; expected 0 digests of 16"):
        held.add(receipt(0, odd))


@pytest.mark.parametrize(
    "changes",
    [
        {"request_id": "another"},
        {"consumer": ConsumerKey(tp_rank=1, dp_rank=1)},
        # F23: same tp_rank in another DP group.
        {"consumer": ConsumerKey(tp_rank=0, dp_rank=0)},
    ],
)
def test_f23_a_receipt_of_somebody_else_touches_nothing(changes: dict[str, object]) -> None:
    held = request({0: both(0, 4)})
    with pytest.raises(ReceiptError, match="came to request 'r' of consumer tp_rank 0 dp_rank 1"):
        held.add(receipt(0, *both(0, 4), **changes))
    assert held.state is RequestState.WAITING
    held.add(receipt(0, *both(0, 4)))
    assert held.is_covered


def test_a_failed_producer_fails_the_request() -> None:
    held = request({0: (), 2: both(0, 4)})
    held.add(receipt(0, failure="the engine returned -1", destination_blocks=()))
    assert held.state is RequestState.FAILED
    assert held.reason == "producer 0: the engine returned -1"
    assert held.holds_blocks, "producer 2 has not reported"
    held.add(receipt(2, *both(0, 4)))
    assert held.state is RequestState.FAILED
    assert not held.holds_blocks


def test_blocks_stay_held_after_a_failed_write_that_is_not_quiet() -> None:
    held = request({0: both(0, 4)})
    held.add(receipt(0, failure="-1", quiescent=False, destination_blocks=()))
    assert held.holds_blocks


def test_a_producer_that_is_done_is_quiet() -> None:
    held = request({0: both(0, 4)})
    with pytest.raises(ReceiptError, match="wrote everything and may still write"):
        held.add(receipt(0, *both(0, 4), quiescent=False))
    assert held.holds_blocks


@given(
    st.lists(st.integers(0, 2**4), min_size=0, max_size=5),
    st.lists(st.sampled_from(["keep", "drop", "shift", "repeat"]), min_size=20, max_size=20),
    st.randoms(use_true_random=False),
)
def test_covered_exactly_when_each_byte_is_written_once(
    cuts: list[int], fates: list[str], random: object
) -> None:
    """Cut a block's heads into intervals, damage some, and compare with counting bytes."""
    heads = 16
    edges = sorted({0, heads, *cuts})
    written: list[tuple[int, int]] = []
    for (start, end), fate in zip(pairwise(edges), fates, strict=False):
        if fate != "drop":
            shift = 1 if fate == "shift" and end < heads else 0
            written.append((start + shift, end + shift))
        if fate == "repeat":
            written.append((start, end))
    random.shuffle(written)  # type: ignore[attr-defined]
    counts = [sum(start <= head < end for start, end in written) for head in range(heads)]
    wide = msgspec.structs.replace(
        region("layers.0"), heads=heads, block_bytes=heads * PER_HEAD, length=16 * heads * PER_HEAD
    )
    held = RequestReceipts(
        request_id="r",
        consumer=CONSUMER,
        regions=[wide],
        blocks=BLOCKS,
        plans={
            producer: {("layers.0", "kv"): (start * PER_HEAD, (end - start) * PER_HEAD)}
            for producer, (start, end) in enumerate(written)
        },
        with_digests=False,
    )
    for producer, (start, end) in enumerate(written):
        with contextlib.suppress(ReceiptError):
            held.add(receipt(producer, write(0, start, end - start)))
    ready = held.is_covered and held.state is RequestState.WAITING
    assert ready == all(count == 1 for count in counts)
