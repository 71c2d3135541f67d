# SPDX-License-Identifier: Apache-2.0
"""The range table and the in-process transport, which checks source and destination."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kvreshard.runtime.descriptors import Descriptors
from kvreshard.runtime.errors import TransferError
from kvreshard.runtime.transport.in_process import Fabric, InProcessTransport
from kvreshard.runtime.transport.ranges import RangeTable


def descriptors(*rows: tuple[int, int, int]) -> Descriptors:
    return Descriptors(*(np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True)))


def registered(size: int, fabric: Fabric) -> tuple[InProcessTransport, torch.Tensor]:
    memory = torch.zeros(size, dtype=torch.uint8)
    transport = InProcessTransport(fabric)
    transport.register(memory.data_ptr(), size, memory)
    return transport, memory


# Ranges


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 12)), max_size=6),
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 14)), min_size=1, max_size=6),
    st.sampled_from([0, 2**63 - 30, 2**64 - 100]),
)
def test_a_descriptor_is_inside_exactly_when_all_its_bytes_are_in_one_range(
    ranges: list[tuple[int, int]], asked: list[tuple[int, int]], base: int
) -> None:
    table = RangeTable()
    held: list[tuple[int, int]] = []
    for address, length in ranges:
        taken = {at for start, size in held for at in range(start, start + size)}
        if taken & set(range(address, address + length)):
            with pytest.raises(TransferError, match="overlap a range"):
                table.add(base + address, length, None)
        else:
            table.add(base + address, length, None)
            held.append((address, length))
    for address, length in asked:
        inside = any(
            start <= address < start + size and address + length <= start + size
            for start, size in held
        )
        columns = (np.array([value], dtype=np.uint64) for value in (base + address, length))
        if inside:
            table.check("source", *columns)
        else:
            with pytest.raises(TransferError, match="not inside a registered range"):
                table.check("source", *columns)


@pytest.mark.parametrize(("address", "length"), [(10, 0), (0, 10), (2**64 - 5, 5), (2**64, 1)])
def test_a_range_that_cannot_be(address: int, length: int) -> None:
    with pytest.raises(TransferError, match="ending below"):
        RangeTable().add(address, length, None)


def test_a_removed_range_may_come_back() -> None:
    table = RangeTable()
    table.add(100, 10, None)
    table.remove(100)
    table.add(95, 10, None)
    assert table.items() == [(95, 10)]


# Transport


def test_bytes_arrive() -> None:
    fabric = Fabric()
    sender, source = registered(8, fabric)
    receiver, destination = registered(8, fabric)
    source[:] = torch.arange(8)
    sender.write(
        receiver.session_id, descriptors((source.data_ptr() + 2, destination.data_ptr() + 5, 3))
    )
    assert destination.tolist() == [0, 0, 0, 0, 0, 2, 3, 4]


def test_one_bad_descriptor_stops_all_of_them() -> None:
    fabric = Fabric()
    sender, source = registered(8, fabric)
    receiver, destination = registered(8, fabric)
    source[:] = 7
    good = (source.data_ptr(), destination.data_ptr(), 4)
    for bad, side in [
        ((source.data_ptr() + 5, destination.data_ptr(), 4), "source"),
        ((source.data_ptr(), destination.data_ptr() + 5, 4), "destination"),
    ]:
        with pytest.raises(TransferError, match=f"{side} of descriptor 1") as raised:
            sender.write(receiver.session_id, descriptors(good, bad))
        assert raised.value.quiescent
    assert destination.sum() == 0


def test_a_session_that_left_is_unknown_and_its_name_is_not_used_again() -> None:
    fabric = Fabric()
    sender, source = registered(8, fabric)
    receiver, destination = registered(8, fabric)
    receiver.close()
    receiver.close()
    another, _ = registered(8, fabric)
    assert another.session_id != receiver.session_id
    with pytest.raises(TransferError, match="no transport has session"):
        sender.write(
            receiver.session_id, descriptors((source.data_ptr(), destination.data_ptr(), 1))
        )


def test_a_closed_transport_does_nothing() -> None:
    transport, memory = registered(8, Fabric())
    transport.close()
    with pytest.raises(TransferError, match="is closed"):
        transport.register(memory.data_ptr(), 8, memory)
    with pytest.raises(TransferError, match="is closed"):
        transport.write("x", descriptors((1, 1, 1)))
