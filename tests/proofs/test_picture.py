# SPDX-License-Identifier: Apache-2.0
"""The picture of a head map: well formed, true to the copies, not silent about what it hides."""

from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvreshard.generated.planner import group_is_legal, plan_transfer
from kvreshard.head_plan import ELECTIONS, plan_heads
from kvreshard.proofs.broken import BROKEN
from kvreshard.proofs.judge import Copy, held_heads
from kvreshard.proofs.story.build import consumer_blocks
from kvreshard.proofs.story.head_map import CELLS_SHOWN, FAULTY_SHOWN, Fold, head_map_of, is_faulty
from kvreshard.proofs.story.model import ConsumerBlock, Mark, Slot, Writer
from kvreshard.proofs.story.picture import head_map_svg
from kvreshard.proofs.story.picture_style import STYLE

SVG = "{http://www.w3.org/2000/svg}"
Heads = tuple[tuple[int, ...], ...]


def drawn(
    producer_heads: Heads, consumer_heads: Heads, blocks: tuple[ConsumerBlock, ...], key: str = ""
) -> ElementTree.Element:
    text = head_map_svg(
        producer_heads, consumer_heads, blocks, title="<A & B>", description='"C"', key=key
    )
    return ElementTree.fromstring(text)


def ours(H: int, P: int, D: int, election: str = "lowest") -> ElementTree.Element:
    plan = plan_heads(
        total_num_kv_heads=H, producer_tp_size=P, consumer_tp_size=D, election=election
    )
    return drawn(plan.producer_heads, plan.consumer_heads, plan.blocks)


def groups(H: int, P: int, D: int) -> tuple[Heads, Heads]:
    return (
        tuple(held_heads(H, P, p) for p in range(P)),
        tuple(held_heads(H, D, d) for d in range(D)),
    )


def texts(picture: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


def of_class(picture: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [one for one in picture.iter() if name in one.get("class", "").split()]


def copies(picture: ElementTree.Element) -> list[tuple[int, int, tuple[str, ...], tuple[int, ...]]]:
    """Return producer, consumer, heads and slots of each copy drawn, sorted."""
    return sorted(
        (
            int(one.attrib["data-producer"]),
            int(one.attrib["data-consumer"]),
            tuple(one.attrib["data-heads"].split()),
            tuple(map(int, one.attrib["data-slots"].split())),
        )
        for one in of_class(picture, "copy")
    )


def planned(
    H: int, P: int, D: int, election: str
) -> list[tuple[int, int, tuple[str, ...], tuple[int, ...]]]:
    """Return the same of the planner itself."""
    found = []
    for p in range(P):
        for d in range(D):
            plan = plan_transfer(
                total_num_kv_heads=H,
                producer_tp_size=P,
                producer_tp_rank=p,
                consumer_tp_size=D,
                consumer_tp_rank=d,
                election=election,
            )
            if plan.sends:
                first = held_heads(H, P, p)[plan.src_head_offset]
                heads = tuple(str(first + k) for k in range(plan.head_count))
                slots = tuple(plan.dst_head_offset + k for k in range(plan.head_count))
                found.append((p, d, heads, slots))
    return sorted(found)


# True to the copies


@pytest.mark.parametrize("election", ELECTIONS)
def test_the_arrows_are_the_copies_of_the_planner(election: str) -> None:
    seen = 0
    for H in range(1, 9):
        legal = [size for size in range(1, 17) if group_is_legal(H, size)]
        for P in legal:
            for D in legal:
                if election == "paired" and P % D and D % P:
                    continue
                want = planned(H, P, D, election)
                assert copies(ours(H, P, D, election)) == want
                assert want
                seen += 1
    assert seen > 100


def test_the_sizes_of_six_three_two() -> None:
    assert copies(ours(6, 3, 2)) == [
        (0, 0, ("0", "1"), (0, 1)),
        (1, 0, ("2",), (2,)),
        (1, 1, ("3",), (0,)),
        (2, 1, ("4", "5"), (1, 2)),
    ]


# Faults, each in words


def blocks_of(*slots: Slot, empty: tuple[int, ...] = ()) -> tuple[ConsumerBlock, ...]:
    return (ConsumerBlock(0, slots, 65_536, empty),)


FAULTS = {
    Mark.MISSING: Slot(0, 0, ()),
    Mark.DOUBLED: Slot(0, 0, (Writer(0, 0), Writer(1, 0))),
    Mark.WRONG_HEAD: Slot(0, 0, (Writer(2, 1),)),
    Mark.READ_OUTSIDE: Slot(0, 0, (Writer(0, None),)),
    Mark.WRITE_OUTSIDE: Slot(4, None, (Writer(0, 0),)),
}


@pytest.mark.parametrize("mark", FAULTS, ids=lambda mark: mark.value)
def test_a_fault_is_told_by_word_and_by_border(mark: Mark) -> None:
    picture = drawn(*groups(4, 8, 1), blocks_of(FAULTS[mark]))
    said = texts(picture)
    assert any(line.endswith(mark.value) for line in said)
    assert any(f"{mark.value}: 1 slot " in line for line in said)
    name = mark.value.lower().replace(" ", "-")
    assert [one for one in of_class(picture, "cell") if name in one.get("class", "")]
    # Beside colour there is another border: dashes, width, or a second line inside.
    rules = [line for line in STYLE.splitlines() if f".cell.{name}" in line]
    assert any("stroke-" in rule for rule in rules) or of_class(picture, "inner")


def test_every_mark_but_ok_is_tried() -> None:
    assert set(FAULTS) == set(Mark) - {Mark.OK}


def test_a_copy_of_no_heads_is_told() -> None:
    picture = drawn(*groups(4, 8, 1), blocks_of(Slot(0, 0, (Writer(0, 0),)), empty=(3,)))
    assert "! NO HEADS from p3" in texts(picture)
    assert (3, 0, (), ()) in copies(picture)
    assert "! NO HEADS: 1 of the copies" in texts(picture)


def test_what_is_right_has_no_word_of_a_fault() -> None:
    said = " ".join(texts(ours(4, 8, 1)))
    assert not [mark for mark in Mark if mark is not Mark.OK and mark.value in said]
    assert "4 slots, all as they should be" in said


def test_the_rank_that_sends_one_head_of_four_leaves_three_missing() -> None:
    slots = (Slot(0, 0, (Writer(0, 0),)), Slot(1, 1, ()), Slot(2, 2, ()), Slot(3, 3, ()))
    blocks = blocks_of(*slots)
    assert (blocks[0].written, blocks[0].expected) == (65_536, 262_144)
    picture = drawn(*groups(4, 8, 1), blocks)
    assert texts(picture).count("\u00d7 MISSING") == 3
    assert copies(picture) == [(0, 0, ("0",), (0,))]


def test_slots_outside_lie_outside_the_frame_of_the_block() -> None:
    slots = (
        Slot(-1, None, (Writer(0, 0),)),
        *(Slot(k, k, (Writer(2 * k, k),)) for k in range(4)),
        Slot(4, None, (Writer(6, 3),)),
    )
    picture = drawn(*groups(4, 8, 1), blocks_of(*slots))
    (consumer,) = of_class(picture, "consumer")
    frame = next(one for one in consumer if one.get("class") == "frame")
    top = float(frame.attrib["y"])
    bottom = top + float(frame.attrib["height"])
    edges = {}
    for slot in of_class(consumer, "slot"):
        cell = next(one for one in slot if "cell" in one.get("class", ""))
        y = float(cell.attrib["y"])
        edges[int(slot.attrib["data-slot"])] = y, y + float(cell.attrib["height"])
    assert edges[-1][1] <= top
    assert edges[4][0] >= bottom
    assert all(top < edges[k][0] and edges[k][1] < bottom for k in range(4))


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_every_broken_planner_can_be_drawn_at_its_smallest(name: str) -> None:
    seen = 0
    for H, P, D in ((4, 8, 1), (4, 1, 8), (6, 3, 2), (2, 4, 8)):
        if BROKEN[name].in_domain(H, P, D):
            blocks = consumer_blocks(BROKEN[name].subject, (H, P, D), 64)
            picture = drawn(*groups(H, P, D), blocks)
            marks = {m for b in blocks for s in b.slots for m in s.marks} - {Mark.OK}
            said = " ".join(texts(picture))
            assert all(mark.value in said for mark in marks)
            seen += 1
    assert seen


# Large groups


def test_a_large_healthy_map_says_how_much_it_leaves_out() -> None:
    picture = ours(128, 64, 64)
    said = " ".join(texts(picture))
    assert len(of_class(picture, "slot")) < CELLS_SHOWN
    assert "128 slots, all as they should be" in said
    slots = len(of_class(picture, "slot"))
    ranks = 64 - len(of_class(picture, "producer"))
    assert f"Not drawn: {ranks} producer ranks and {128 - slots} slots of consumer ranks" in said
    assert set(copies(picture)) < set(planned(128, 64, 64, "lowest"))


def test_the_faulty_slot_of_a_large_map_stays_with_who_should_have_sent() -> None:
    def plan(p: int, d: int) -> Copy:
        made = plan_transfer(
            total_num_kv_heads=128,
            producer_tp_size=64,
            producer_tp_rank=p,
            consumer_tp_size=16,
            consumer_tp_rank=d,
        )
        return Copy(False, 0, 0, 0) if p == 17 else Copy(*made)

    producer_heads, consumer_heads = groups(128, 64, 16)
    blocks = []
    for d, held in enumerate(consumer_heads):
        writers: dict[int, list[Writer]] = {slot: [] for slot in range(len(held))}
        for p, mine in enumerate(producer_heads):
            copy = plan(p, d)
            for k in range(copy.head_count if copy.sends else 0):
                head = mine[copy.src_head_offset + k]
                writers[copy.dst_head_offset + k].append(Writer(p, head))
        slots = (Slot(slot, held[slot], tuple(who)) for slot, who in writers.items())
        blocks.append(ConsumerBlock(d, tuple(slots), 1))
    picture = drawn(producer_heads, consumer_heads, tuple(blocks))
    assert "\u00d7 MISSING: 2 slots that nobody writes" in texts(picture)
    assert len(of_class(picture, "missing")) >= 2
    assert "17" in [one.attrib["data-rank"] for one in of_class(picture, "producer")]
    assert ["4"] == [one.attrib["data-rank"] for one in of_class(picture, "consumer")]


def test_too_many_faults_are_counted_where_they_are_left_out() -> None:
    producer_heads, consumer_heads = groups(128, 64, 64)
    blocks = tuple(
        ConsumerBlock(d, tuple(Slot(k, held[k], ()) for k in range(2)), 1)
        for d, held in enumerate(consumer_heads)
    )
    picture = drawn(producer_heads, consumer_heads, blocks)
    said = " ".join(texts(picture))
    left = 128 - FAULTY_SHOWN
    assert f"MISSING: {128} slots" in said
    assert f"{left} slots, of them {left} MISSING" in said


def test_blocks_that_are_not_given_are_named_as_unknown() -> None:
    picture = drawn(*groups(4, 2, 2), blocks_of(Slot(0, 0, (Writer(0, 0),))))
    assert "1 other consumer rank: not known" in " ".join(texts(picture))


# Any blocks at all

RANKS, SLOTS = 6, 5


@st.composite
def any_blocks(draw: st.DrawFn) -> tuple[Heads, Heads, tuple[ConsumerBlock, ...]]:
    width = draw(st.integers(1, 40))
    producer_heads = tuple(tuple(range(r * width, (r + 1) * width)) for r in range(RANKS))
    head = st.none() | st.integers(0, RANKS * width - 1)
    writer = st.builds(Writer, st.integers(0, RANKS - 1), head)
    writers = st.lists(writer, max_size=3).map(tuple)
    blocks = []
    for rank in range(draw(st.integers(1, SLOTS))):
        first = draw(st.integers(-2, 0))
        count = draw(st.integers(1, 20))
        slots = []
        for slot in range(first, count + 1):
            inside = 0 <= slot < count
            who = draw(writers)
            if inside or who:
                slots.append(Slot(slot, slot if inside else None, who))
        empty = tuple(draw(st.sets(st.integers(0, RANKS - 1), max_size=2)))
        blocks.append(ConsumerBlock(rank, tuple(slots), 64, empty))
    consumer_heads = tuple(tuple(range(20)) for _ in blocks)
    return producer_heads, consumer_heads, tuple(blocks)


@given(any_blocks())
def test_any_blocks_make_a_picture_that_says_all(
    given_blocks: tuple[Heads, Heads, tuple[ConsumerBlock, ...]],
) -> None:
    producer_heads, consumer_heads, blocks = given_blocks
    picture = drawn(producer_heads, consumer_heads, blocks)
    said = " ".join(texts(picture))
    slots = [slot for block in blocks for slot in block.slots]
    for mark in set(Mark) - {Mark.OK}:
        count = sum(mark in slot.marks for slot in slots)
        many = f"{count} slot{'' if count == 1 else 's'}"
        assert (f"{mark.value}: {many} " in said) == (count > 0)
    ids = [one.attrib["id"] for one in picture.iter() if "id" in one.attrib]
    assert len(ids) == len(set(ids)) == 2
    # Each head that was written to a slot drawn has its arrow, and no other has one.
    shown = {
        (int(box.attrib["data-rank"]), int(slot.attrib["data-slot"]))
        for box in of_class(picture, "consumer")
        for slot in of_class(box, "slot")
    }
    want = sorted(
        (
            w.producer_tp_rank,
            block.consumer_tp_rank,
            "none" if w.head is None else str(w.head),
            s.slot,
        )
        for block in blocks
        for s in block.slots
        if (block.consumer_tp_rank, s.slot) in shown
        for w in s.writers
    )
    got = sorted(
        (p, d, h, s) for p, d, hs, ss in copies(picture) for h, s in zip(hs, ss, strict=True)
    )
    assert got == want
    folded = head_map_of(producer_heads, consumer_heads, blocks)
    hidden = len(slots) - len(shown)
    assert hidden == sum(
        row.slots
        for box in folded.consumers
        for row in ([box] if isinstance(box, Fold) else [*box.before, *box.inside, *box.after])
        if isinstance(row, Fold)
    )
    assert hidden == 0 or f"{hidden} slot" in said
    if sum(map(is_faulty, slots)) <= FAULTY_SHOWN:
        bad = {(b.consumer_tp_rank, s.slot) for b in blocks for s in b.slots if is_faulty(s)}
        assert bad <= shown


@given(st.text(), st.text())
def test_titles_of_any_text_stay_well_formed(title: str, description: str) -> None:
    head_map = (((0,),), ((0,),), blocks_of(Slot(0, 0, (Writer(0, 0),))))
    text = head_map_svg(*head_map, title=title, description=description)
    picture = ElementTree.fromstring(text)
    named = {one.attrib["id"]: one for one in picture if "id" in one.attrib}
    assert picture.attrib["aria-labelledby"].split() == list(named)
    assert [one.tag for one in named.values()] == [f"{SVG}title", f"{SVG}desc"]


# A page with several


def test_two_pictures_share_no_id() -> None:
    one, two = ours(4, 8, 1), ours(6, 3, 2)
    ids = [e.attrib["id"] for picture in (one, two) for e in picture.iter() if "id" in e.attrib]
    assert len(ids) == len(set(ids)) == 4


def test_a_key_tells_pictures_apart_that_are_alike() -> None:
    same = groups(1, 1, 1), blocks_of(Slot(0, 0, (Writer(0, 0),)))
    names = {drawn(*same[0], same[1], key=key).attrib["aria-labelledby"] for key in ("a", "b", "a")}
    assert len(names) == 2


def test_the_style_reaches_nothing_outside_the_picture() -> None:
    rules = re.sub(r"@media [^{]*\{(.*)\}\s*$", r"\1", STYLE, flags=re.MULTILINE)
    selectors = [
        one.strip() for rule in re.findall(r"([^{}]+)\{", rules) for one in rule.split(",")
    ]
    assert len(selectors) > 20
    assert all(".kvreshard-head-map" in one.split(" ")[0] for one in selectors)
    assert "prefers-color-scheme: dark" in STYLE


def test_the_picture_stands_alone() -> None:
    text = head_map_svg(
        *groups(4, 8, 1), blocks_of(FAULTS[Mark.MISSING]), title="a", description="b"
    )
    assert "script" not in text
    assert "href" not in text
    assert "url(" not in text
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    picture = ElementTree.fromstring(text)
    assert picture.attrib["role"] == "img"
    assert picture.attrib["viewBox"].startswith("-8 0 536 ")


# Bad input


def test_a_block_of_a_rank_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"consumer_tp_rank=1; legal: 0 to 0"):
        drawn(((0,),), ((0,),), (ConsumerBlock(1, (), 1),))


def test_a_writer_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"producer_tp_rank=5; legal: 0 to 0"):
        drawn(((0,),), ((0,),), blocks_of(Slot(0, 0, (Writer(5, 0),))))


def test_a_picture_needs_neither_solver_nor_templates() -> None:
    program = (
        "import sys; sys.modules['z3'] = sys.modules['jinja2'] = None; "
        "import kvreshard.proofs.story.picture"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
