# SPDX-License-Identifier: Apache-2.0
"""Messages over sockets: the order of a request, and peers that refuse, stall or go."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

import msgspec
import pytest
import zmq
from rank_setup import REQUEST, Ranks, make_ranks

from kvreshard.runtime.channel import ConsumerChannel, ProducerChannel
from kvreshard.runtime.errors import (
    HandshakeRefusedError,
    MessageError,
    PeerGoneError,
    RuntimeRefusalError,
)
from kvreshard.runtime.messages import (
    Abort,
    Accepted,
    ConsumerHello,
    ConsumerKey,
    Message,
    Pull,
    Receipt,
    Refused,
    Write,
    decode,
    encode,
)
from kvreshard.runtime.receipts import RequestState
from kvreshard.runtime.remote import RemoteProducers, serve_consumer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WAIT_S = 10.0
KEY = ConsumerKey(tp_rank=1, dp_rank=2)


@pytest.fixture
def channel() -> Iterator[ConsumerChannel]:
    with contextlib.closing(ConsumerChannel()) as made:
        yield made


@contextlib.contextmanager
def running(*targets: Callable[[], object]) -> Iterator[None]:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()


def producer(ranks: Ranks, rank: int, channel: ConsumerChannel) -> Callable[[], Message]:
    def serve() -> Message:
        with contextlib.closing(ProducerChannel(channel.endpoint)) as connected:
            return serve_consumer(ranks.producers[rank], connected, WAIT_S)

    return serve


# Messages


@pytest.mark.parametrize(
    "message",
    [
        make_ranks(4, 8, 1).producers[0].hello(),
        make_ranks(4, 8, 1).consumers[0].hello(),
        Accepted(producer_rank=3),
        Refused(tp_rank=3, reason="why"),
        Pull(request_id="r", consumer=KEY, destination_blocks=(1, 2), with_digests=True),
        Abort(request_id="r", consumer=KEY),
        Receipt(
            request_id="r",
            consumer=KEY,
            producer_rank=3,
            failure="",
            quiescent=True,
            destination_blocks=(1,),
            writes=(Write(layer="l", component="k", offset=0, length=2**40, digests=b"\0\1"),),
            bytes_sent=2**40,
        ),
    ],
    ids=lambda message: type(message).__name__,
)
def test_every_message_survives_the_wire(message: Message) -> None:
    assert decode(encode(message)) == message


def test_f25_addresses_survive_the_wire() -> None:
    hello = make_ranks(1, 1, 1).consumers[0].hello()
    data = encode(hello).replace(
        hello.layout.regions[0].base_address.to_bytes(8, "big"), (2**64 - 2).to_bytes(8, "big")
    )
    back = decode(data)
    assert isinstance(back, ConsumerHello)
    assert back.layout.regions[0].base_address == 2**64 - 2


@pytest.mark.parametrize(
    "data",
    [b"", b"\xc1", b"\x80", encode(Accepted(producer_rank=1)) + b"x", b"\x81\xa4type\xa1?"],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(MessageError, match="not a message of protocol 1"):
        decode(data)


# A request over sockets


def test_a_request_over_sockets(channel: ConsumerChannel) -> None:
    ranks = make_ranks(4, 8, 1, compare_content=True)
    consumer = ranks.consumers[0]
    producers = RemoteProducers(consumer, channel)
    with running(*(producer(ranks, rank, channel) for rank in (0, 2, 4, 6))):
        producers.introduce(WAIT_S)
        assert producers.transfer(REQUEST, [4, 0, 2], WAIT_S) is RequestState.READY
    assert producers.drain(0)
    for actual, wanted in zip(ranks.destination[0], ranks.wanted(0), strict=True):
        assert actual[[4, 0, 2]].equal(wanted)


def test_a_producer_that_never_comes(channel: ConsumerChannel) -> None:
    ranks = make_ranks(4, 8, 1)
    producers = RemoteProducers(ranks.consumers[0], channel)
    with (
        contextlib.closing(ProducerChannel(channel.endpoint)) as connected,
        running(lambda: shake_hands(ranks, connected)),
        pytest.raises(HandshakeRefusedError) as raised,
    ):
        producers.introduce(0.5)
    assert str(raised.value) == "producers [2, 4, 6] did not answer in 0.5 s"


def test_a_producer_that_never_answers_is_never_ready(channel: ConsumerChannel) -> None:
    ranks = make_ranks(1, 1, 1)
    producers = RemoteProducers(ranks.consumers[0], channel)
    with contextlib.closing(ProducerChannel(channel.endpoint)) as silent:
        with running(lambda: shake_hands(ranks, silent)):
            producers.introduce(WAIT_S)
        assert producers.transfer(REQUEST, [0, 1, 2], 0.3) is RequestState.FAILED
        assert ranks.consumers[0].reason(REQUEST) == "not every producer reported in 0.3 s"
        assert ranks.consumers[0].held_destination_blocks() == {REQUEST: (0, 1, 2)}
        assert not producers.drain(0.1)
        # It wakes up: the request stays failed, its blocks are free.
        pull = silent.receive(WAIT_S)
        assert isinstance(pull, Pull)
        silent.send(ranks.producers[0].serve(pull))
        assert producers.drain(WAIT_S)
    assert ranks.consumers[0].state(REQUEST) is RequestState.FAILED


def shake_hands(ranks: Ranks, channel: ProducerChannel) -> None:
    channel.send(ranks.producers[0].hello())
    hello = channel.receive(WAIT_S)
    assert isinstance(hello, ConsumerHello)
    channel.send(ranks.producers[0].meet(hello))


def test_a_producer_that_went_is_never_ready(channel: ConsumerChannel) -> None:
    ranks = make_ranks(1, 1, 1)
    producers = RemoteProducers(ranks.consumers[0], channel)
    with (
        contextlib.closing(ProducerChannel(channel.endpoint)) as going,
        running(lambda: shake_hands(ranks, going)),
    ):
        producers.introduce(WAIT_S)
    for _ in range(100):
        with contextlib.suppress(PeerGoneError):
            # Until the socket has noticed, a message is taken and lost.
            channel.send(producers._senders[0], Accepted(producer_rank=0))
            threading.Event().wait(0.02)
            continue
        break
    assert producers.transfer(REQUEST, [0], WAIT_S) is RequestState.FAILED
    assert "a producer's connection has ended" in ranks.consumers[0].reason(REQUEST)


def test_a_producer_that_went_leaves_no_block_held(
    channel: ConsumerChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = make_ranks(4, 8, 1)
    consumer = ranks.consumers[0]
    producers = RemoteProducers(consumer, channel)
    served: list[Message] = []
    gone: list[bytes] = []
    send = channel.send

    def send_unless_gone(sender: bytes, message: Message) -> None:
        if sender in gone:
            raise PeerGoneError("gone")
        send(sender, message)

    monkeypatch.setattr(channel, "send", send_unless_gone)
    with running(*(keep(producer(ranks, rank, channel), served) for rank in (0, 2, 4, 6))):
        producers.introduce(WAIT_S)
        gone.append(producers._senders[2])
        assert producers.transfer(REQUEST, [0, 1, 2], WAIT_S) is RequestState.FAILED
        assert producers.drain(WAIT_S), "ranks 0, 4 and 6 answer and rank 2 was never asked"
        assert consumer.reason(REQUEST) == "gone"
        # Let its thread end.
        send(gone[0], Abort(request_id=REQUEST, consumer=consumer.key))
    assert len(served) == 4
    assert all(not one.held_source_blocks() for one in ranks.producers.values())


def keep(serve: Callable[[], Message], into: list[Message]) -> Callable[[], None]:
    return lambda: into.append(serve())


def test_an_abort_over_sockets(channel: ConsumerChannel) -> None:
    ranks = make_ranks(1, 1, 1)
    consumer = ranks.consumers[0]
    producers = RemoteProducers(consumer, channel)
    with contextlib.closing(ProducerChannel(channel.endpoint)) as slow:
        with running(lambda: shake_hands(ranks, slow)):
            producers.introduce(WAIT_S)
        consumer.request(REQUEST, [0, 1, 2])
        producers.abort(REQUEST)
        assert not producers.drain(0.1)
        abort = slow.receive(WAIT_S)
        assert isinstance(abort, Abort)
        answer = ranks.producers[0].abort(abort)
        assert answer is not None
        slow.send(answer)
        assert producers.drain(WAIT_S)
    assert consumer.state(REQUEST) is RequestState.ABORTED


def test_strange_messages_disturb_no_request(
    channel: ConsumerChannel, caplog: pytest.LogCaptureFixture
) -> None:
    ranks = make_ranks(1, 1, 1)
    consumer = ranks.consumers[0]
    producers = RemoteProducers(consumer, channel)
    stray = Receipt(
        request_id="?",
        consumer=consumer.key,
        producer_rank=0,
        failure="",
        quiescent=True,
        destination_blocks=(),
        writes=(),
        bytes_sent=0,
    )
    with contextlib.closing(ProducerChannel(channel.endpoint)) as connected:
        with running(lambda: shake_hands(ranks, connected)):
            producers.introduce(WAIT_S)
        connected.send(stray)
        connected.send(make_ranks(1, 1, 1, election="spread").producers[0].hello())
        connected._socket.send(b"junk")
        connected.send(ranks.producers[0].serve(pull_for(ranks)))
        assert producers.transfer(REQUEST, [0, 1, 2], WAIT_S) is RequestState.READY
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "request '?' is not known here",
        "producer 0 was introduced before; legal is once",
        "not a message of protocol 1",
    ]


def test_a_newcomer_that_went_disturbs_no_request(
    channel: ConsumerChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = make_ranks(2, 2, 1)
    producers = RemoteProducers(ranks.consumers[0], channel)
    send = channel.send

    def newcomers_have_gone(sender: bytes, message: Message) -> None:
        if isinstance(message, (ConsumerHello, Refused)):
            raise PeerGoneError("gone")
        send(sender, message)

    with (
        contextlib.closing(ProducerChannel(channel.endpoint)) as newcomer,
        running(producer(ranks, 0, channel), producer(ranks, 1, channel)),
    ):
        producers.introduce(WAIT_S)
        senders = dict(producers._senders)
        monkeypatch.setattr(channel, "send", newcomers_have_gone)
        # One that may be met, one that is refused, one that takes a place that is taken.
        producers._accepted.discard(0)
        newcomer.send(ranks.producers[0].hello())
        newcomer.send(make_ranks(2, 2, 1, election="spread").producers[0].hello())
        newcomer.send(ranks.producers[1].hello())
        for _ in range(3):
            assert producers._take_next(time.monotonic() + WAIT_S)
        assert producers._senders == senders
        assert producers.transfer(REQUEST, [0, 1, 2], WAIT_S) is RequestState.READY


def test_an_accepted_rank_keeps_its_connection(channel: ConsumerChannel) -> None:
    ranks = make_ranks(1, 1, 1)
    producers = RemoteProducers(ranks.consumers[0], channel)
    with (
        contextlib.closing(ProducerChannel(channel.endpoint)) as second,
        running(producer(ranks, 0, channel)),
    ):
        producers.introduce(WAIT_S)
        second.send(ranks.producers[0].hello())
        assert producers._take_next(time.monotonic() + WAIT_S)
        answer = second.receive(WAIT_S)
        assert isinstance(answer, Refused)
        assert answer.reason == "producer 0 was introduced before; legal is once"
        assert producers.transfer(REQUEST, [0, 1, 2], WAIT_S) is RequestState.READY


def test_a_connection_speaks_for_its_own_rank_only(
    channel: ConsumerChannel, caplog: pytest.LogCaptureFixture
) -> None:
    ranks = make_ranks(1, 1, 1)
    consumer = ranks.consumers[0]
    producers = RemoteProducers(consumer, channel)
    with (
        contextlib.closing(ProducerChannel(channel.endpoint)) as honest,
        contextlib.closing(ProducerChannel(channel.endpoint)) as stranger,
    ):
        with running(lambda: shake_hands(ranks, honest)):
            producers.introduce(WAIT_S)
        consumer.request(REQUEST, [0, 1, 2])
        receipt = ranks.producers[0].serve(pull_for(ranks))
        for lie in (
            msgspec.structs.replace(receipt, failure="a lie", writes=()),
            Refused(tp_rank=0, reason="a lie"),
            Accepted(producer_rank=0),
        ):
            stranger.send(lie)
            assert producers._take_next(time.monotonic() + WAIT_S)
        assert consumer.state(REQUEST) is RequestState.WAITING
        assert {record.message for record in caplog.records} == {
            "a message for producer 0 came over another connection"
        }
        assert len(caplog.records) == 3
        honest.send(receipt)
        assert producers._take_next(time.monotonic() + WAIT_S)
    assert consumer.state(REQUEST) is RequestState.READY


def test_a_message_of_other_frames_is_refused(channel: ConsumerChannel) -> None:
    hello = encode(make_ranks(1, 1, 1).producers[0].hello())
    with contextlib.closing(ProducerChannel(channel.endpoint)) as connected:
        connected._socket.send_multipart([hello, b"more"])
        with pytest.raises(MessageError, match="a message of 2 frames; legal is 1"):
            channel.receive(WAIT_S)
        connected._socket.send(hello)
        came = channel.receive(WAIT_S)
        assert came is not None
        channel._socket.send_multipart([came[0], hello, b"more"])
        with pytest.raises(MessageError, match="a message of 2 frames; legal is 1"):
            connected.receive(WAIT_S)


def pull_for(ranks: Ranks) -> Pull:
    return Pull(
        request_id=REQUEST,
        consumer=ranks.consumers[0].key,
        destination_blocks=(0, 1, 2),
        with_digests=False,
    )


# Refusals reach both sides (F16)


def test_a_refusing_producer_is_heard(
    channel: ConsumerChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks, others = make_ranks(1, 1, 1), make_ranks(1, 1, 1, election="spread")
    answers: list[Message] = []
    consumer = RemoteProducers(ranks.consumers[0], channel)
    # The consumer agrees to anything, as an older release might.
    monkeypatch.setattr(ranks.consumers[0], "meet", lambda _: None)
    serve = producer(others, 0, channel)
    with (
        running(lambda: answers.append(serve())),
        pytest.raises(HandshakeRefusedError, match="producer 0 refuses consumer 0: election="),
    ):
        consumer.introduce(WAIT_S)
    assert isinstance(answers[0], Refused)
    assert not ranks.destination[0][0].any()


def test_a_refusing_consumer_is_heard(channel: ConsumerChannel) -> None:
    ranks, others = make_ranks(1, 1, 1), make_ranks(1, 1, 1, election="spread")
    reasons: list[str] = []

    def serve() -> None:
        try:
            producer(others, 0, channel)()
        except HandshakeRefusedError as error:
            reasons.append(str(error))

    with (
        running(serve),
        pytest.raises(HandshakeRefusedError, match="consumer 0 refuses producer 0: election="),
    ):
        RemoteProducers(ranks.consumers[0], channel).introduce(WAIT_S)
    assert reasons == [
        "consumer 0 refuses producer 0: election='spread' there, 'lowest' here; legal is equal"
    ]


def test_a_silent_consumer_is_not_waited_for(channel: ConsumerChannel) -> None:
    ranks = make_ranks(1, 1, 1)
    with (
        contextlib.closing(ProducerChannel(channel.endpoint)) as connected,
        pytest.raises(HandshakeRefusedError, match=r"the consumer said nothing for 0\.1 s"),
    ):
        serve_consumer(ranks.producers[0], connected, 0.1)


def test_a_message_that_makes_no_sense_is_refused(channel: ConsumerChannel) -> None:
    ranks = make_ranks(1, 1, 1)

    def answer() -> None:
        came = channel.receive(WAIT_S)
        assert came is not None
        channel.send(came[0], Accepted(producer_rank=0))

    with (
        contextlib.closing(ProducerChannel(channel.endpoint)) as connected,
        running(answer),
        pytest.raises(RuntimeRefusalError, match="a producer does not expect Accepted"),
    ):
        serve_consumer(ranks.producers[0], connected, WAIT_S)


def test_the_consumer_binds_loopback_only(channel: ConsumerChannel) -> None:
    assert channel.endpoint.startswith("tcp://127.0.0.1:")
    assert channel._socket.getsockopt(zmq.LAST_ENDPOINT) == channel.endpoint.encode()
