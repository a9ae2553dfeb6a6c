"""Long constants are handed on as bytes: no path prints them, and one bit of one element makes another program."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import heron
from heron import archive, compiling
from heron.archive import modules
from heron.errors import HeronError
from heron.hlo.builder import Builder
from heron.hlo.ir import literal as literals
from heron.hlo.ir.fingerprint import digest
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import array as array_shape
from heron.hlo.ir.types import F32
from heron.hlo.text import literal_printer as texts
from heron.hlo.text.printer import identity
from heron.hlo.tools.compare import equal
from heron.pjrt.client import Client

TYPES = [np.float32, np.float64, np.int32, np.int8, np.uint64, np.complex64, np.float16, ml_dtypes.bfloat16, np.bool_]


def holding(values: np.ndarray, name: str = "held") -> Module:
    """A program that adds a constant to its parameter."""
    b = Builder(name)
    x = b.parameter(0, literals.of(values).shape)
    return b.build(getattr(b, "or" if values.dtype == np.bool_ else "add")(b.constant(values), x), verify=False)


@given(st.data())
def test_one_bit_of_one_element_makes_another_program(data: st.DataObject) -> None:
    dtype = np.dtype(data.draw(st.sampled_from([t for t in TYPES if t is not np.bool_])))
    count = data.draw(st.sampled_from([5, 300, 5000]))
    raw = np.random.default_rng(count).integers(0, 256, count * dtype.itemsize, np.uint8)  # NaNs of all kinds, too
    other = raw.copy()
    other[data.draw(st.integers(0, raw.size - 1))] ^= 1 << data.draw(st.integers(0, 7))
    one, same, two = (holding(v.view(dtype)) for v in (raw, raw.copy(), other))
    assert identity(one) == identity(same) and digest(one.entry) == digest(same.entry)
    assert identity(one) != identity(two) and digest(one.entry) != digest(two.entry)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_key_is_of_the_elements_not_of_how_they_lie(dtype: type) -> None:
    values = np.arange(6000).astype(dtype).reshape(60, 100)
    turned = np.ascontiguousarray(values.T).T
    assert not turned.flags.c_contiguous
    assert literals.of(values) == literals.of(turned) and hash(literals.of(values)) == hash(literals.of(turned))
    spread = np.broadcast_to(np.ones((), dtype), (60, 100))
    assert literals.of(spread).key == literals.of(np.ones((60, 100), dtype)).key != literals.of(values).key


def test_zeros_of_both_signs_and_payloads() -> None:
    shape = array_shape(F32, (2000,))
    bits = [np.full(2000, b, np.uint32).view(np.float32) for b in (0, 1 << 31, 0x7FC00000, 0x7FC00001, 0xFFC00000)]
    assert len({Literal(shape, v).key for v in bits}) == len({Literal(shape, v) for v in bits}) == len(bits)


@pytest.mark.parametrize("dtype", TYPES)
def test_modules_in_files_come_back(dtype: type) -> None:
    module = holding(np.random.default_rng(0).integers(0, 2, 9000).astype(dtype).reshape(90, 100))
    members = modules.pack("m", module)
    assert len(members) == 2 and len(members["m"]) < 2000
    assert str(modules.unpack("m", members)) == modules.in_full("m", members) == str(module)
    with pytest.raises(HeronError, match="TXT011"):
        heron.parse(members["m"].decode())


@pytest.fixture
def nothing_printed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An error for who prints more than a few elements."""
    real = texts._format

    def watched(element_type: object, values: np.ndarray) -> list[str]:
        assert values.size <= 256, f"{values.size} elements are printed"
        return real(element_type, values)  # type: ignore[arg-type]

    monkeypatch.setattr(texts, "_format", watched)
    yield


@pytest.mark.usefixtures("nothing_printed")
def test_no_path_prints_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path))
    values = np.random.default_rng(1).standard_normal((70, 90)).astype(np.float32)
    x, module = np.ones_like(values), holding(values)
    made = Client("cpu").compile(module)
    back = Client("cpu").deserialize(made.serialize())
    assert back.fingerprint == made.fingerprint != Client("cpu").compile(holding(values + 1)).fingerprint
    assert back.name == made.name and equal(back.module, made.module)
    for target in ("cpu", "sim:sm_90"):
        program = heron.compile(module, target)
        archive.save(program, tmp_path / "app.heron")
        assert np.array_equal(heron.load(tmp_path / "app.heron")(x), values + 1)
    options = heron.Options(cache=True)
    for n in (0, 1, 0):
        assert np.array_equal(compiling.compile(holding(values + n), options=options)(x), values + n + 1)


def test_bytecode_gives_arrays() -> None:
    pytest.importorskip("jaxlib")
    from heron.frontends.stablehlo import bytecode
    from heron.frontends.stablehlo.importer import parse

    names = {"f4": "f32", "f8": "f64", "i4": "i32", "u1": "ui8", "?": "i1", "f2": "f16"}
    held = {t: np.random.default_rng(2).integers(0, 2, 90_000).astype(t) for t in names}
    types = [f"tensor<90000x{n}>" for n in names.values()]
    blobs = [f'dense<"0x{v.tobytes().hex()}">' for v in held.values()]
    lines = [f"  %{n} = stablehlo.constant {v} : {types[n]}" for n, v in enumerate(blobs)]
    results, values = ", ".join(types), ", ".join(f"%{n}" for n in range(len(types)))
    lines = [f"func.func public @main() -> ({results}) {{", *lines, f"  return {values} : {results}", "}"]
    text = "\n".join(lines)
    whole = parse(text)
    mlir = bytecode._mlir()
    out = io.BytesIO()
    mlir.ir.Module.parse(text, mlir.context).operation.write_bytecode(out)
    short, arrays = bytecode.to_parts(out.getvalue())
    assert len(short) < 4000 and len(arrays) == len(held)
    assert identity(parse(short, elsewhere=arrays)) == identity(parse(bytecode.to_text(out.getvalue(), trusted=True)))
    assert [i.literal.array.dtype for i in whole.entry.instructions if i.opcode == "constant"] == [*map(np.dtype, held)]


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.complex128, ml_dtypes.bfloat16])
def test_equal_elements_have_one_key_however_they_lie(dtype: type) -> None:
    whole = np.full((60, 100), 3, dtype)
    spread = np.broadcast_to(whole[:1, :1], (60, 100)), np.broadcast_to(whole[:1], (60, 100))
    lying = [whole, np.asfortranarray(whole), *spread]
    assert len({literals.of(array).key for array in lying}) == 1
    other = whole.copy()
    other[30, 50] = 4
    assert literals.of(other).key not in {literals.of(whole).key, literals.of(np.full((60, 100), 4, dtype)).key}


def test_equal_elements_are_compared_by_their_bits() -> None:
    zeros = np.zeros(100, np.float32)
    mixed = zeros.copy()
    mixed[50] = -0.0
    assert len({literals.of(array).key for array in (zeros, -zeros, mixed)}) == 3
    nans = np.full(100, np.nan, np.float32)
    assert literals.of(nans).key == literals.of(np.broadcast_to(nans[:1], 100)).key
