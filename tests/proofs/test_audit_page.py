# SPDX-License-Identifier: Apache-2.0
"""The HTML page of an audit in a real browser: it loads, is legible, fits a screen and a sheet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from audit_reports import HOSTILE, REPORTS
from browser import opened, program

from kvreshard.proofs.audit.forms.html_form import as_html
from kvreshard.proofs.audit.forms.index import as_index
from kvreshard.proofs.audit.forms.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from browser import Page

NARROW, WIDE = 400, 1280

# For each piece of text its contrast with what is painted behind it, as WCAG 2.2 defines it.
CONTRASTS = """
(() => {
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const light = text => {
    const [r, g, b] = parts(text).slice(0, 3).map(value => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const opaque = text => text.startsWith("rgb") && (parts(text)[3] ?? 1) === 1;
  const behind = (element, box) => {
    const svg = element.closest("svg");
    if (svg) {
      element.scrollIntoView({ block: "center" });
      const at = element.getBoundingClientRect();
      const stack = document.elementsFromPoint(at.x + at.width / 2, at.y + at.height / 2);
      const below = stack.filter(one => one !== element && svg.contains(one) && one !== svg);
      const fills = below.map(one => getComputedStyle(one)).filter(one => one.opacity === "1");
      const fill = fills.map(one => one.fill).find(opaque);
      if (fill) return fill;
    }
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (opaque(colour)) return colour;
    }
    throw new Error("nothing is painted behind " + element.textContent);
  };
  for (const one of document.querySelectorAll("details")) one.open = true;
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const size = element.getBoundingClientRect();
    if (!walker.currentNode.textContent.trim() || !size.width) continue;
    if (["STYLE", "style", "title", "desc"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const colour = element.closest("svg") ? style.fill : style.color;
    const [a, b] = [light(colour), light(behind(element))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), walker.currentNode.textContent.trim().slice(0, 60)]);
  }
  return found;
})()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    browser = program()
    if browser is None:
        pytest.skip("no Chromium here; `python tools/system_deps.py browser` installs one")
    with opened(browser, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(autouse=True)
def no_problems(page: Page) -> Iterator[None]:
    page.problems.clear()
    yield
    assert page.problems == []


def written(folder: Path, key: str) -> Path:
    path = folder / f"{key}.html"
    if key == "index":
        made = as_index([(made(), f"{name}.html") for name, made in REPORTS.items()])
    else:
        made = as_html(REPORTS[key]())
    path.write_text(made, encoding="utf-8")
    return path


def test_the_browser_tells_of_problems(page: Page, tmp_path: Path) -> None:
    # The premise of the other tests.
    path = tmp_path / "bad.html"
    path.write_text(
        "<!DOCTYPE html><img src='gone.png'><img src='http://e.invalid/x.png'>"
        "<script>console.log('said'); undefined.thrown</script>",
        encoding="utf-8",
    )
    page.show(path, width=WIDE)
    told = " ".join(page.problems)
    page.problems.clear()
    for part in ("ERR_FILE_NOT_FOUND", "requested http://e.invalid/x.png", "said", "thrown"):
        assert part in told, part


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("key", [*REPORTS, "index"])
def test_a_page_is_shown(page: Page, tmp_path: Path, key: str, width: int, dark: bool) -> None:
    page.show(written(tmp_path, key), width=width, dark=dark)
    heading = str(page.value("document.querySelector('h1').innerText"))
    if key == "index":
        assert "6 audits" in heading
    else:
        report = REPORTS[key]()
        assert visible(report.source.function.name) in heading
        sentence = page.value("document.querySelector('.sentence').innerText")
        assert sentence == visible(report.sentence)
        boxes = page.value(
            "[...document.querySelectorAll('figure > svg')]"
            ".map(one => one.getBoundingClientRect()).map(one => [one.width, one.height])"
        )
        assert len(boxes) == len(report.findings)
        assert all(min(box) > 50 for box in boxes)
    page.value("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    wide = page.value("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide[0] <= wide[1] == width
    paper = page.value("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("key", ["holds", "fails", "refused", "not_decided", "index"])
def test_every_text_stands_out_from_what_is_behind_it(
    page: Page, tmp_path: Path, key: str, dark: bool
) -> None:
    page.show(written(tmp_path, key), width=WIDE, dark=dark)
    found = page.value(CONTRASTS)
    assert len(found) > 30
    assert [(ratio, text) for ratio, text in found if ratio < 4.5] == []


def test_a_text_that_hardly_stands_out_is_found(page: Page, tmp_path: Path) -> None:
    # The premise of the test above.
    path = tmp_path / "pale.html"
    path.write_text(
        "<!DOCTYPE html><link rel=icon href=data:,><body style='background: #fff'>"
        "<p style='color: #999'>pale</p><p style='color: #000'>black</p>"
        "<svg><rect width='99' height='40' fill='#333'/><text y='20' fill='#444'>dim</text></svg>",
        encoding="utf-8",
    )
    page.show(path, width=WIDE)
    found = {text: ratio for ratio, text in page.value(CONTRASTS)}
    assert found["black"] == pytest.approx(21)
    assert found["pale"] == pytest.approx(2.85, abs=0.01)
    assert found["dim"] == pytest.approx(1.30, abs=0.01)


@pytest.mark.parametrize("key", ["holds", "fails", "refused", "not_decided", "index"])
def test_a_page_prints_on_one_sheet(page: Page, tmp_path: Path, key: str) -> None:
    page.show(written(tmp_path, key), width=WIDE, dark=True)
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf())) == 1


def test_sheets_are_counted(page: Page, tmp_path: Path) -> None:
    # The premise of the test above.
    path = tmp_path / "long.html"
    path.write_text("<!DOCTYPE html><link rel=icon href=data:,>" + "<p>x" * 200, encoding="utf-8")
    page.show(path, width=WIDE)
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf())) > 2


def test_a_target_cannot_run_anything(page: Page, tmp_path: Path) -> None:
    page.show(written(tmp_path, "hostile"), width=WIDE)
    assert page.value("document.scripts.length") == 0
    assert str(page.value("document.title")).endswith(visible(HOSTILE))
    # Even a script that got into the page would not run.
    broken = written(tmp_path, "hostile")
    text = broken.read_text(encoding="utf-8").replace(
        "<main>", "<main><script>document.title = 'run'</script>"
    )
    broken.write_text(text, encoding="utf-8")
    page.show(broken, width=WIDE)
    assert page.value("document.title") != "run"
    assert any("Content Security Policy" in problem for problem in page.problems)
    page.problems.clear()
