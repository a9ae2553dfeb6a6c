"""The page's file: what it contains, and that no text of a program can become code."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from pathlib import Path

import pytest

from heron import HeronError
from heron.cli.main import invoke
from heron.trace import Decision, Trace
from heron.view.document import document
from heron.view.page import SCRIPTS, embedded, html, script

HOSTILE = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">\u2028\u2029&{{STYLE}}'
SOFTMAX = str(Path(__file__).parents[2] / "examples" / "softmax.small.hlo")
STATIC = resources.files("heron.view").joinpath("static")


def hostile_trace() -> Trace:
    """A trace in which every text is hostile."""
    t = Trace(HOSTILE, HOSTILE)
    t.options = {HOSTILE: HOSTILE}
    with t.stage(HOSTILE):
        t.record_pass(HOSTILE, True, 0.1, 1, 2, HOSTILE, {HOSTILE: 1})
    with t.beside(HOSTILE):
        pass
    t.kernel(HOSTILE, HOSTILE, [HOSTILE]).launch["work_items"] = 4
    t.count_thunk(HOSTILE)
    t.decide(Decision(False, HOSTILE, HOSTILE, HOSTILE, HOSTILE, 1.0, 2.0))
    t.became = {"x": HOSTILE}
    t.memory = {HOSTILE: 1, "peak": 1}
    t.note(HOSTILE)
    line = f'%x = f32[4]{{0}} custom-call(), custom_call_target="{HOSTILE}"'
    t.versions = {
        "lines": [line, f"ROOT {line}"],
        "origins": [0, 0],
        "places": [HOSTILE],
        "versions": [{"pass": -1, "computations": [["ENTRY e", [0]]]}, {"pass": 0, "computations": [["ENTRY e", [1]]]}],
    }
    text = {"lines": [HOSTILE], "of": [0]}
    t.texts = [{"name": HOSTILE, "instruction": HOSTILE, "names": [HOSTILE], "steps": [["hlo", text], [HOSTILE, text]]}]
    value = {"name": HOSTILE, "shape": HOSTILE, "offset": 0, "size": 4, "live": [[0, 2]], "from": HOSTILE}
    t.buffers = {
        "allocations": [{"kind": "temp", "size": 4, "values": [value]}],
        "schedule": [[HOSTILE, 0]],
        "profile": {"used": [4, 4, 4]},
    }
    step = {"name": HOSTILE, "opcode": HOSTILE, "unit": HOSTILE, "limit": "memory", "source": HOSTILE, "op_name": "a/b"}
    numbers = ("runs", "seconds", "launch_seconds", "compute_seconds", "memory_seconds", "roofline_fraction", "flops")
    step |= {"runs_known": True, "reads": [{"distinct": 4}], "written": 4} | dict.fromkeys(numbers, 1.0)
    machine = {"description": HOSTILE, "memory_bandwidth": 1e9, "flops": {HOSTILE: 1e9, "f32": 1e9}}
    t.costs = {"machine": machine, "seconds": 1.0, "bytes": 8, "flops": 1.0, "steps": [step]}
    link = {"name": HOSTILE, "members": 2}
    collective = {"name": HOSTILE, "opcode": HOSTILE, "from": HOSTILE, "devices": 2, "links": [link], "runs": 1}
    collective |= {"runs_known": True, "bytes": 1, "wire_bytes": 1.0, "seconds": 1.0, "exposed_seconds": 0.5}
    t.devices = {
        "mesh": [[HOSTILE, 2]],
        "replicas": 1,
        "partitions": 2,
        "arrays": [[HOSTILE, HOSTILE, HOSTILE, 0]],
        "tilings": [{"tiles": [HOSTILE], "of": [0, 0]}],
        "collectives": [collective],
        **dict.fromkeys(("seconds", "compute_seconds", "communication_seconds", "exposed_seconds", "wire_bytes"), 1.0),
    }
    return t


def test_no_text_of_a_program_ends_the_data() -> None:
    page = html(document(hostile_trace(), Trace(HOSTILE, "other")))
    assert page.count("</script>") == 4  # the data's, the layout's, CodeMirror's and the page's own
    assert "<img" not in page and "\u2028" not in embedded(HOSTILE)
    assert json.loads(embedded([HOSTILE])) == [HOSTILE]
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None and json.loads(data.group(1))["overview"]["module"] == HOSTILE
    title = re.search(r"<title>(.*?)</title>", page, re.DOTALL)
    assert title is not None and "<" not in title.group(1)


def test_only_the_page_s_own_script_may_run() -> None:
    page = html(document(Trace("m")))
    codes = re.findall(r"<script(?: type=\"module\")?>(.*?)</script>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in codes]
    policy = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert len(codes) == 2 and f"script-src {policy};" in page and "default-src 'none'" in page
    ours = script() + page.split("<script", 1)[0]
    assert not re.search(r"https?://(?!www\.w3\.org/)", ours), "the page asks for nothing"


def test_text_never_becomes_markup() -> None:
    ways = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc")
    files = STATIC.joinpath("third_party", "codemirror.min.js"), STATIC.joinpath("worker", "layout.js")
    for text in (script(), *(file.read_text() for file in files)):
        assert not [way for way in ways if way in text]


def test_the_libraries_are_as_they_were_built() -> None:
    folder = STATIC.joinpath("third_party")
    rows = re.findall(
        r"^\| (\S+) \| (.*?) \| (.*?) \| `(\w{64})` \|$", folder.joinpath("README.md").read_text(), re.MULTILINE
    )
    assert {name for name, *_ in rows} == {f.name for f in folder.iterdir() if f.name.endswith(".min.js")}
    locked = json.loads(folder.joinpath("package-lock.json").read_text())["packages"]
    for name, packages, licence, digest in rows:
        code = folder.joinpath(name).read_bytes()
        assert hashlib.sha256(code).hexdigest() == digest, f"{name} is not the file that `npm run build` wrote"
        assert licence == "MIT"
        for package, version in (p.rsplit(" ", 1) for p in packages.split(", ")):
            assert locked[f"node_modules/{package}"]["version"] == version
            assert f"/*! {package} {version}\n".encode() in code, "the file has the package's licence"
        assert b"</script" not in code and b"<!--" not in code


def test_every_script_is_in_the_page_after_those_it_needs() -> None:
    files = {path.name.removesuffix(".js") for path in STATIC.iterdir() if path.name.endswith(".js")}
    assert files == set(SCRIPTS)
    exported: dict[str, set[str]] = {}
    for name in SCRIPTS:
        text = STATIC.joinpath(f"{name}.js").read_text()
        for names, other in re.findall(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', text, re.MULTILINE):
            missing = {n.strip() for n in names.split(",")} - exported[other]
            assert not missing, f"{name}.js imports {missing} of {other}.js"
        assert text.count("\nimport ") + text.startswith("import ") == len(
            re.findall(r"^import \{", text, re.MULTILINE)
        )
        exported[name] = set(re.findall(r"^export (?:const|function|class) (\w+)", text, re.MULTILINE))


def test_a_trace_with_nothing_in_it_has_a_page() -> None:
    assert "window" in html(document(Trace()))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"format": "heron-trace", "version": 2}', "this heron reads version"),
        ('{"format": "heron-trace", "ver', "it is not JSON"),
        ('{"traceEvents": []}', '"format" is not "heron-trace"'),
        ('{"format": "heron-trace", "version": 4, "module": "m"}', "a field is missing"),
    ],
)
@pytest.mark.parametrize("verb", ["view", "diff", "mem"])
def test_a_trace_from_elsewhere_is_refused(verb: str, text: str, said: str, tmp_path, capsys) -> None:
    path = tmp_path / "x.trace"
    path.write_text(text)
    assert invoke([verb, str(path), *([str(path)] if verb == "diff" else [])]) == 2
    assert "CLI013" in (err := capsys.readouterr().err) and said in err


def test_a_page_goes_to_a_page(tmp_path, capsys) -> None:
    trace = tmp_path / "x.trace"
    Trace("m", "cpu").save(trace)
    assert invoke(["view", str(trace), "-o", str(tmp_path / "x.txt")]) == 2
    assert "CLI034" in capsys.readouterr().err
    assert invoke(["view", str(trace), "-o", str(tmp_path / "x.html")]) == 0
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")
    assert invoke(["mem", str(trace)]) == 2
    assert "CLI051" in capsys.readouterr().err


def test_a_compile_writes_its_page_and_a_full_trace(tmp_path, capsys) -> None:
    trace, page = tmp_path / "x.trace", tmp_path / "x.html"
    assert invoke(["compile", SOFTMAX, "-o", str(trace)]) == 0
    plain = Trace.load(trace)
    assert plain.program and plain.costs["steps"] and not plain.texts and not plain.versions
    assert invoke(["compile", SOFTMAX, "-o", str(trace), "--full", "--view", str(page)]) == 0
    full = Trace.load(trace)
    assert [t["name"] for t in full.texts] == [k.name for k in full.kernels]
    assert full.versions["versions"][-1]["pass"] == max(n for n, p in enumerate(full.passes) if p.changed)
    assert '"is_whole":true' in page.read_text()
    capsys.readouterr()
    for wrong in (["--full"], ["--view", "x.txt"], ["--view", str(page), "--to", "hlo"]):
        assert invoke(["compile", SOFTMAX, *wrong]) == 2, wrong
    assert "CLI045" in capsys.readouterr().err


def test_load_refuses_sections_of_the_wrong_kind(tmp_path) -> None:
    path = tmp_path / "x.trace"
    data = Trace("m").to_json()
    path.write_text(json.dumps(data | {"texts": 3}))
    with pytest.raises(HeronError, match="CLI013"):
        Trace.load(path)
