"""Arrays from and to ``.npz`` files, and random ones.

Two kinds of file are read. The workload format has ``in0…``, ``out0…`` and ``meta``, a JSON text with dtype and shape
of each (dtypes NumPy lacks are stored as unsigned views) and ``kept_inputs``: which inputs the program keeps as
parameters, in order. Any other file holds plain arrays, in parameter order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import ml_dtypes
import numpy as np

from heron import files
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

_NUMBERED = re.compile(r"(in|out)(\d+)")
#: an integer parameter may be an index or a count, so random ones stay small and non-negative
_INTEGERS_BELOW = 8


@dataclass(frozen=True)
class Values:
    """Contents of a values file: arrays for the parameters, and the outputs expected.

    ``plain`` arrays are unnamed: they are `inputs`, or outputs where outputs are requested.
    """

    name: str
    inputs: list[np.ndarray] = field(default_factory=list)
    outputs: list[np.ndarray] = field(default_factory=list)
    plain: bool = False


def read(path: str) -> Values:
    """Read a ``.npz`` (or one array as ``.npy``).

    Raises CLI010 (cannot be read), CLI030 (damaged or not such a file), CLI031 (its meta does not fit its arrays).
    """
    arrays = _arrays(path)
    meta = _meta(path, arrays.pop("meta", None))
    numbered = {name: _NUMBERED.fullmatch(name) for name in arrays}
    if meta is None and not any(numbered.values()):
        return Values(path, list(arrays.values()), plain=True)
    if meta is None:
        return Values(path, _series(path, arrays, "in"), _series(path, arrays, "out"))
    inputs = _typed(path, _series(path, arrays, "in"), meta.get("inputs"), "inputs")
    outputs = _typed(path, _series(path, arrays, "out"), meta.get("outputs"), "outputs")
    kept = meta.get("kept_inputs", list(range(len(inputs))))
    if not isinstance(kept, list) or not all(isinstance(k, int) and 0 <= k < len(inputs) for k in kept):
        raise _bad_meta(path, f"kept_inputs is {kept}, the file holds {len(inputs)} inputs")
    return Values(path, [inputs[k] for k in kept], outputs)


def write(path: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
    """Write a file in the workload format, whole or not at all. Raises CLI012."""
    stored: dict[str, np.ndarray] = {}
    meta: dict[str, Any] = {"inputs": [], "outputs": [], "kept_inputs": list(range(len(inputs)))}
    for kind, prefix, arrays in (("inputs", "in", inputs), ("outputs", "out", outputs)):
        for n, array in enumerate(arrays):
            meta[kind].append({"dtype": array.dtype.name, "shape": list(array.shape)})
            stored[f"{prefix}{n}"] = array if _is_native(array.dtype) else array.view(_unsigned(array.dtype))
    stored["meta"] = np.array(json.dumps(meta))
    with files.replacing(path) as out:
        np.savez(out, allow_pickle=False, **stored)  # type: ignore[arg-type]


def leaves(module: Module) -> list[tuple[str, Shape]]:
    """Name and shape of each array the program takes, tuples flattened."""
    found = []
    for p in module.entry.parameters:
        for index, leaf in p.shape.leaves():
            if leaf.is_array:
                found.append((p.name + "".join(f".{n}" for n in index), leaf))
    return found


def fit(arrays: Sequence[np.ndarray], module: Module, source: str) -> list[np.ndarray]:
    """Arrays with the dtypes of the parameters: unsigned and untyped views are reinterpreted, nothing is converted.

    Raises RUN001 (count), RUN002 (dtype), RUN003 (shape).
    """
    wanted = leaves(module)
    if len(arrays) != len(wanted):
        why = f"parameters: {', '.join(f'{n}: {s.bare}' for n, s in wanted) or 'none'}"
        what = f"the program takes {len(wanted)} arrays, '{source}' holds {len(arrays)}"
        raise HeronError("RUN001", what, why=why)
    fitted = []
    for n, (array, (name, shape)) in enumerate(zip(arrays, wanted, strict=True)):
        dtype = shape.element_type.dtype
        if array.dtype != dtype and not _is_native(dtype) and array.dtype.itemsize == dtype.itemsize:
            if array.dtype.kind in "Vu":
                array = array.view(dtype)
        place = f"input {n} ('{name}') from '{source}'"
        if array.dtype != dtype:
            what = f"{place} has dtype {array.dtype}, the program takes {shape.element_type}"
            raise HeronError("RUN002", what, hint=f"save it as {dtype.name}")
        if not shape.fits(array.shape):
            what = f"{place} has shape {list(array.shape)}, the program takes {shape.bare}"
            raise HeronError("RUN003", what, why=shape.misfit(array.shape))
        fitted.append(array)
    return fitted


def random(module: Module, seed: int) -> list[np.ndarray]:
    """An array for each parameter: floats from 0 to 1, integers from 0 to 7, fair booleans; the same for the same seed.

    Floats are positive because some parameters are variances or go into logarithms: programs should give numbers. For
    the same reason square matrices of floats are diagonally dominant in a program that takes a Cholesky factor.
    """
    generator = np.random.default_rng(seed)
    arrays = [_random(generator, shape) for _, shape in leaves(module)]
    if any(map(_is_cholesky, module.instructions())):
        for array in arrays:
            _dominate(array)
    return arrays


def _is_cholesky(i: Instruction) -> bool:
    return i.opcode == "cholesky" or "potrf" in i.attrs.get("custom_call_target", "")


def _dominate(array: np.ndarray) -> None:
    """Add twice the number of rows to the diagonals of square matrices: above the sum of any row or column."""
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.dtype.kind not in "fc":
        return
    rows = np.arange(array.shape[-1])
    array[..., rows, rows] += array.dtype.type(2 * len(rows))


def _random(generator: np.random.Generator, shape: Shape) -> np.ndarray:
    element, dims = shape.element_type, shape.dims
    if element.kind == "pred":
        return generator.integers(0, 2, dims).astype(np.bool_)
    if element.is_integer:
        top = min(_INTEGERS_BELOW, 2 ** (element.bits - element.is_signed))
        return generator.integers(0, top, dims).astype(element.dtype)
    if element.is_complex:
        return np.asarray(generator.random(dims) + 1j * generator.random(dims)).astype(element.dtype)
    precision = np.float64 if element.bits == 64 else np.float32
    return np.asarray(generator.random(dims, dtype=precision)).astype(element.dtype)


def _arrays(path: str) -> dict[str, np.ndarray]:
    """Every array of the file by name."""
    files.check_name("CLI010", "cannot read", path)
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"arr_0": loaded}
        with loaded:
            found = {name: loaded[name] for name in loaded.files}
    except OSError as error:
        if error.errno is not None:
            raise files.os_error("CLI010", f"cannot read '{path}'", error) from None
        raise _damaged(path, error) from None
    except MemoryError:
        raise
    except Exception as error:  # damaged data fails in many ways inside zipfile, zlib and NumPy's header reader
        raise _damaged(path, error) from None
    for name, value in found.items():
        if not isinstance(value, np.ndarray):  # a member that is no .npy file
            raise _damaged(path, ValueError(f"'{name}' in it is not an array"))
    return found


def _damaged(path: str, error: Exception) -> HeronError:
    why = f"{type(error).__name__}: {error}".splitlines()[0]
    if "pickle" in why:
        why = "it holds no array data, or Python objects"
    hint = "a file written by numpy.savez or `heron run --save`"
    return HeronError("CLI030", f"'{path}' is damaged or not a .npz file", why=why, hint=hint)


def _meta(path: str, stored: np.ndarray | None) -> dict[str, Any] | None:
    if stored is None:
        return None
    try:
        meta = json.loads(str(stored))
    except (ValueError, RecursionError) as error:
        raise _bad_meta(path, f"it is not JSON: {error}") from None
    if not isinstance(meta, dict):
        raise _bad_meta(path, "it is not a JSON object")
    return meta


def _bad_meta(path: str, why: str) -> HeronError:
    return HeronError("CLI031", f"'meta' of '{path}' does not fit", why=why)


def _series(path: str, arrays: dict[str, np.ndarray], prefix: str) -> list[np.ndarray]:
    """``prefix0, prefix1, …`` in order. Raises CLI031 when a number is missing."""
    numbers = sorted(int(m[2]) for name in arrays if (m := _NUMBERED.fullmatch(name)) and m[1] == prefix)
    if numbers != list(range(len(numbers))):
        missing = next(n for n in range(len(numbers) + 1) if n not in numbers)
        raise HeronError("CLI031", f"'{path}' has {prefix}{numbers[-1]} but no {prefix}{missing}")
    return [arrays[f"{prefix}{n}"] for n in numbers]


def _typed(path: str, arrays: list[np.ndarray], facts: Any, kind: str) -> list[np.ndarray]:
    """Stored arrays with the dtypes and shapes the file's meta gives them."""
    if not isinstance(facts, list) or len(facts) != len(arrays):
        count = len(facts) if isinstance(facts, list) else "no list of"
        raise _bad_meta(path, f"it describes {count} {kind}, the file holds {len(arrays)}")
    typed = []
    for n, (array, fact) in enumerate(zip(arrays, facts, strict=True)):
        try:
            dtype = _dtype(fact["dtype"])
            made = array if array.dtype == dtype else array.view(dtype)
            typed.append(made.reshape(tuple(fact["shape"])))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _bad_meta(path, f"{kind} {n}: stored as {array.dtype}{list(array.shape)}, {error}") from None
    return typed


def _dtype(name: str) -> np.dtype:
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(getattr(ml_dtypes, name))


def _is_native(dtype: np.dtype) -> bool:
    return dtype.kind in "biufc" and dtype.isbuiltin == 1


def _unsigned(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"u{dtype.itemsize}")
