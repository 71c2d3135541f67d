# SPDX-License-Identifier: Apache-2.0
"""What a reader or a program finds in an audit, in each form, whatever the target is called."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import jsonschema
import pytest
import xmlschema
from audit_reports import (
    FILE,
    HOSTILE,
    REPORTS,
    SCOPE,
    fails,
    holds,
    hostile,
    not_decided,
    refused,
    story,
)
from audit_snapshots import FOLDER, snapshots
from markdown_it import MarkdownIt
from rich.console import Console
from schemas import junit_schema, sarif_schema

from kvreshard.proofs.audit import forms
from kvreshard.proofs.audit.forms import FORMS
from kvreshard.proofs.audit.forms.html_form import as_html
from kvreshard.proofs.audit.forms.index import as_index
from kvreshard.proofs.audit.forms.json_form import document
from kvreshard.proofs.audit.forms.junit import as_junit
from kvreshard.proofs.audit.forms.links import uri
from kvreshard.proofs.audit.forms.markdown import as_markdown
from kvreshard.proofs.audit.forms.sarif import STOPPED, as_sarif
from kvreshard.proofs.audit.forms.terminal import as_terminal, print_audit
from kvreshard.proofs.audit.forms.visible import visible
from kvreshard.proofs.audit.model import InvariantResult, Reach, Verdict
from kvreshard.proofs.broken import BROKEN
from kvreshard.proofs.broken.names import COVERED
from kvreshard.spec.invariants import INVARIANTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.proofs.audit.model import AuditReport

FOR_PEOPLE = ("terminal", "markdown", "html")

# Texts that mean something in one form or another.
AWKWARD = [
    HOSTILE,
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "</details></summary>",
    "<!-- x",
    "]]>",
    "a | b",
    "`",
    "a``b`",
    "***",
    "__init__",
    "_x_",
    "~~x~~",
    "$x$",
    "![x](//e.example/y.png)",
    "<http://e.example>",
    "- x",
    "1. x",
    "# x #",
    "---",
    "===",
    "    x",
    "x\\",
    "x\n\n# y",
    "&lt;b&gt;",
    "@all see #1",
    "{{ 7 * 7 }} {% raw %}",
    "\x00\x1b[31m\u202e\u2028\ud800\ufffe",
]


class Parsed(HTMLParser):
    """A page's elements and attributes in order, its text, and its text outside of code."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.text = ""
        self.prose = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(tag, name, value) for name, value in attrs]
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data
            self.prose += "" if {"code", "pre"} & set(self._open) else data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def rendered(text: str) -> Parsed:
    """Return a Markdown text as a reader sees it: with tables, and with HTML let through."""
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return Parsed(reader.render(text))


def squeezed(text: str) -> str:
    """Return a text without blanks and frames: it does not matter where lines are broken."""
    return re.sub(r"[\s\u200b\u2500-\u257f]", "", text).replace("\u2190", "<--")


def read(form: str, report: AuditReport) -> str:
    """Return what a person reads in a form, without blanks."""
    text = FORMS[form](report)
    if form == "html":
        text = Parsed(text).text
    elif form == "markdown":
        text = rendered(text).text
    return squeezed(text)


# For people


def test_the_snapshots_are_those_of_today() -> None:
    # To write them anew: python tests/proofs/audit_snapshots.py
    files = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    now = snapshots()
    assert sorted(files) == sorted(now)
    for name, text in now.items():
        assert files[name] == text, name


@pytest.mark.parametrize("form", FOR_PEOPLE)
@pytest.mark.parametrize("key", REPORTS)
def test_an_audit_says_what_a_reader_has_to_know(form: str, key: str) -> None:
    report = REPORTS[key]()
    said = read(form, report)
    source, contract = report.source, report.contract
    wanted = [
        report.sentence,
        *([report.method.value] if report.method else []),
        *([f"Demanded: {report.required.value}"] if report.required else []),
        source.target,
        source.origin,
        source.file,
        source.sha256,
        f"{source.function.name}, lines {source.function.first_line} to",
        *(f"{part.name}, line" for part in source.needs),
        contract.name,
        contract.sentence,
        contract.domain,
        *contract.outside,
        contract.guard or "none: nothing is asked",
        *(f"{one.name}" for one in report.invariants),
        *(f"{one.method.value}" for one in report.invariants if one.method),
        *(one.detail for one in report.invariants),
        *(text for pair in report.out_of_scope for text in pair),
        *(f"{place.file}:{place.line}: {place.what}" for place in report.stopped_by),
        *report.assumptions,
        report.solver,
        report.command,
    ]
    if report.sweep:
        wanted += [
            f"{report.sweep.tried} inputs of the domain with H, P and D up to 12",
            f"turns away {report.sweep.turned_away}",
            "itself was run" if report.sweep.executed else "Its lifted meaning was evaluated",
        ]
        if report.sweep.failing:
            wanted += [
                f"{report.sweep.failing} of them break an invariant in scope",
                f"{report.sweep.refused} refused before sending",
                f"{report.sweep.reaching} reaching the engine",
            ]
    for text in wanted:
        assert squeezed(visible(text)) in said, text


@pytest.mark.parametrize("form", FOR_PEOPLE)
@pytest.mark.parametrize("key", ["fails", "refused", "two_findings", "hostile"])
def test_a_counterexample_is_told_as_a_story(form: str, key: str) -> None:
    report = REPORTS[key]()
    said = read(form, report)
    assert report.findings
    for finding in report.findings:
        story = finding.story
        H, P, D = story.sizes
        block = story.block
        assert block is not None
        wanted = [
            f"H={H}, P={P}, D={D}",
            story.verdict,
            story.consequence,
            "Reaches the engine" if finding.reach is Reach.ENGINE else "Refused before sending",
            f"{block.written:,} of {block.expected:,} bytes written",
            f"First wrong byte: offset {(block.first_bad_slot or block.slots[0]).slot * 65_536:,}",
            story.invariant,
            story.invariant_sentence,
            *story.also_violated,
            *(f"<-- {mark.value}" for slot in block.slots for mark in slot.marks if mark != "ok"),
            *(f"{place.file}:{place.line}: {place.what}" for place in finding.branch),
            finding.smallest or story.why_this_input,
            finding.replayed,
        ]
        for text in wanted:
            assert squeezed(visible(text)) in said, text
        assert squeezed(visible(story.test, lines=True)) in said


@pytest.mark.parametrize("form", FOR_PEOPLE)
@pytest.mark.parametrize("key", REPORTS)
def test_the_verdict_comes_first_and_does_not_need_colour(form: str, key: str) -> None:
    report = REPORTS[key]()
    word = {"holds": "holds", "fails": "FAILS", "not decided": "NOT DECIDED"}
    said = read(form, report)
    before = said[: said.index(squeezed(visible(report.sentence)))]
    assert squeezed(word[report.verdict.value]) in before
    assert len(before) < 120 + len(squeezed(visible(report.source.function.name))) * 2


def test_what_was_not_tried_is_not_said_to_be_so() -> None:
    report = replace(
        fails(),
        contract=replace(holds().contract, guard=None, outside=()),
        source=replace(holds().source, needs=()),
        findings=(replace(fails().findings[0], reach=None, smallest="", branch=(), replayed=""),),
    )
    for form in FOR_PEOPLE:
        said = read(form, report)
        assert squeezed("nothing refuses this input before it is sent") in said
        assert squeezed(report.findings[0].story.why_this_input) in said
        assert squeezed("refused before sending,") not in said
        assert squeezed("turns away") not in said
        assert squeezed("What the source did") not in said
    assert squeezed("No sizes were tried one by one.") in read("terminal", not_decided())


@pytest.mark.parametrize("name", BROKEN)
def test_every_kind_of_fault_can_be_told(
    name: str, junit: Callable[..., ElementTree.Element]
) -> None:
    told = story(name, None)
    names = {told.invariant, *told.also_violated}
    report = replace(
        fails(),
        findings=(replace(fails().findings[0], story=told),),
        invariants=tuple(
            InvariantResult(each, INVARIANTS[each].sentence, Verdict.FAILS)
            for each in sorted(names)
        ),
    )
    for form in FOR_PEOPLE:
        said = read(form, report)
        assert squeezed(told.verdict) in said
        assert squeezed(told.invariant_sentence) in said
        assert "<--" in said
    jsonschema.validate(document(report), closed(audit_schema()), jsonschema.Draft202012Validator)
    (run,) = sarif_of(report)
    assert all(told.verdict in one["message"]["text"] for one in run["results"])
    assert len(junit(report).findall(".//failure")) == len(names)


# In the terminal


@pytest.mark.parametrize("key", ["holds", "fails", "refused", "two_findings", "not_decided"])
def test_the_terminal_form_is_as_wide_as_a_terminal(key: str) -> None:
    report = REPORTS[key]()
    # What is there to be copied stays whole.
    whole = {f"  $ {report.command}"}
    whole |= {line for finding in report.findings for line in finding.story.test.splitlines()}
    for line in as_terminal(report).splitlines():
        assert len(line) <= 80 or line in whole, line


def test_the_terminal_form_has_colour_where_there_is_any() -> None:
    out = io.StringIO()
    print_audit(fails(), Console(file=out, width=100, force_terminal=True, color_system="standard"))
    assert "\x1b[1;31m FAILS" in out.getvalue()
    assert "\x1b" not in as_terminal(fails())


@pytest.mark.parametrize("form", ["terminal", "markdown", "html", "junit"])
def test_no_character_of_a_target_acts_on_the_reader(form: str) -> None:
    text = FORMS[form](hostile("a\x1b[2J\x00\u202e\u2066\x85\u2028\ud800\ufffeb"))
    acting = {one for one in text if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Cn", "Zl")}
    assert acting <= {"\n"}
    assert r"\x1b[2J\x00\u202e\u2066\x85\u2028\ud800\ufffe" in squeezed(text).replace("\\\\", "\\")
    text.encode("utf-8")


# As Markdown and HTML


def test_a_page_that_parses_as_meant() -> None:
    # The premise of the next tests: what breaks out is seen.
    tags = [tag for tag, _ in rendered("**<b>x</b>** `y` | *z*").tags]
    assert tags == ["p", "strong", "b", "code", "em"]


@pytest.mark.parametrize("text", AWKWARD)
@pytest.mark.parametrize("form", ["markdown", "html", "index"])
def test_no_text_of_a_target_changes_a_page(form: str, text: str) -> None:
    def page(report: AuditReport) -> Parsed:
        if form == "index":
            return Parsed(as_index([(report, report.source.file)]))
        return Parsed(as_html(report)) if form == "html" else rendered(as_markdown(report))

    shown = page(hostile(text))
    assert shown.tags == page(hostile("plain")).tags
    assert squeezed(visible(text)) in squeezed(shown.text)
    if form == "markdown":
        assert not re.search(r"@\w|#\d|\w://", shown.prose)


@pytest.mark.parametrize("key", REPORTS)
def test_a_page_stands_alone_and_is_accessible(key: str) -> None:
    pages = [as_html(REPORTS[key]()), as_index([(REPORTS[key](), "a.html")])]
    for page in map(Parsed, pages):
        names = [tag for tag, _ in page.tags]
        assert not {"script", "iframe", "object", "embed", "img", "form", "base"} & set(names)
        for tag, name, value in page.attributes:
            assert not name.startswith("on")
            assert name != "style"
            if name in ("src", "href"):
                assert (tag, value) in [("link", "data:,"), ("a", "a.html")]
        assert ("html", "lang", "en") in page.attributes
        assert names.count("title") >= 1
        assert names.count("h1") == 1
        headings = [int(name[1]) for name in names if re.fullmatch("h[1-6]", name)]
        assert headings[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(headings))
        assert all("scope" in given for tag, given in page.tags if tag == "th")
        ids = [value for _, name, value in page.attributes if name == "id"]
        assert len(ids) == len(set(ids))
        labels = [value for _, name, value in page.attributes if name == "aria-labelledby"]
        assert labels
        assert {one for label in labels for one in (label or "").split()} <= set(ids)


def test_a_fault_that_the_picture_does_not_show_is_open_to_see() -> None:
    def opened(name: str) -> list[bool]:
        report = replace(fails(), findings=(replace(fails().findings[0], story=story(name, None)),))
        page = Parsed(as_html(report))
        return ["open" in given for tag, given in page.tags if tag == "details"]

    # The table, and the test to paste.
    assert opened("the_lowest_rank_alone_sends") == [False, False]
    assert opened("region_lengths_are_taken_to_scale_with_tp") == [True, False]


def test_the_index_leads_to_each_page_and_says_the_worst() -> None:
    pages = [(made(), f"pages/{key}.html") for key, made in REPORTS.items()]
    index = Parsed(as_index(pages))
    links = [value for tag, name, value in index.attributes if (tag, name) == ("a", "href")]
    assert links == [path for _, path in pages]
    assert "Of 6 audits: 4 fail, 1 is not decided, 1 holds." in index.text
    assert index.text.split()[:2] == ["FAILS:", "6"]
    for report, _ in pages:
        for text in (report.source.target, report.contract.name, report.contract.domain):
            assert squeezed(visible(text)) in squeezed(index.text)
    undecided = as_index([(holds(), "a"), (not_decided(), "b")])
    assert Parsed(undecided).text.split()[:2] == ["NOT", "DECIDED:"]
    with pytest.raises(ValueError, match=r"pages=\[\]; legal: at least one"):
        as_index([])


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("a/b c.html", "a/b%20c.html"),
        ("javascript:alert(1)", "javascript%3Aalert%281%29"),
        ("//e.example/x", "/.//e.example/x"),
        ("\\\\host\\x", "/.//host/x"),
        ("a\nb#c?d", "a%0Ab%23c%3Fd"),
        ("\ud800", "%3F"),
    ],
)
def test_a_path_is_no_address(path: str, link: str) -> None:
    assert uri(path) == link


# As JSON


def audit_schema() -> dict[str, Any]:
    path = Path(forms.__file__).parent / "audit.schema.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def closed(schema: Any) -> Any:
    """Return a schema that allows no key which it does not describe."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    return {**made, "additionalProperties": False} if schema.get("type") == "object" else made


@pytest.mark.parametrize("key", REPORTS)
def test_the_json_is_what_its_schema_describes(key: str) -> None:
    schema = audit_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    written = json.loads(FORMS["json"](REPORTS[key]()))
    jsonschema.validate(written, closed(schema), jsonschema.Draft202012Validator)
    assert written == document(REPORTS[key]())


def without(written: dict[str, Any], *path: str | int) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(written))
    at: Any = made
    for step in path[:-1]:
        at = at[step]
    del at[path[-1]]
    return made


def test_the_schema_refuses_what_is_not_an_audit() -> None:
    written = document(fails())
    wrong = [
        *(without(written, key) for key in written),
        *(without(written, "source", key) for key in written["source"]),
        *(without(written, "findings", 0, "story", key) for key in written["findings"][0]["story"]),
        {**written, "schema": "kvreshard.audit/2"},
        {**written, "verdict": "passes"},
        {**written, "verdict": "holds"},
        {**written, "findings": []},
        {**written, "invariants": []},
        {**document(holds()), "method": None},
        {**document(holds()), "findings": written["findings"]},
    ]
    checker = jsonschema.Draft202012Validator(audit_schema())
    assert [one for one in wrong if checker.is_valid(one)] == []


def test_the_json_keeps_every_character() -> None:
    written = json.loads(FORMS["json"](hostile("\ud800\x00\u202e|`<")))
    assert written["source"]["target"] == "\ud800\x00\u202e|`<"


# As SARIF


def sarif_of(*reports: AuditReport) -> list[dict[str, Any]]:
    """Return the runs of a log that is valid."""
    written = json.loads(as_sarif(*reports))
    schema = sarif_schema()
    checker = jsonschema.Draft4Validator
    jsonschema.validate(written, schema, checker, format_checker=checker.FORMAT_CHECKER)
    runs: list[dict[str, Any]] = written["runs"]
    return runs


@pytest.mark.parametrize("key", REPORTS)
def test_the_sarif_is_valid_and_consistent(key: str) -> None:
    report = REPORTS[key]()
    (run,) = sarif_of(report)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [*(one.name for one in report.invariants), STOPPED]
    assert [one["ruleId"] for one in run["results"] if one["ruleId"] != STOPPED] == [
        one.name for one in report.invariants
    ]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        # SARIF 2.1.0, 3.27.10: only a failure has a level.
        assert (result["kind"] == "fail") == (result["level"] != "none")
        for location in result["locations"]:
            at = location["physicalLocation"]["artifactLocation"]
            assert run["artifacts"][at["index"]]["location"]["uri"] == at["uri"]
    audited = run["artifacts"][0]
    assert audited["hashes"] == {"sha-256": report.source.sha256}
    invocation = run["invocations"][0]
    code = {Verdict.HOLDS: 0, Verdict.FAILS: 1, Verdict.NOT_DECIDED: 3}[report.verdict]
    assert invocation["exitCode"] == code
    assert invocation["executionSuccessful"] == (code != 3)


def test_a_failure_is_shown_at_the_line_that_decided_it() -> None:
    (run,) = sarif_of(fails())
    first, *others = run["results"]
    assert (first["ruleId"], first["kind"], first["level"]) == (COVERED, "fail", "error")
    at = first["locations"][0]["physicalLocation"]
    assert (at["artifactLocation"]["uri"], at["region"]) == (FILE, {"startLine": 134})
    steps = first["codeFlows"][0]["threadFlows"][0]["locations"]
    lines = [one["location"]["physicalLocation"]["region"]["startLine"] for one in steps]
    assert lines == [128, 134]
    assert "196,608 of 262,144 bytes" in first["message"]["text"]
    assert "Reaches the engine" in first["message"]["text"]
    assert {one["kind"] for one in others} == {"pass"}
    where = others[0]["locations"][0]["physicalLocation"]["region"]
    assert where == {"startLine": 112, "endLine": 161}


def test_a_failure_without_a_line_is_shown_at_the_function() -> None:
    without_branch = replace(refused().findings[0], branch=())
    (run,) = sarif_of(replace(refused(), findings=(without_branch,)))
    failing = [one for one in run["results"] if one["kind"] == "fail"]
    assert len(failing) == 2
    for one in failing:
        region = one["locations"][0]["physicalLocation"]["region"]
        assert region == {"startLine": 112, "endLine": 161}
        assert "codeFlows" not in one


def test_what_stopped_an_audit_is_a_warning_at_its_line() -> None:
    (run,) = sarif_of(not_decided())
    stops = [one for one in run["results"] if one["ruleId"] == STOPPED]
    regions = [one["locations"][0]["physicalLocation"]["region"] for one in stops]
    assert regions == [{"startLine": 119}, {"startLine": 147}]
    assert {(one["kind"], one["level"]) for one in stops} == {("fail", "warning")}
    assert {one["kind"] for one in run["results"] if one not in stops} == {"open"}
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 2
    (unexplained,) = sarif_of(replace(not_decided(), stopped_by=()))
    (stop,) = [one for one in unexplained["results"] if one["ruleId"] == STOPPED]
    assert stop["locations"][0]["physicalLocation"]["region"]["startLine"] == 112
    (proved_less,) = sarif_of(replace(holds(), stopped_by=not_decided().stopped_by))
    kinds = [one["kind"] for one in proved_less["results"] if one["ruleId"] == STOPPED]
    assert kinds == ["informational", "informational"]


def test_a_log_has_a_run_for_each_audit() -> None:
    runs = sarif_of(*(made() for made in REPORTS.values()))
    assert len(runs) == len(REPORTS)


@pytest.mark.parametrize("text", AWKWARD)
def test_no_text_of_a_target_changes_the_sarif(text: str) -> None:
    (run,) = sarif_of(hostile(text))
    (plain,) = sarif_of(hostile("plain"))
    assert shape(run) == shape(plain)
    for result in run["results"]:
        message = result["message"]["text"]
        # Neither a placeholder nor a link.
        assert not re.search(r"(?<!\{)(\{\{)*\{(?!\{)", message)
        assert "](" not in message


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else type(value)


# As JUnit


@pytest.fixture(scope="module")
def junit() -> Callable[..., ElementTree.Element]:
    schema = xmlschema.XMLSchema(junit_schema())

    def parsed(*reports: AuditReport) -> ElementTree.Element:
        text = as_junit(*reports)
        schema.validate(text)
        return ElementTree.fromstring(text)

    return parsed


KINDS = {Verdict.HOLDS: None, Verdict.FAILS: "failure", Verdict.NOT_DECIDED: "error"}


@pytest.mark.parametrize("key", REPORTS)
def test_the_junit_has_a_test_for_each_invariant(
    key: str, junit: Callable[..., ElementTree.Element]
) -> None:
    report = REPORTS[key]()
    (suite,) = junit(report)
    assert suite.get("name") == visible(report.source.target)
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert list(cases) == [*SCOPE, *(name for name, _ in report.out_of_scope)]
    for result in report.invariants:
        found = [
            tag
            for tag in ("failure", "error", "skipped")
            if cases[result.name].find(tag) is not None
        ]
        assert found == [kind for kind in [KINDS[result.verdict]] if kind]
    for name, _ in report.out_of_scope:
        assert cases[name].find("skipped") is not None
    counted = {
        "tests": len(cases),
        "failures": sum(one.verdict is Verdict.FAILS for one in report.invariants),
        "errors": sum(one.verdict is Verdict.NOT_DECIDED for one in report.invariants),
        "skipped": len(report.out_of_scope),
    }
    assert {name: int(suite.get(name, "")) for name in counted} == counted
    properties = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert properties["sha256"] == report.source.sha256
    assert properties["origin"] == visible(report.source.origin)
    assert properties["domain"] == visible(report.contract.domain)
    assert properties["method"] in ("proved for all sizes", "a counterexample", "none decided it")


def test_a_junit_failure_tells_the_story(junit: Callable[..., ElementTree.Element]) -> None:
    report = fails()
    failure = junit(report).find(".//failure")
    assert failure is not None
    assert failure.get("message") == report.findings[0].story.verdict
    text = failure.text or ""
    assert "<-- MISSING" in text
    assert report.findings[0].story.test.rstrip("\n") in text
    error = junit(not_decided()).find(".//error")
    assert error is not None
    assert f"{FILE}:119: a while loop" in (error.text or "")


def test_a_junit_document_has_a_suite_for_each_audit(
    junit: Callable[..., ElementTree.Element],
) -> None:
    document = junit(*(made() for made in REPORTS.values()))
    assert len(document) == len(REPORTS)
    suites = [int(suite.get("failures", "")) for suite in document]
    assert document.get("failures") == str(sum(suites))


@pytest.mark.parametrize("text", AWKWARD)
def test_no_text_of_a_target_changes_the_junit(
    text: str, junit: Callable[..., ElementTree.Element]
) -> None:
    tags = [[one.tag for one in junit(hostile(each)).iter()] for each in (text, "plain")]
    assert tags[0] == tags[1]
