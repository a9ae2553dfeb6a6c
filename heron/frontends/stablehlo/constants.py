"""``dense<…>``: the values of a constant as a NumPy array."""

from __future__ import annotations

import re

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import PRED, ElementType

#: the attribute that numbers a constant whose value the text leaves out
ELSEWHERE = "heron.elsewhere"

_COMPLEX = re.compile(r"\(\s*([^,()]+?)\s*,\s*([^,()]+?)\s*\)")
_BRACKETS = str.maketrans("[]", "  ")
_BOOL = {"true": True, "false": False, "1": True, "0": False}


def dense(token: str, shape: Shape) -> np.ndarray:
    """The array of a ``dense<…>`` token; a single value fills the shape.

    Raises SHLO009 for values that are none of the type, or too many or few.
    """
    body = token[6:-1].strip() if token[6:7] != '"' else ""
    t = shape.element_type
    if not shape.is_array or shape.is_unbounded:
        raise HeronError("SHLO009", f"a constant cannot be {shape}")
    try:
        flat = _blob(token, t, shape) if token[6:7] == '"' else _values(body, t)
    except (ValueError, KeyError, OverflowError) as error:
        raise HeronError("SHLO009", f"this is not a constant of type {shape.bare}", why=str(error)[:80]) from None
    if flat.size == 1 and (shape.num_elements != 1 or "[" not in body):
        return np.broadcast_to(flat.reshape(()), shape.dims)
    if flat.size != shape.num_elements:
        why = f"{flat.size} values given, {shape.num_elements} needed"
        raise HeronError("SHLO009", f"this is not a constant of type {shape.bare}", why=why)
    return flat.reshape(shape.dims)


def _values(body: str, t: ElementType) -> np.ndarray:
    if not body:
        return np.empty(0, t.dtype)
    if t.is_complex:
        parts = _COMPLEX.findall(body)
        flat = np.empty(len(parts), t.dtype)
        flat.real = _numbers([re_ for re_, _ in parts], t.component)
        flat.imag = _numbers([im for _, im in parts], t.component)
        return flat
    words = body.translate(_BRACKETS).split(",")
    return _numbers([w.strip() for w in words] if len(words) > 1 or words[0].strip() else [], t)


def _numbers(words: list[str], t: ElementType) -> np.ndarray:
    if t is PRED:
        return np.array([_BOOL[w] for w in words], np.bool_)
    if t.is_integer:
        low, high = (-(2 ** (t.bits - 1)), 2 ** (t.bits - 1)) if t.is_signed else (0, 2**t.bits)
        values = [int(w, 16) if w[:2] == "0x" else _whole(w) for w in words]
        if t.is_signed:  # hexadecimal digits are the bits
            values = [v - 2**t.bits if v >= high and w[:2] == "0x" else v for v, w in zip(values, words, strict=True)]
        if any(not low <= v < high for v in values):
            raise ValueError(f"values of {t} lie between {low} and {high - 1}")
        return np.array(values, np.uint64 if t.is_unsigned else np.int64).astype(t.dtype)
    if not any(w[:2] == "0x" for w in words):
        return np.array(words, np.float64).astype(t.dtype) if words else np.empty(0, t.dtype)
    flat = np.empty(len(words), t.dtype)
    bits = flat.view(f"u{t.byte_size}")
    for n, w in enumerate(words):
        if w[:2] == "0x":
            bits[n] = int(w, 16)
        else:
            flat[n] = float(w)
    return flat


def _whole(word: str) -> int:
    return _BOOL[word] if word in ("true", "false") else int(word[:40])


def _blob(token: str, t: ElementType, shape: Shape) -> np.ndarray:
    """``dense<"0x…">``: hexadecimal digits of little-endian bytes; booleans may come as bits."""
    if token[7:9] != "0x" or token[-2:] != '">':
        raise ValueError("a string of hexadecimal digits is expected")
    data = bytes.fromhex(token[9:-2])
    if t is PRED:
        raw = np.frombuffer(data, np.uint8)
        if raw.size == shape.num_elements and raw.size > 1:
            return raw != 0
        if raw.size == 1 and raw[0] in (0, 255):
            return np.array([raw[0] != 0])
        return np.unpackbits(raw, bitorder="little")[: shape.num_elements].astype(np.bool_)
    return np.frombuffer(data, t.dtype)
