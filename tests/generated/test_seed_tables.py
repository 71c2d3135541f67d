# SPDX-License-Identifier: Apache-2.0
"""The tables the project started from: 4 heads of 65,536 bytes, in byte offsets.

None stands for a producer rank that does not send.
"""

from __future__ import annotations

import pytest

from kvreshard.generated.planner import compute_sender_transfer_plan, validate_region_lengths

HEADS = 4
HEAD = 65_536


def block_length(size: int) -> int:
    return max(HEADS // size, 1) * HEAD


def sent(producers: int, producer: int, consumers: int, consumer: int) -> tuple[int, int] | None:
    """Return the source and destination offset of the one head that is sent, or None."""
    sends, source, destination, length = compute_sender_transfer_plan(
        producer,
        producers,
        consumer,
        consumers,
        block_length(producers),
        block_length(consumers),
        producers > HEADS,
        HEADS,
    )
    if not sends:
        assert (source, destination, length) == (0, 0, 0)
        return None
    assert length == HEAD
    return source, destination


@pytest.mark.parametrize(
    ("consumers", "destinations"),
    [
        (1, [0, None, HEAD, None, 2 * HEAD, None, 3 * HEAD, None]),
        (2, [0, None, HEAD, None, 0, None, HEAD, None]),
    ],
)
def test_eight_producers_gather_one_replica_of_each_head(
    consumers: int, destinations: list[int | None]
) -> None:
    plans = [sent(8, producer, consumers, producer * consumers // 8) for producer in range(8)]
    assert [None if plan is None else plan[1] for plan in plans] == destinations
    assert all(plan is None or plan[0] == 0 for plan in plans)


@pytest.mark.parametrize(
    ("producers", "sources"),
    [
        (1, [0, 0, HEAD, HEAD, 2 * HEAD, 2 * HEAD, 3 * HEAD, 3 * HEAD]),
        (2, [0, 0, HEAD, HEAD, 0, 0, HEAD, HEAD]),
        (4, [0, 0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_eight_consumers_each_read_their_head(producers: int, sources: list[int]) -> None:
    plans = [sent(producers, consumer * producers // 8, 8, consumer) for consumer in range(8)]
    assert plans == [(source, 0) for source in sources]


@pytest.mark.parametrize(
    ("heads", "producers", "consumers", "producer_bytes", "consumer_bytes"),
    [
        (8, 8, 16, HEAD, HEAD),
        (4, 2, 8, 2 * HEAD, HEAD),
        (4, 8, 1, HEAD, 4 * HEAD),
        (4, 8, 2, HEAD, 2 * HEAD),
        (4, 1, 8, 4 * HEAD, HEAD),
        (1, 2, 16, HEAD, HEAD),
        (8, 4, 2, 6, 12),
    ],
)
def test_lengths_across_the_replication_boundary_are_accepted(
    heads: int, producers: int, consumers: int, producer_bytes: int, consumer_bytes: int
) -> None:
    validate_region_lengths(
        total_num_kv_heads=heads,
        producer_tp_size=producers,
        consumer_tp_size=consumers,
        producer_region_bytes=producer_bytes,
        consumer_region_bytes=consumer_bytes,
    )


@pytest.mark.parametrize(
    ("heads", "producers", "consumers", "producer_bytes", "consumer_bytes"),
    [
        (8, 8, 16, 2 * HEAD, HEAD),  # the ratio of the TP sizes
        (4, 2, 8, 4 * HEAD, HEAD),  # the ratio of the TP sizes
        (4, 8, 1, HEAD, 8 * HEAD),  # the ratio of the TP sizes
        (8, 4, 2, 3, 6),  # 2 and 4 heads: the product fits, the bytes per head do not
        (4, 2, 8, 0, 0),
        (4, 2, 8, -2, -1),
        (4, 4, 4, HEAD, HEAD + 1),
    ],
)
def test_lengths_that_no_bytes_per_head_explain_are_refused(
    heads: int, producers: int, consumers: int, producer_bytes: int, consumer_bytes: int
) -> None:
    with pytest.raises(ValueError, match="do not match"):
        validate_region_lengths(
            total_num_kv_heads=heads,
            producer_tp_size=producers,
            consumer_tp_size=consumers,
            producer_region_bytes=producer_bytes,
            consumer_region_bytes=consumer_bytes,
        )
