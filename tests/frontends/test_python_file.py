"""``model.py:function`` wherever a program's name is taken."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import heron
from heron.errors import HeronError, Span
from tests.support import heron as command

pytest.importorskip("jax")

SOURCE = """
from dataclasses import dataclass
import jax, jax.numpy as jnp, numpy as np
import heron
from helper import double

def layer(x: "f32[2,3]", w: "f32[3,4]"):
    return jnp.tanh(double(x) @ w)

def partly(x, y=np.ones(3, np.float32)):
    return x + y

partly_args = lambda: ({"a": jax.ShapeDtypeStruct((3,), np.int32)}["a"],)

@jax.jit
def jitted(x):
    return jnp.linalg.cholesky(x)

jitted_args = [jax.ShapeDtypeStruct((3, 3), np.float32)]

@heron.jit
def ours(x: "f32[4]"):
    return x + 1

lowered = jax.jit(layer).lower(np.ones((5, 3), np.float32), np.ones((3, 2), np.float32))
exported = jax.export.export(jax.jit(double))(np.ones(7, np.float32))
module = heron.parse("HloModule given\\nENTRY e {\\n ROOT c = f32[8] parameter(0)\\n}\\n")

def text():
    return "HloModule given\\nENTRY e {\\n ROOT c = f32[9] parameter(0)\\n}\\n"

def constant():
    return jnp.arange(3)

@dataclass
class Model:
    @staticmethod
    def apply(x: "bf16[6]"):
        return x * 2

def wrong(x: "f32[2,3]"):
    y = x + 1
    return y @ y

def leaves(x: "f32[2]"):
    raise SystemExit(3)

def unknown(x):
    return x

number = 3
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("programs")
    (folder / "helper.py").write_text("def double(x):\n    return x * 2\n")
    (folder / "model.py").write_text(SOURCE)
    return str(folder / "model.py")


TAKES = {
    "layer": ["f32[2,3]", "f32[3,4]"],
    "layer(f32[5,3], f32[3,2])": ["f32[5,3]", "f32[3,2]"],
    "layer(f64[5,3],f64[3,2])": ["f64[5,3]", "f64[3,2]"],
    "partly": ["s32[3]"],
    "jitted": ["f32[3,3]"],
    "ours": ["f32[4]"],
    "lowered": ["f32[5,3]", "f32[3,2]"],
    "exported": ["f32[7]"],
    "module": ["f32[8]"],
    "text": ["f32[9]"],
    "constant": [],
    "Model.apply": ["bf16[6]"],
}


@pytest.mark.parametrize("name", TAKES)
def test_load(file: str, name: str) -> None:
    module = heron.load(f"{file}:{name}", verify=True)
    assert [str(p.shape.bare) for p in module.entry.parameters] == TAKES[name]


def test_parameters_with_defaults_take_their_shape(file: str, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text('def f(x: "f32[3]", y=2.0):\n    return x * y\n')
    module = heron.load(f"{tmp_path}/plain.py:f")
    assert [str(p.shape.bare) for p in module.entry.parameters] == ["f32[3]", "f32[]"]


def test_verbs(file: str) -> None:
    for verb in ("run", "eval"):
        result = command(verb, f"{file}:layer", "--random", "0")
        assert result.code == 0 and "2x4" in result.out, result.err
    assert "tanh" in command("fmt", f"{file}:layer").out
    assert "cusolver_potrf_ffi" in str(heron.load(f"{file}:jitted", platform="cuda"))
    assert command("compile", f"{file}:partly", "--to", "hlo").code == 0


ERRORS = {
    "laier": ("JAX004", "did you mean 'layer'?"),
    "": ("JAX004", "layer, partly"),
    "Model.aply": ("JAX004", "did you mean 'apply'?"),
    "number": ("JAX006", "of type int"),
    "unknown": ("JAX005", "argument 'x'"),
    "layer(f32[2,3": ("JAX005", "not a list of shapes"),
    "layer(f32[2,3] f32[2])": ("JAX005", "not a list of shapes"),
    "layer(q7[2])": ("JAX005", "q7"),
    "layer(f32[2,3])": ("JAX003", "missing 1 required positional argument"),
    "wrong": ("JAX003", "return y @ y"),
    "leaves": ("JAX003", "raise SystemExit(3)"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(file: str, name: str) -> None:
    code, says = ERRORS[name]
    with pytest.raises(HeronError) as caught:
        heron.load(f"{file}:{name}" if name else file)
    assert caught.value.code == code and says in str(caught.value)


@pytest.mark.parametrize(
    ("source", "line"),
    [("import os\ndef f(:\n", 2), ("x = 1\nx = x / 0\n", 2), ("import nowhere_to_be_found\n", 1), ("\x00", 0)],
)
def test_files_that_cannot_be_imported(tmp_path: Path, source: str, line: int) -> None:
    (tmp_path / "broken.py").write_text(source)
    with pytest.raises(HeronError, match="JAX003") as caught:
        heron.load(f"{tmp_path}/broken.py:f")
    where = caught.value.where
    assert not line or isinstance(where, Span) and where.line == line
    assert str(tmp_path) not in sys.path and "broken" not in sys.modules


def test_no_such_file(tmp_path: Path) -> None:
    result = command("fmt", f"{tmp_path}/nothing.py:f")
    assert result.code == 2 and "CLI010" in result.err and "no such file" in result.err


def test_without_jax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.py").write_text("import jax\ndef f(x: 'f32[2]'):\n    return x\n")
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(HeronError, match=r"pip install 'heron\[jax\]'") as caught:
        heron.load(f"{tmp_path}/model.py:f")
    assert caught.value.code == "JAX001"
