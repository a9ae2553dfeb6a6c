"""The page in a real browser: every view draws, nothing is logged, keys and links lead where they say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver

from heron import targets
from heron.backends.compiler import Compilation
from heron.frontends import load
from heron.hlo.text import parse
from heron.options import Options
from heron.trace import Trace
from heron.view.page import write
from heron.view.record.recording import Recording
from heron.view.record.versions import Versions
from tests.view.browser import chromium
from tests.view.test_page import hostile_trace

EXAMPLES = Path(__file__).parents[2] / "examples"
VIEWS = ("overview", "timeline", "program", "graph", "kernels", "memory", "roofline", "why")


@pytest.fixture(scope="module")
def browser() -> Iterator[WebDriver]:
    with chromium() as made:
        yield made


def _trace(file: str, target: str, **options: Any) -> Trace:
    module = load(EXAMPLES / file, verify=True)
    trace = Trace(module.name, target)
    recording = Recording(trace, full=True)
    compilation = Compilation(module, targets.get(target), Options(**options), trace)
    compilation.executable()
    recording.finish(compilation)
    return trace


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("view") / "softmax.html"
    write(_trace("transformer_block.small.hlo", "sm_90"), path, _trace("transformer_block.small.hlo", "sm_80"))
    return path.as_uri()


def _until(browser: WebDriver, script: str, seconds: float = 20.0) -> Any:
    """The value of a script as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := browser.execute_script(f"return {script}")):
        assert time.monotonic() < end, f"never true: {script}"
        time.sleep(0.03)
    return found


def _complaints(browser: WebDriver) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]


def _at(browser: WebDriver, page: str, place: str) -> None:
    browser.get("about:blank")
    browser.get(page + place)
    _until(browser, "document.querySelector('nav a.on')")


def _press(browser: WebDriver, button: str) -> None:
    browser.execute_script(
        f"[...document.querySelectorAll('.bar button')].find(b => b.textContent === '{button}').click()"
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_draws_and_nothing_is_logged(browser: WebDriver, page: str, theme: str) -> None:
    _at(browser, page, "")
    browser.execute_script(f"document.documentElement.dataset.theme = '{theme}'")
    for view in (*VIEWS, "difference"):
        browser.execute_script(f"location.hash = '#{view}'")
        _until(browser, f"document.querySelector('nav a.on').hash === '#{view}'")
        drawn = (
            "document.querySelectorAll('main .row, main .cm-line, main .card, main svg path, main canvas').length > 0"
        )
        _until(browser, drawn)
    assert _complaints(browser) == []


def test_a_link_leads_to_an_instruction_after_a_pass(browser: WebDriver, page: str) -> None:
    _at(browser, page, "#overview")
    version, name = browser.execute_script(
        "const d = JSON.parse(document.getElementById('data').textContent);"
        "const p = d.programs.versions.length - 1; return [p, d.roofline.steps[0][0]];"
    )
    _at(browser, page, f"#program/{version}/{name}")
    assert _until(browser, "document.querySelector('.inspector h2')?.textContent") == name
    picked = _until(browser, "document.querySelector('.text .cm-line.cm-pick')?.textContent")
    assert f"%{name} = " in picked
    assert "Who changed it" in browser.execute_script("return document.querySelector('.inspector').textContent")


def test_changed_lines_are_marked(browser: WebDriver, page: str) -> None:
    _at(browser, page, "#program")
    _until(browser, "document.querySelector('.side .row')")
    browser.find_element("tag name", "body").send_keys("]")
    _until(browser, "location.hash === '#program/1'")
    marks = _until(
        browser, "[...document.querySelectorAll('.text .signs .cm-gutterElement')].map(m => m.textContent).join('')"
    )
    assert set(marks) & set("+−")
    assert browser.execute_script("return document.querySelectorAll('.cm-line.cm-plus, .cm-line.cm-minus').length") > 0
    browser.find_element("tag name", "body").send_keys("[")
    _until(browser, "location.hash === '#program/0'")


def test_keys_search_and_go(browser: WebDriver, page: str) -> None:
    _at(browser, page, "#overview")
    body = browser.find_element("tag name", "body")
    body.send_keys("5")
    _until(browser, "location.hash === '#kernels'")
    body.send_keys("/")
    _until(browser, "document.querySelector('.dialog input')")
    name = browser.execute_script(
        "return JSON.parse(document.getElementById('data').textContent).kernels.kernels[1].name"
    )
    ActionChains(browser).send_keys(name, Keys.ENTER).perform()
    _until(browser, f"location.hash.startsWith('#kernels/{name}')")
    body.send_keys("?")
    _until(browser, "document.querySelector('.keys')")
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    _until(browser, "!document.querySelector('.dialog')")
    before = browser.execute_script("return document.documentElement.dataset.theme")
    body.send_keys("d")
    _until(browser, f"document.documentElement.dataset.theme !== '{before}'")
    assert _complaints(browser) == []


def test_a_line_of_a_kernel_marks_its_lines_in_every_text(browser: WebDriver, tmp_path: Path) -> None:
    trace, path = _trace("softmax.small.hlo", "sm_90"), tmp_path / "softmax.html"
    write(trace, path)
    _at(browser, path.as_uri(), f"#kernels/{trace.kernels[0].name}/hlo/emission/ptx")
    _until(browser, "document.querySelectorAll('.column').length === 3")
    rows = "[...document.querySelectorAll('.column')[{}].querySelectorAll('.cm-line')]"
    pinned = f"{rows}.filter(r => r.matches('.cm-pin')).map(r => r.textContent)"

    def click(column: int, word: str) -> None:
        row = f"{rows.format(column)}.find(r => r.textContent.includes('{word}'))"
        _until(browser, f"{row}?.querySelector('span')").click()

    click(0, " exponential(")
    assert any("math.exp" in line for line in _until(browser, pinned.format(1)))
    _until(browser, f"{pinned.format(2)}.length")
    click(0, " divide(")
    _until(browser, f"{pinned.format(1)}.some(t => t.includes('arith.divf'))")
    click(1, "math.exp")
    found = _until(browser, f"{pinned.format(0)}.some(t => t.includes(' exponential(')) && {pinned.format(0)}")
    assert len(found) == 1
    place = browser.execute_script("return location.hash")
    assert ":" in place.split("/")[3]
    _at(browser, path.as_uri(), place)
    assert _until(browser, f"{pinned.format(0)}.length && {pinned.format(0)}") == found
    assert _complaints(browser) == []


def test_decisions_are_filtered_as_one_types(browser: WebDriver, page: str) -> None:
    _at(browser, page, "#why/priority-fusion")
    shown = "[...document.querySelectorAll('.cells .row')].map(r => r.textContent)"
    assert all("priority-fusion" in row for row in _until(browser, shown))
    field = browser.find_element("css selector", "[aria-label='filter decisions']")
    field.send_keys(" no-such-word")
    _until(browser, "document.querySelectorAll('.cells .row').length === 0")
    assert "no-such-word" in browser.execute_script("return decodeURIComponent(location.hash)")


def test_a_cluster_opens_and_closes(browser: WebDriver, page: str) -> None:
    _at(browser, page, "#graph")
    boxes: Callable[[], int] = lambda: int(  # noqa: E731
        _until(browser, "document.querySelector('.bar span.dim').textContent.match(/^[\\d,]+/)")[0].replace(",", "")
    )
    whole = boxes()
    _press(browser, "close all")
    _until(browser, f"!document.querySelector('.bar span.dim').textContent.startsWith('{whole} ')")
    assert boxes() < whole
    _until(browser, "!document.querySelector('.bar span.dim').textContent.includes('laid out')")
    assert _complaints(browser) == []


def test_a_text_is_searched_and_folded(browser: WebDriver, page: str) -> None:
    _at(browser, page, "#program/0")
    lines = "[...document.querySelectorAll('.text .cm-line')]"
    _until(browser, f"{lines}.some(l => l.textContent.includes(' = '))")
    browser.find_element("css selector", ".cm-foldGutter span[title='Fold line']").click()
    folded = _until(browser, "document.querySelector('.cm-foldPlaceholder')")
    assert "lines" in folded.text
    folded.click()
    _until(browser, "!document.querySelector('.cm-foldPlaceholder')")
    browser.find_element("tag name", "body").send_keys("f")
    _until(browser, "document.activeElement.name === 'search'")
    ActionChains(browser).send_keys("exponential(", Keys.ENTER).perform()
    found = _until(browser, "document.querySelector('.cm-searchMatch-selected')?.textContent")
    assert found == "exponential("
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    _until(browser, "!document.querySelector('.cm-search')")
    assert _complaints(browser) == []


def test_two_versions_side_by_side_fold_and_scroll_together(browser: WebDriver, page: str) -> None:
    _at(browser, page, "#program/1")
    _press(browser, "side by side")
    folds = "[...document.querySelectorAll('.text')].map(t => t.querySelectorAll('.cm-foldPlaceholder').length)"
    _until(browser, f"{folds}.length === 2")
    _press(browser, "changes only")
    _until(browser, f"{folds}.every(n => n === 0)")
    browser.find_element("css selector", ".cm-foldGutter span[title='Fold line']").click()
    _until(browser, f"{folds}.every(n => n === 1)")
    browser.find_element("css selector", ".cm-foldPlaceholder").click()
    _until(browser, f"{folds}.every(n => n === 0)")
    tops = "[...document.querySelectorAll('.text .cm-scroller')].map(t => t.scrollTop)"
    browser.execute_script("document.querySelector('.text .cm-scroller').scrollTop = 200")
    _until(browser, f"{tops}.every(t => t === {tops}[0] && t > 0)")
    _press(browser, "side by side")
    _press(browser, "changes only")
    assert _complaints(browser) == []


def test_a_key_opens_the_chosen_cluster(browser: WebDriver, page: str) -> None:
    find = (
        "const d = JSON.parse(document.getElementById('data').textContent), v = d.programs.versions.length - 1;"
        "const line = d.programs.lines.findLast(l => / fusion\\(/.test(l) && !l.startsWith('ROOT'));"
        "return [v, line.slice(1, line.indexOf(' '))];"
    )
    _at(browser, page, "#overview")
    version, name = browser.execute_script(find)
    _at(browser, page, f"#graph/{version}")
    said = "document.querySelector('.bar span.dim').textContent"
    opened = _until(browser, f"{said}.includes('boxes;') && {said}")
    _press(browser, "close all")
    _until(browser, f"{said}.includes('boxes;') && {said} !== '{opened}'")
    closed = browser.execute_script(f"return {said}")
    browser.execute_script(f"location.hash = '#graph/{version}/{name}'")
    _until(browser, f"document.querySelector('.inspector h2')?.textContent === '{name}'")
    canvas = browser.find_element("css selector", ".stage canvas")
    canvas.send_keys(Keys.ENTER)
    _until(browser, f"{said}.includes('boxes;') && {said} !== '{closed}'")
    canvas.send_keys(Keys.ENTER)
    _until(browser, f"{said} === '{closed}'")
    assert _complaints(browser) == []


_PLACES = """
const [graph, first, done] = arguments, found = [];
const worker = new Worker(URL.createObjectURL(new Blob([document.getElementById("layout").textContent])));
worker.onmessage = ({ data }) => {
  found.push(data.places);
  if (data.done === data.total) done([found[0], found.flat()]);
};
worker.postMessage({ job: 1, graph, first });
"""


@pytest.mark.parametrize("seed", range(3))
def test_boxes_have_places_that_do_not_overlap(browser: WebDriver, page: str, seed: int) -> None:
    random = Random(seed)
    graph = _graph(random, 700, lambda n: [_graph(random, 9, lambda _: [])] * (n % 50 == 7))
    _at(browser, page, "#overview")
    begun, places = browser.execute_async_script(_PLACES, graph, 400)
    assert 400 in [p["box"] for p in begun], "the chosen box is among those placed first"
    assert sorted(p["box"] for p in places) == list(range(700))
    _apart(places)
    for p in places:
        for inner in p["inside"]:
            _apart(inner["places"])
            assert all(0 <= i["x"] and inner["x"] + i["x"] + i["width"] <= p["width"] for i in inner["places"])
            assert all(0 <= i["y"] and inner["y"] + i["y"] + i["height"] <= p["height"] for i in inner["places"])


def _graph(random: Random, count: int, inside: Callable[[int], list[Any]]) -> dict[str, Any]:
    """A graph as the page sends it: near edges, far ones, a box that many read, lonely boxes."""
    sized = [{"width": random.randint(70, 400), "height": 38, "inside": inside(n)} for n in range(count)]
    edges = {(random.randint(max(0, n - 12), n - 1), n) for n in range(1, count) for _ in range(2) if n % 9}
    edges |= {(0, n) for n in range(3, count, 5)} | {(random.randrange(n), n) for n in range(1, count, 11)}
    return {"boxes": sized, "edges": [list(e) for e in sorted(edges, key=lambda e: e[::-1])]}


def _apart(places: list[dict[str, Any]]) -> None:
    for a, b in combinations(places, 2):
        beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
        assert beside or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"], (a, b)


def test_hostile_names_stay_text(browser: WebDriver, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    write(hostile_trace(), path, Trace("m", "other"))
    _at(browser, path.as_uri(), "")
    for view in (*VIEWS, "devices", "difference"):
        browser.execute_script(f"location.hash = '#{view}'")
        _until(browser, f"document.querySelector('nav a.on').hash === '#{view}'")
        time.sleep(0.05)
    assert browser.execute_script("return [window.hacked ?? 0, document.querySelectorAll('img').length]") == [0, 0]
    assert browser.execute_script("return document.querySelectorAll('script').length") == 4
    assert _complaints(browser) == []


def test_ten_thousand_instructions_scroll(browser: WebDriver, tmp_path: Path) -> None:
    lines = ["  x0 = f32[8]{0} parameter(0)"]
    lines += [f"  x{n} = f32[8]{{0}} add(x{n - 1}, x{max(0, n - 40)})" for n in range(1, 10_000)]
    text = "HloModule m\n\nENTRY e {\n" + "\n".join(lines) + "\n  ROOT r = f32[8]{0} negate(x9999)\n}\n"
    trace = Trace("m", "cpu")
    versions = Versions(trace)
    versions.after("", parse(text))
    trace.versions = versions.to_json()
    path = tmp_path / "large.html"
    write(trace, path)
    _at(browser, path.as_uri(), "#program/0")
    _until(browser, "document.querySelectorAll('.text .cm-line').length > 10")
    browser.execute_script("document.querySelector('.text .cm-scroller').scrollTop = 9000 * 18")
    _until(browser, "[...document.querySelectorAll('.text .cm-line')].some(r => r.textContent.includes('%x9000 '))")
    assert browser.execute_script("return document.querySelectorAll('.cm-line').length") < 400
    browser.execute_script("location.hash = '#graph/0/x5000'")
    assert _until(browser, "document.querySelector('.inspector h2')?.textContent") == "x5000"
    _until(browser, "document.querySelector('.stage')?.parentElement.textContent.includes('10,001 boxes')")
    _until(browser, "!document.querySelector('.stage').parentElement.textContent.includes('laid out')", 120)
    assert _complaints(browser) == []
