# SPDX-License-Identifier: Apache-2.0
"""Both peers in one process: every byte arrives, and whatever goes wrong is not ready."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rank_setup import HEAD_BYTES, REQUEST, Ranks, cache_of, make_ranks, whole_cache

from kvreshard.runtime.consumer import ConsumerPeer
from kvreshard.runtime.errors import (
    HandshakeRefusedError,
    HypothesisError,
    ReceiptError,
    RequestError,
    TransferError,
)
from kvreshard.runtime.local import introduce, transfer
from kvreshard.runtime.messages import Abort, Accepted, ConsumerKey, Pull, Receipt, Refused
from kvreshard.runtime.peers import Cache
from kvreshard.runtime.producer import ProducerPeer
from kvreshard.runtime.receipts import RequestState
from kvreshard.runtime.regions import region_from_tensor
from kvreshard.runtime.transport.in_process import Fabric, InProcessTransport

if TYPE_CHECKING:
    from kvreshard.runtime.descriptors import Descriptors

DESTINATION = [4, 0, 2]
LAYERS = 2


def run(ranks: Ranks, blocks: list[int]) -> dict[int, RequestState]:
    states = {}
    for rank, consumer in ranks.consumers.items():
        introduce(consumer, ranks.producers)
        states[rank] = transfer(consumer, ranks.producers, REQUEST, blocks)
    return states


def assert_every_byte(ranks: Ranks, blocks: list[int]) -> None:
    for rank, tensors in ranks.destination.items():
        for actual, wanted in zip(tensors, ranks.wanted(rank), strict=True):
            expected = torch.zeros_like(actual)
            expected[blocks] = wanted
            assert torch.equal(actual, expected)


# Every byte arrives


@pytest.mark.parametrize(
    ("heads", "prefill", "decode"),
    [
        pytest.param(4, 8, 1, id="F1"),
        pytest.param(4, 1, 8, id="F2"),
        pytest.param(4, 2, 8, id="F2-two"),
        pytest.param(4, 4, 8, id="F2-four"),
        pytest.param(8, 8, 16, id="F6"),
        pytest.param(2, 4, 1, id="F11"),
        pytest.param(2, 1, 4, id="F12-F13"),
        pytest.param(6, 3, 2, id="F15"),
        pytest.param(8, 1, 4, id="F16"),
        pytest.param(4, 8, 2, id="F18"),
        pytest.param(4, 8, 16, id="F19"),
        pytest.param(12, 3, 4, id="non-divisible"),
        pytest.param(2, 4, 8, id="replicated-to-replicated"),
        pytest.param(1, 2, 3, id="one-head"),
    ],
)
@pytest.mark.parametrize("election", ["lowest", "spread"])
def test_the_public_faults_move_every_byte(
    heads: int, prefill: int, decode: int, election: str
) -> None:
    ranks = make_ranks(heads, prefill, decode, election=election)
    assert set(run(ranks, DESTINATION).values()) == {RequestState.READY}
    assert_every_byte(ranks, DESTINATION)
    for rank, consumer in ranks.consumers.items():
        expected = LAYERS * 3 * ranks.destination[rank][0].shape[1] * HEAD_BYTES
        assert consumer.account(REQUEST) == (expected, expected, expected)
        assert consumer.held_destination_blocks() == {}
    assert all(not producer.held_source_blocks() for producer in ranks.producers.values())


@given(st.data())
def test_any_legal_groups_move_every_byte(data: st.DataObject) -> None:
    heads = data.draw(st.integers(1, 12))
    sizes = [size for size in range(1, 13) if heads % size == 0 or size % heads == 0]
    prefill, decode = data.draw(st.sampled_from(sizes)), data.draw(st.sampled_from(sizes))
    divisible = prefill % decode == 0 or decode % prefill == 0
    elections = ["lowest", "spread", *(["paired"] if divisible else [])]
    ranks = make_ranks(
        heads,
        prefill,
        decode,
        election=data.draw(st.sampled_from(elections)),
        layers=1,
        compare_content=data.draw(st.booleans()),
    )
    blocks = data.draw(st.permutations(range(5)))[:3]
    assert set(run(ranks, blocks).values()) == {RequestState.READY}
    assert_every_byte(ranks, blocks)


def test_k_and_v_in_tensors_of_their_own() -> None:
    fabric = Fabric()
    source, destination = (torch.zeros(2, 3, heads, 2, 8) for heads in (1, 2))
    source.copy_(torch.arange(source.numel()).reshape(source.shape))

    def cache(tensor: torch.Tensor) -> Cache:
        return Cache(
            tuple(
                region_from_tensor(
                    tensor[side],
                    layer="layers.0",
                    component=name,
                    kind="attention",
                    axes="BHNC",
                    total_num_kv_heads=2,
                )
                for side, name in enumerate(["k", "v"])
            ),
            (tensor, tensor),
        )

    other = source + 1000
    producers = {
        rank: ProducerPeer(
            tp_size=2,
            tp_rank=rank,
            consumer_tp_size=1,
            cache=cache(tensor),
            transport=InProcessTransport(fabric),
            election="lowest",
        )
        for rank, tensor in enumerate([source, other])
    }
    consumer = ConsumerPeer(
        tp_size=1,
        tp_rank=0,
        producer_tp_size=2,
        cache=cache(destination),
        transport=InProcessTransport(fabric),
        election="lowest",
    )
    for producer in producers.values():
        producer.offer(REQUEST, [0, 1])
    introduce(consumer, producers)
    assert transfer(consumer, producers, REQUEST, [2, 0]) is RequestState.READY
    for side in range(2):
        for head, tensor in enumerate([source, other]):
            assert torch.equal(destination[side, [2, 0], head], tensor[side, :2, 0])
    assert destination[:, 1].abs().sum() == 0


# Who waits for whom


def test_peers_agree_on_their_numbers() -> None:
    ranks = make_ranks(6, 3, 2)
    assert {rank: set(p.expected_receivers) for rank, p in ranks.producers.items()} == {
        0: {0},
        1: {0, 1},
        2: {1},
    }
    assert {rank: set(c.expected_senders) for rank, c in ranks.consumers.items()} == {
        0: {0, 1},
        1: {1, 2},
    }


def test_source_blocks_are_held_until_every_expected_receiver_is_served() -> None:
    ranks = make_ranks(6, 3, 2)
    shared = ranks.producers[1]
    for rank, held in [(0, {REQUEST: (0, 1, 2)}), (1, {})]:
        assert shared.held_source_blocks() == {REQUEST: (0, 1, 2)}
        introduce(ranks.consumers[rank], ranks.producers)
        transfer(ranks.consumers[rank], ranks.producers, REQUEST, [0, 1, 2])
        assert shared.held_source_blocks() == held
    with pytest.raises(RequestError, match="was offered before"):
        shared.offer(REQUEST, [0])
    shared.forget(REQUEST)
    shared.offer(REQUEST, [0])
    with pytest.raises(RequestError, match="still holds its source blocks"):
        shared.forget(REQUEST)


def test_a_replica_that_sends_nothing_holds_nothing() -> None:
    ranks = make_ranks(4, 8, 1)
    assert [bool(p.held_source_blocks()) for p in ranks.producers.values()] == [
        True,
        False,
    ] * 4


# Refused at the handshake


def changed_hello(ranks: Ranks, **changes: object) -> Accepted | Refused:
    hello = ranks.consumers[0].hello()
    return ranks.producers[0].meet(msgspec.structs.replace(hello, **changes))


def test_the_producer_refuses_with_a_reason_before_anything_is_sent() -> None:
    ranks = make_ranks(4, 8, 1)
    layout = ranks.consumers[0].layout
    token_major = tuple(
        msgspec.structs.replace(region, layout="LBNHC") for region in layout.regions
    )
    answers = [
        changed_hello(ranks, protocol=0),
        changed_hello(ranks, election="spread"),
        changed_hello(ranks, producer_tp_size=4),
        changed_hello(ranks, layout=msgspec.structs.replace(layout, tp_size=2)),
        changed_hello(ranks, layout=msgspec.structs.replace(layout, regions=token_major)),
        changed_hello(ranks, layout=msgspec.structs.replace(layout, regions=layout.regions[:1])),
        changed_hello(ranks, expected_senders=(0, 1)),
    ]
    assert all(isinstance(answer, Refused) for answer in answers)
    assert [answer.reason for answer in answers if isinstance(answer, Refused)] == [
        "protocol=0 there, 1 here; legal is equal",
        "election='spread' there, 'lowest' here; legal is equal",
        "producer_tp_size=4 there, 8 here; legal is equal",
        "consumer_tp_size=2 there, 1 here; legal is equal",
        (
            "layout_is_not_head_major: layer 'layers.0' component 'kv': layout='LBNHC'; legal is "
            "'LBHNC'"
        ),
        (
            "regions differ: only the producer has layers.1/kv, only the consumer has "
            "nothing; legal "
            "is the same layers and components"
        ),
        "expected_senders=[0, 1] there, [0, 2, 4, 6] here; legal is equal",
    ]
    pull = Pull(
        request_id=REQUEST,
        consumer=ranks.consumers[0].key,
        destination_blocks=(0, 1, 2),
        with_digests=False,
    )
    receipt = ranks.producers[0].serve(pull)
    assert receipt.failure == "consumer (0, 0) has not been accepted"
    assert ranks.destination[0][0].abs().sum() == 0


def test_the_consumer_hears_the_refusal() -> None:
    ranks = make_ranks(4, 8, 1)
    with pytest.raises(HandshakeRefusedError) as raised:
        ranks.consumers[0].answered(changed_hello(ranks, election="spread"))
    assert str(raised.value) == (
        "producer 0 refuses consumer 0: election='spread' there, 'lowest' here; legal is equal"
    )
    with pytest.raises(HandshakeRefusedError, match=r"producers \[0, 2, 4, 6\] have not accepted"):
        ranks.consumers[0].request(REQUEST, [0])


def test_the_consumer_refuses_too() -> None:
    ranks, others = make_ranks(4, 8, 1), make_ranks(4, 4, 1)
    with pytest.raises(HandshakeRefusedError) as raised:
        ranks.consumers[0].meet(others.producers[0].hello())
    assert str(raised.value) == (
        "consumer 0 refuses producer 0: producer_tp_size=4 there, 8 here; legal is equal"
    )


def test_a_session_is_accepted_once() -> None:
    ranks = make_ranks(4, 8, 1)
    introduce(ranks.consumers[0], ranks.producers)
    with pytest.raises(HandshakeRefusedError, match="was used before; legal is a new one"):
        introduce(ranks.consumers[0], ranks.producers)


def test_an_illegal_group_is_refused_before_anything_is_registered() -> None:
    tensors = whole_cache(4)
    transport = InProcessTransport(Fabric())
    with pytest.raises(ValueError, match="tp_size=3"):
        ConsumerPeer(
            tp_size=3,
            tp_rank=0,
            producer_tp_size=1,
            cache=cache_of(tensors, 4),
            transport=transport,
            election="lowest",
        )
    with pytest.raises(HypothesisError, match="rank_is_in_range"):
        ProducerPeer(
            tp_size=1,
            tp_rank=1,
            consumer_tp_size=1,
            cache=cache_of(tensors, 4),
            transport=transport,
            election="lowest",
        )
    # Nothing was: registering the same memory works.
    transport.register(tensors[0].data_ptr(), tensors[0].nbytes, tensors[0])


def test_an_election_that_is_not_defined_is_refused() -> None:
    with pytest.raises(ValueError, match="election"):
        make_ranks(6, 3, 2, election="paired")


# Requests that are wrong


def test_f21_fewer_producer_blocks_than_consumer_blocks() -> None:
    ranks = make_ranks(1, 1, 1)
    ranks.producers[0].offer("empty", [])
    introduce(ranks.consumers[0], ranks.producers)
    state = transfer(ranks.consumers[0], ranks.producers, "empty", [0, 1])
    assert state is RequestState.FAILED
    assert ranks.consumers[0].reason("empty") == (
        "producer 0: 0 producer blocks against 2 consumer blocks; legal is the same number"
    )
    assert ranks.destination[0][0].abs().sum() == 0
    assert ranks.consumers[0].held_destination_blocks() == {}
    assert transfer(ranks.consumers[0], ranks.producers, REQUEST, DESTINATION) is (
        RequestState.READY
    )


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "request 'request-a' has 0 blocks; legal is 1 or more"),
        ([1, 1], "destination block 1 appears twice; legal is once"),
        (
            [0, 5],
            "destination blocks 0 to 5 for layer 'layers.0' component 'kv'; legal is 0 to 4",
        ),
        (
            [-1],
            "destination blocks -1 to -1 for layer 'layers.0' component 'kv'; legal is 0 to 4",
        ),
    ],
)
def test_wrong_destination_blocks(blocks: list[int], message: str) -> None:
    ranks = make_ranks(4, 4, 1)
    introduce(ranks.consumers[0], ranks.producers)
    with pytest.raises(RequestError) as raised:
        ranks.consumers[0].request(REQUEST, blocks)
    assert str(raised.value) == message


def test_a_source_block_outside_the_region_fails_the_request_only() -> None:
    ranks = make_ranks(1, 1, 1)
    ranks.producers[0].offer("far", [99])
    introduce(ranks.consumers[0], ranks.producers)
    assert transfer(ranks.consumers[0], ranks.producers, "far", [0]) is RequestState.FAILED
    assert ranks.consumers[0].reason("far") == "producer 0: source block 99; legal is 0 to 2"


def test_a_request_id_is_used_once() -> None:
    ranks = make_ranks(1, 1, 1)
    consumer = ranks.consumers[0]
    introduce(consumer, ranks.producers)
    stray = ranks.producers[0].serve(consumer.request(REQUEST, [1, 2, 3])[0])
    with pytest.raises(RequestError, match="was used before"):
        consumer.request(REQUEST, [0])
    with pytest.raises(RequestError, match="still holds its destination blocks"):
        consumer.forget(REQUEST)
    consumer.receive(stray)
    consumer.forget(REQUEST)
    # Nor after it is forgotten: the same receipt would make the second request ready.
    with pytest.raises(RequestError, match="was used before; legal is a new id"):
        consumer.request(REQUEST, [1, 2, 3])
    with pytest.raises(ReceiptError, match="is not known here"):
        consumer.receive(stray)


def pull_of(ranks: Ranks, **changes: object) -> Pull:
    pull = Pull(
        request_id=REQUEST,
        consumer=ranks.consumers[0].key,
        destination_blocks=(0, 1, 2),
        with_digests=False,
    )
    return msgspec.structs.replace(pull, **changes)


def test_pulls_that_are_not_served() -> None:
    ranks = make_ranks(4, 8, 1)
    introduce(ranks.consumers[0], ranks.producers)
    ranks.producers[1].meet(ranks.consumers[0].hello())
    assert ranks.producers[0].serve(pull_of(ranks, request_id="?")).failure == (
        "request '?' is not offered here"
    )
    assert ranks.producers[1].serve(pull_of(ranks)).failure == (
        "consumer rank 0 gets nothing from producer 1; expected are []"
    )
    assert ranks.producers[0].serve(pull_of(ranks)).failure == ""
    assert ranks.producers[0].serve(pull_of(ranks)).failure == (
        "request 'request-a' was pulled or aborted by rank 0 before"
    )


def test_f23_a_request_belongs_to_one_dp_group() -> None:
    ranks = make_ranks(8, 4, 2)
    producer = ranks.producers[0]
    introduce(ranks.consumers[0], ranks.producers)
    hello = ranks.consumers[0].hello()
    other = msgspec.structs.replace(hello.layout, dp_rank=3, session="another")
    assert isinstance(producer.meet(msgspec.structs.replace(hello, layout=other)), Accepted)
    assert producer.serve(pull_of(ranks)).failure == ""
    assert producer.serve(pull_of(ranks, consumer=ConsumerKey(0, 3))).failure == (
        "request 'request-a' is read by dp_rank 0, not 3"
    )


# Receipts that are late, lost, repeated


def receipts(ranks: Ranks) -> list[Receipt]:
    introduce(ranks.consumers[0], ranks.producers)
    pulls = ranks.consumers[0].request(REQUEST, DESTINATION)
    return [ranks.producers[rank].serve(pull) for rank, pull in pulls.items()]


def test_a_lost_receipt_is_never_ready() -> None:
    ranks = make_ranks(4, 8, 1)
    consumer = ranks.consumers[0]
    for receipt in receipts(ranks)[:-1]:
        assert consumer.receive(receipt) is RequestState.WAITING
    consumer.fail(REQUEST, "not every producer reported")
    assert consumer.state(REQUEST) is RequestState.FAILED
    assert consumer.held_destination_blocks() == {REQUEST: tuple(DESTINATION)}


def test_a_late_receipt_frees_the_blocks_but_is_not_ready() -> None:
    ranks = make_ranks(4, 8, 1)
    consumer = ranks.consumers[0]
    *early, late = receipts(ranks)
    for receipt in early:
        consumer.receive(receipt)
    consumer.fail(REQUEST, "timeout")
    with pytest.raises(RequestError) as raised:
        consumer.request("next", [0])
    assert str(raised.value) == (
        "destination block 0 is held: a write of request 'request-a' may still land in it"
    )
    assert consumer.receive(late) is RequestState.FAILED
    assert consumer.held_destination_blocks() == {}
    assert consumer.request("next", [0])


def test_a_repeated_receipt_fails_the_request() -> None:
    ranks = make_ranks(4, 8, 1)
    consumer = ranks.consumers[0]
    first, *rest = receipts(ranks)
    consumer.receive(first)
    with pytest.raises(ReceiptError, match="a second receipt from producer 0"):
        consumer.receive(first)
    for receipt in rest:
        assert consumer.receive(receipt) is RequestState.FAILED


def test_a_repeated_receipt_after_ready_is_an_error() -> None:
    ranks = make_ranks(4, 8, 1)
    consumer = ranks.consumers[0]
    all_of_them = receipts(ranks)
    states = [consumer.receive(receipt) for receipt in all_of_them]
    assert states[-1] is RequestState.READY
    with pytest.raises(ReceiptError, match="a second receipt"):
        consumer.receive(all_of_them[0])


def test_a_receipt_with_less_than_planned_is_never_ready() -> None:
    ranks = make_ranks(4, 8, 1)
    consumer = ranks.consumers[0]
    *early, last = receipts(ranks)
    for receipt in early:
        consumer.receive(receipt)
    one_layer = msgspec.structs.replace(
        last, writes=last.writes[:1], bytes_sent=last.bytes_sent // LAYERS
    )
    with pytest.raises(ReceiptError) as raised:
        consumer.receive(one_layer)
    assert consumer.state(REQUEST) is RequestState.FAILED
    assert consumer.reason(REQUEST) == str(raised.value)
    assert str(raised.value) == (
        "request 'request-a': producer 6 layer 'layers.1' component 'kv': wrote nothing; its plan "
        "is bytes 192 to 256 of each block"
    )


def test_receipts_that_report_each_others_part_are_never_ready() -> None:
    ranks = make_ranks(2, 2, 1)
    consumer = ranks.consumers[0]
    one, other = receipts(ranks)
    for receipt, writes in ((one, other.writes), (other, one.writes)):
        with pytest.raises(ReceiptError, match="its plan is bytes"):
            consumer.receive(msgspec.structs.replace(receipt, writes=writes))
    assert consumer.state(REQUEST) is RequestState.FAILED


def test_a_receipt_for_an_unknown_request_is_an_error() -> None:
    ranks = make_ranks(4, 8, 1)
    (receipt, *_) = receipts(ranks)
    with pytest.raises(ReceiptError, match="request '\\?' is not known here"):
        ranks.consumers[0].receive(msgspec.structs.replace(receipt, request_id="?"))


# Abort


def test_f26_an_aborted_request_keeps_its_blocks_while_a_write_can_land() -> None:
    ranks = make_ranks(4, 8, 1)
    consumer = ranks.consumers[0]
    introduce(consumer, ranks.producers)
    pulls = consumer.request(REQUEST, DESTINATION)
    late = ranks.producers[0].serve(pulls[0])
    aborts = consumer.abort(REQUEST)
    assert sorted(aborts) == [0, 2, 4, 6]
    answers = {rank: ranks.producers[rank].abort(abort) for rank, abort in aborts.items()}
    assert answers.pop(0) is None, "its receipt is on its way"
    for answer in answers.values():
        assert answer is not None
        assert answer.failure == "aborted before it was sent"
        assert consumer.held_destination_blocks() == {REQUEST: tuple(DESTINATION)}
        consumer.receive(answer)
    with pytest.raises(RequestError, match="may still land in it"):
        consumer.request("next", [DESTINATION[0]])
    assert consumer.receive(late) is RequestState.ABORTED
    assert consumer.held_destination_blocks() == {}
    assert consumer.abort(REQUEST) == {}
    # The producers neither serve it any more nor hold its blocks.
    assert ranks.producers[2].serve(pulls[2]).failure == (
        "request 'request-a' was pulled or aborted by rank 0 before"
    )
    assert all(not producer.held_source_blocks() for producer in ranks.producers.values())


def test_an_abort_before_the_offer_stops_a_pull_that_is_served_later() -> None:
    ranks = make_ranks(1, 1, 1)
    producer, consumer = ranks.producers[0], ranks.consumers[0]
    introduce(consumer, ranks.producers)
    held_back = consumer.request("later", [0, 1])[0]
    answer = producer.abort(consumer.abort("later")[0])
    assert answer is not None
    consumer.receive(answer)
    assert consumer.held_destination_blocks() == {}, "these blocks are used for something else"
    producer.offer("later", [0, 1])
    assert producer.held_source_blocks() == {REQUEST: (0, 1, 2)}, "nobody else reads it"
    assert producer.serve(held_back).failure == (
        "request 'later' was pulled or aborted by rank 0 before"
    )
    assert not ranks.destination[0][0].any()


def test_an_early_abort_of_one_rank_does_not_stop_the_other() -> None:
    ranks = make_ranks(2, 1, 2)
    producer = ranks.producers[0]
    for consumer in ranks.consumers.values():
        introduce(consumer, ranks.producers)
    pulls = {rank: one.request("later", [0])[0] for rank, one in ranks.consumers.items()}
    producer.abort(ranks.consumers[0].abort("later")[0])
    producer.offer("later", [0])
    assert producer.held_source_blocks()["later"] == (0,)
    assert producer.serve(pulls[1]).failure == ""
    assert "later" not in producer.held_source_blocks()


def test_a_request_that_was_aborted_is_not_offered_again() -> None:
    ranks = make_ranks(1, 1, 1)
    producer, consumer = ranks.producers[0], ranks.consumers[0]
    introduce(consumer, ranks.producers)
    consumer.request(REQUEST, [0, 1, 2])
    producer.abort(consumer.abort(REQUEST)[0])
    producer.forget(REQUEST)
    with pytest.raises(RequestError, match="was offered before"):
        producer.offer(REQUEST, [0, 1, 2])


def test_a_request_that_failed_is_aborted_at_the_producers_that_have_not_reported() -> None:
    ranks = make_ranks(4, 8, 1)
    consumer = ranks.consumers[0]
    introduce(consumer, ranks.producers)
    pulls = consumer.request(REQUEST, DESTINATION)
    consumer.receive(ranks.producers[2].serve(pulls[2]))
    consumer.fail(REQUEST, "not every producer reported")
    aborts = consumer.abort(REQUEST)
    assert sorted(aborts) == [0, 4, 6]
    for rank, abort in aborts.items():
        assert consumer.held_destination_blocks() == {REQUEST: tuple(DESTINATION)}
        answer = ranks.producers[rank].abort(abort)
        assert answer is not None
        assert consumer.receive(answer) is RequestState.FAILED
    assert consumer.reason(REQUEST) == "not every producer reported"
    assert consumer.held_destination_blocks() == {}
    assert all(not producer.held_source_blocks() for producer in ranks.producers.values())


def test_an_abort_is_answered_once() -> None:
    ranks = make_ranks(1, 1, 1)
    consumer = ranks.consumers[0]
    introduce(consumer, ranks.producers)
    for request_id in (REQUEST, "not offered"):
        abort = Abort(request_id=request_id, consumer=consumer.key)
        assert ranks.producers[0].abort(abort) is not None
        assert ranks.producers[0].abort(abort) is None


def test_an_abort_from_a_stranger_frees_nothing() -> None:
    ranks = make_ranks(1, 1, 1)
    producer, consumer = ranks.producers[0], ranks.consumers[0]
    answer = producer.abort(Abort(request_id=REQUEST, consumer=ConsumerKey(0, 5)))
    assert answer is not None
    assert (answer.failure, answer.quiescent) == ("consumer (0, 5) has not been accepted", True)
    assert producer.held_source_blocks() == {REQUEST: (0, 1, 2)}
    introduce(consumer, ranks.producers)
    assert transfer(consumer, ranks.producers, REQUEST, DESTINATION) is RequestState.READY


def test_f23_an_abort_of_another_dp_group_frees_nothing() -> None:
    ranks = make_ranks(2, 1, 2)
    producer = ranks.producers[0]
    for rank, consumer in ranks.consumers.items():
        introduce(consumer, ranks.producers)
        hello = consumer.hello()
        layout = msgspec.structs.replace(hello.layout, dp_rank=3, session=f"another {rank}")
        producer.meet(msgspec.structs.replace(hello, layout=layout))
    assert producer.serve(pull_of(ranks)).failure == ""
    answer = producer.abort(Abort(request_id=REQUEST, consumer=ConsumerKey(1, 3)))
    assert answer is not None
    assert answer.failure == "request 'request-a' is read by dp_rank 0, not 3"
    assert producer.held_source_blocks() == {REQUEST: (0, 1, 2)}


# Transports that fail or lie


class FailingTransport(InProcessTransport):
    """Writes the first descriptor, then fails the way a real engine does."""

    def write(self, session_id: str, descriptors: Descriptors) -> None:
        first = type(descriptors)(*(column[:1] for column in descriptors))
        super().write(session_id, first)
        raise TransferError("returned -1", quiescent=False)


def test_a_failed_batch_holds_its_source_blocks_until_the_engine_is_gone() -> None:
    ranks = make_ranks(4, 8, 1, producer_transport=FailingTransport)
    consumer = ranks.consumers[0]
    assert run(ranks, DESTINATION) == {0: RequestState.FAILED}
    assert consumer.reason(REQUEST) == "producer 0: returned -1"
    assert consumer.held_destination_blocks() == {REQUEST: tuple(DESTINATION)}
    for rank in (0, 2, 4, 6):
        producer = ranks.producers[rank]
        assert producer.held_source_blocks() == {REQUEST: (0, 1, 2)}
        with pytest.raises(RequestError) as raised:
            producer.offer("next", [2])
        assert str(raised.value) == (
            "source block 2 is held: a failed write of request 'request-a' may still read it"
        )
        producer.close()
        assert producer.held_source_blocks() == {}
    # Bytes may wait in a socket: only the consumer's own engine knows when nothing lands.
    assert consumer.held_destination_blocks() == {REQUEST: tuple(DESTINATION)}
    consumer.close()
    assert consumer.held_destination_blocks() == {}


class ComplainingTransport(InProcessTransport):
    """Complains when closed: after it has stopped, or instead."""

    stops = True

    def close(self) -> None:
        if self.stops:
            super().close()
        raise TransferError("unregister returned -3", quiescent=self.stops)


@pytest.mark.parametrize("stops", [True, False])
def test_holds_end_with_the_transport_whatever_it_says(
    stops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ComplainingTransport, "stops", stops)
    ranks = make_ranks(1, 1, 1, producer_transport=ComplainingTransport)
    producer, consumer = ranks.producers[0], ranks.consumers[0]
    introduce(consumer, ranks.producers)
    consumer.request(REQUEST, DESTINATION)
    consumer._transport = producer._transport
    for peer in (producer, consumer):
        with pytest.raises(TransferError, match="unregister returned -3"):
            peer.close()
    assert bool(producer.held_source_blocks()) is not stops
    assert bool(consumer.held_destination_blocks()) is not stops


class RaisingTransport(InProcessTransport):
    """Fails in a way no transport should."""

    def write(self, session_id: str, descriptors: Descriptors) -> None:
        raise OSError(f"{session_id} {descriptors.rows}")


def test_any_exception_of_a_write_becomes_a_receipt() -> None:
    ranks = make_ranks(1, 1, 1, producer_transport=RaisingTransport)
    assert run(ranks, DESTINATION) == {0: RequestState.FAILED}
    session = ranks.consumers[0].layout.session
    assert ranks.consumers[0].reason(REQUEST) == f"producer 0: OSError: {session} 6"
    assert ranks.consumers[0].held_destination_blocks() == {REQUEST: tuple(DESTINATION)}
    # It is answered, so that nothing waits for it; its blocks are held since it is not quiet.
    assert ranks.producers[0].serve(pull_of(ranks)).failure.endswith("by rank 0 before")
    assert ranks.producers[0].held_source_blocks() == {REQUEST: (0, 1, 2)}
    with pytest.raises(RequestError, match="is held: a failed write"):
        ranks.producers[0].offer("next", [2])


class LyingTransport(InProcessTransport):
    """Reports success and writes each descriptor one head further, as into a recycled address."""

    def write(self, session_id: str, descriptors: Descriptors) -> None:
        assert session_id.startswith("in-process:")
        for source, destination, length in zip(
            *(column.tolist() for column in descriptors), strict=True
        ):
            ctypes.memmove(destination + HEAD_BYTES, source, length)


def test_a_transport_that_lies_is_caught_by_content_only() -> None:
    believed = make_ranks(4, 8, 1, producer_transport=LyingTransport)
    assert run(believed, [3, 1, 0]) == {0: RequestState.READY}
    checked = make_ranks(4, 8, 1, producer_transport=LyingTransport, compare_content=True)
    assert run(checked, [3, 1, 0]) == {0: RequestState.FAILED}
    assert checked.consumers[0].reason(REQUEST) == (
        "layer 'layers.0' component 'kv': head 0 of block 3 does not hold what producer 0 read"
    )


def test_a_transport_that_writes_nothing_is_caught_by_content() -> None:
    class Idle(InProcessTransport):
        def write(self, session_id: str, descriptors: Descriptors) -> None:
            assert session_id
            assert descriptors.rows

    ranks = make_ranks(6, 3, 2, producer_transport=Idle, compare_content=True)
    assert set(run(ranks, DESTINATION).values()) == {RequestState.FAILED}
