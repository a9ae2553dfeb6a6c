"""`heron.load` and the command line take every form a program comes in, by its content."""

from __future__ import annotations

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import heron
from heron.errors import HeronError
from heron.frontends.loading import is_stablehlo
from heron.hlo.tools.compare import difference
from tests.support import WORKLOADS, golden_values, program
from tests.support import heron as command

MLIR = WORKLOADS / "stablehlo" / "softmax.small.mlir"


@pytest.fixture(scope="module")
def jaxlib_module() -> Any:
    """The softmax program in jaxlib's MLIR."""
    pytest.importorskip("jaxlib")
    from heron.frontends.stablehlo.bytecode import _mlir

    mlir = _mlir()
    return mlir.ir.Module.parse(MLIR.read_text(), mlir.context)


def test_texts_and_paths() -> None:
    want = heron.load(MLIR)
    for source in (str(MLIR), MLIR.read_text(), MLIR.read_bytes(), "// a comment\n" + MLIR.read_text()):
        assert difference(heron.load(source, verify=True), want) is None
    assert heron.load(program("softmax")).entry.parameters
    assert heron.load(program("softmax").read_text()).entry.parameters
    assert want.filename == str(MLIR)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("module @m {}", True),
        ("module attributes {a} {}", True),
        ("#loc = loc(unknown)\nmodule {}", True),
        ("// c\n\nfunc.func @main() {}", True),
        ('"builtin.module"() ({}) : () -> ()', True),
        ("HloModule module", False),
        ("module.1 { x = f32[] parameter(0) }", False),
        ("ENTRY e { ROOT x = f32[] parameter(0) }", False),
    ],
)
def test_what_is_stablehlo(text: str, expected: bool) -> None:
    assert is_stablehlo(text) is expected


def test_bytecode_portable_artifacts_and_vhlo(jaxlib_module: Any, tmp_path: Path) -> None:
    from jaxlib.mlir.dialects import stablehlo

    want = heron.load(MLIR)
    out = io.BytesIO()
    jaxlib_module.operation.write_bytecode(out)
    artifact = stablehlo.serialize_portable_artifact_str(str(jaxlib_module), stablehlo.get_minimum_version())
    for data in (out.getvalue(), artifact):
        assert difference(heron.load(data, verify=True), want) is None
        path = tmp_path / "model.mlirbc"
        path.write_bytes(data)
        assert command("fmt", path).code == 0


def damaged(data: bytes) -> Iterator[bytes]:
    """Cut off, another version, names that are no UTF-8 (at which jaxlib ends the process), and numbers far too large."""
    yield data[:200]
    yield data[:4] + b"\xfd" + data[5:]
    yield data.replace(b"stablehlo", b"stable\xff\xfeo")
    yield data[:120] + b"\x00\xff" * 20 + data[160:]


def test_what_mlir_has_just_written_is_read_once(jaxlib_module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program that JAX hands over is an artifact: to read it a second time took a quarter of a millisecond."""
    from heron.frontends.stablehlo import bytecode

    mlir = bytecode._mlir()
    artifact = mlir.stablehlo.serialize_portable_artifact_str(str(jaxlib_module), mlir.stablehlo.get_current_version())
    want = bytecode.to_text(artifact)
    stablehlo = SimpleNamespace(ir=None, stablehlo=mlir.stablehlo, context=mlir.context)
    monkeypatch.setattr(bytecode, "_mlir", lambda: stablehlo)
    assert bytecode.to_text(artifact, trusted=True) == want
    assert bytecode.to_parts(artifact) == (want, [])


def test_threads_read_side_by_side() -> None:
    """MLIR's context has no locks of its own."""
    mlir = pytest.importorskip("jaxlib.mlir.dialects.stablehlo")
    from heron.frontends.stablehlo import bytecode

    context, version = bytecode._context(), mlir.get_current_version()
    texts = [(MLIR.parent / f"{name}.small.mlir").read_text() for name in ("softmax", "cumsum", "col_sum")]
    modules = [bytecode._mlir().ir.Module.parse(text, context) for text in texts]
    data = [mlir.serialize_portable_artifact_str(str(module), version) for module in modules]
    want = [bytecode.to_text(d, trusted=True) for d in data]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda n: bytecode.to_text(data[n % len(data)], trusted=True), range(300)))
    assert all(text == want[n % len(data)] for n, text in enumerate(found))


def test_damaged_bytecode(jaxlib_module: Any, capfd: pytest.CaptureFixture[str]) -> None:
    out = io.BytesIO()
    jaxlib_module.operation.write_bytecode(out)
    for data in damaged(out.getvalue()):
        with pytest.raises(HeronError, match="SHLO021"):
            heron.load(data)
    assert capfd.readouterr().err == ""


def artifacts() -> Iterator[tuple[str, bytes]]:
    """What JAX exported in the past, kept in jax to see that it still runs."""
    import importlib
    import pkgutil

    folder = pytest.importorskip("jax._src.internal_test_util.export_back_compat_test_data")
    for found in pkgutil.walk_packages(folder.__path__, f"{folder.__name__}."):
        work = [] if found.ispkg else list(vars(importlib.import_module(found.name)).items())
        while work:
            name, value = work.pop()
            if isinstance(value, dict) and "mlir_module_serialized" in value:
                yield f"{found.name}.{name}", value["mlir_module_serialized"]
            elif isinstance(value, dict):
                work += value.items()


@pytest.mark.filterwarnings("ignore")
def test_artifacts_of_earlier_versions() -> None:
    from heron.frontends.stablehlo.bytecode import to_text
    from heron.frontends.stablehlo.importer import parse

    refused, known = [], list(artifacts())
    for name, data in known:
        try:
            parse(to_text(data, name, trusted=True), name, verify=True)
        except HeronError as error:
            refused.append((name, error.code))
    assert len(known) > 100
    assert {code for _, code in refused} <= {"SHLO011"}  # sizes that nobody knows
    assert all("dynamic" in name for name, _ in refused), refused


def test_without_jaxlib(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from heron.frontends.stablehlo import bytecode

    bytecode._mlir.cache_clear()
    monkeypatch.setitem(sys.modules, "jaxlib.mlir", None)
    with pytest.raises(HeronError, match=r"pip install 'heron\[jax\]'") as caught:
        heron.load(b"ML\xefR\r")
    assert caught.value.code == "SHLO020"


@pytest.mark.parametrize("name", ["softmax", "heat_while"])
def test_generic_form_reads_the_same(name: str) -> None:
    pytest.importorskip("jaxlib")
    from heron.frontends.stablehlo.bytecode import _mlir

    mlir = _mlir()
    path = WORKLOADS / "stablehlo" / f"{name}.small.mlir"
    module = mlir.ir.Module.parse(path.read_text(), mlir.context)
    generic = module.operation.get_asm(print_generic_op_form=True)
    assert generic.startswith('"builtin.module"')
    assert difference(heron.load(generic, verify=True), heron.load(path)) is None


def test_verbs_take_stablehlo(tmp_path: Path) -> None:
    golden = golden_values("softmax")
    assert command("eval", MLIR, "--inputs", golden, "--expect", golden).code == 0
    assert command("run", MLIR, "--inputs", golden, "--expect", golden).code == 0
    formatted = tmp_path / "softmax.hlo"
    assert command("fmt", MLIR, "-o", formatted).code == 0
    assert command("fmt", formatted).out == formatted.read_text()
    bad = tmp_path / "bad.mlir"
    bad.write_text(MLIR.read_text().replace("stablehlo.exponential", "stablehlo.exponentail"))
    result = command("fmt", bad)
    assert result.code == 2 and "did you mean 'stablehlo.exponential'?" in result.err and "bad.mlir:" in result.err
