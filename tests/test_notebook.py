"""The example notebook runs, and heron's objects show themselves as HTML in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("IPython")
pytest.importorskip("jax")

TOUR = Path(__file__).parent.parent / "examples" / "tour.ipynb"

#: runs the cells in one shell of IPython; prints, for each cell with a value, its type and its HTML as one JSON line
_RUN = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for source in json.load(open(sys.argv[1])):
    done = shell.run_cell(source)
    done.raise_error()
    if done.result is not None:
        data, _ = shell.display_formatter.format(done.result)
        sys.stderr.write(json.dumps([type(done.result).__name__, data.get("text/html", "")]) + "\\n")
"""


def _shown(tmp_path: Path, cells: list[str]) -> list[tuple[str, str]]:
    file = tmp_path / "cells.json"
    file.write_text(json.dumps(cells))
    done = subprocess.run([sys.executable, "-c", _RUN, str(file)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('["')]
    return [(kind, html) for kind, html in lines]


def test_the_tour_runs_and_shows_its_objects(tmp_path: Path) -> None:
    cells = ["".join(c["source"]) for c in json.loads(TOUR.read_text())["cells"] if c["cell_type"] == "code"]
    shown = _shown(tmp_path, cells)
    kinds = [kind for kind, html in shown if html]
    assert kinds[0] == "Module" and kinds[1:3] == ["Explanation", "Answer"]
    assert len(kinds) == 4  # and the simulated executable
    by_kind = dict(shown)
    assert "data:image/svg+xml" in by_kind["Module"] and "HloModule" in by_kind["Module"]
    assert "decision" in by_kind["Answer"] and "temp" in by_kind["Explanation"]


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    cells = [
        "import heron",
        "text = 'HloModule m\\n\\nENTRY e {\\n  ROOT x = f32[2]{0} parameter(0)\\n}\\n'",
        "m = heron.parse(text); m.name = '<script>alert(1)</script>'; m",
        "from heron.trace.record import Decision; Decision(True, '<script>', '<b>')",
        "heron.compile(heron.parse(text))",
    ]
    shown = dict(_shown(tmp_path, cells))
    assert set(shown) == {"Module", "Decision", "CpuExecutable"}
    for html in shown.values():
        assert html and "<script" not in html and "<b>" not in html


def test_nothing_is_registered_outside_of_ipython() -> None:
    code = "import heron, sys; assert 'heron.notebook' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
