"""``import heron`` and ``heron --help`` stay light: what they load is fixed here, which no busy machine can blur."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = {"jax", "jaxlib", "xdsl", "llvmlite", "scipy", "triton", "numpy", "rich", "click"}


def _loaded(code: str) -> set[str]:
    """Top-level modules loaded after `code` ran in a fresh interpreter."""
    script = f"{code}\nimport sys\nprint(' '.join({{m.partition('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_import_loads_nothing_heavy() -> None:
    assert not _loaded("import heron") & HEAVY


def test_options_targets_and_trace_load_nothing_heavy() -> None:
    code = "import heron; heron.Options; import heron.trace; from heron import targets; targets.get('sm_90')"
    assert not _loaded(code) & HEAVY


def test_help_loads_only_click() -> None:
    code = "from heron.cli.main import invoke\nassert invoke(['--help']) == 0"
    assert not _loaded(code) & (HEAVY - {"click"})


def test_parsing_loads_no_compiler() -> None:
    code = "import heron\nheron.parse('HloModule m\\n\\nENTRY e {\\n  ROOT x = f32[2]{0} parameter(0)\\n}\\n')"
    assert not _loaded(code) & {"jax", "xdsl", "llvmlite", "rich", "click"}


def test_jax_on_another_platform_loads_no_compiler() -> None:
    """JAX loads the plugin of every platform that is installed, and asks it whether it is wanted."""
    code = "import os\nos.environ['JAX_PLATFORMS'] = 'cpu'\nfrom heron.pjrt import jax_plugin\njax_plugin.initialize()"
    script = f"{code}\nimport sys\nprint(*(m for m in sys.modules if m.startswith('heron.')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    parts = {name.split(".")[1] for name in done.stdout.split()}
    assert parts <= {"collector", "errors", "once", "pjrt", "records", "targets"}


@pytest.mark.parametrize(
    "op", ["c64[4,8] fft(x), fft_type=FFT, fft_length={8}", "c64[4,4] cholesky(x), lower=true"], ids=["fft", "cholesky"]
)
def test_compiles_for_the_cpu_load_no_library_of_gpus(op: str) -> None:
    program = f"HloModule m\\nENTRY e {{ x = {op.partition(' ')[0]} parameter(0)\\n ROOT y = {op} }}"
    script = f"import heron, sys\nheron.compile(heron.parse('{program}'))\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "heron.backends.calls" in done.stdout and "cuda.libraries" not in done.stdout


def test_public_names() -> None:
    import heron

    for name in heron.__all__:
        assert getattr(heron, name) is not None
    assert set(heron.__all__) <= set(dir(heron))


def test_unknown_name_is_an_attribute_error() -> None:
    import heron

    assert not hasattr(heron, "no_such_name")


def test_python_dash_m_gives_the_version() -> None:
    import heron

    done = subprocess.run([sys.executable, "-m", "heron", "--version"], capture_output=True, text=True, check=True)
    assert heron.__version__ in done.stdout


def test_imports_go_down_the_table_of_folders() -> None:
    """A folder imports itself, folders above it in the table of the architecture page, and files of no folder."""
    (page,) = ROOT.glob("docs/**/architecture.md")
    order = re.findall(r"^\| `(\w+)` \|", page.read_text(), re.M)
    wrong: list[str] = []
    for file in (ROOT / "heron").rglob("*.py"):
        folder = file.relative_to(ROOT / "heron").parts[0]
        if folder not in order:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                parts = name.split(".")
                if parts[0] == "heron" and len(parts) > 1 and parts[1] in order[order.index(folder) + 1 :]:
                    wrong.append(f"{file.relative_to(ROOT)} imports {name}")
    assert not wrong
