"""Literals read from text: the part of ``constant(...)`` between the parentheses.

Arrays are read as a whole: the braces and commas left when the numbers are taken out must be exactly those of the
shape, then the numbers are read in one go. Constants of millions of elements stay fast that way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from heron.hlo.ir.literal import Literal
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import U64, ElementType
from heron.hlo.text.floats import make_nan

ELIDED = "{...}"
#: a literal whose values are elsewhere, under a digest of them
_DIGEST = re.compile(r"\s*\{\.\.\.#([0-9a-f]{32})\}\s*")
#: bytes up to which a literal is printed in full where longer ones are digests
_LONG = 1024
#: no literals that are elsewhere
NOWHERE: Mapping[str, np.ndarray] = {}
#: dimensions a NumPy array may have
MAX_RANK = 64
#: bytes of an array that one number may stand for
MAX_BYTES = 2**27

_PARTS = re.compile(r"-?nan\([^()]*\)|[{}()]|[^\s{}(),]+")
_NO_BLANKS = {ord(c): None for c in " \t\r\n"}
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_NOT_STRUCTURE = bytes(set(range(256)) - set(b"{},"))
_PART = r"([^(),]*(?:\([^(),]*\)[^(),]*)?)"  # of a complex number: a word that may end with the payload of a NaN
_COMPLEX = re.compile(rf"\({_PART},{_PART}\)")
#: texts of these characters only hold nothing that Python's int and float read but XLA does not
_PLAIN_FLOATS = re.compile(r"[0-9eE+\-.,\sinfa]*")
#: and these, which Python's float reads and XLA does not: a bare sign, a point without a digit before it
_PYTHON_FLOATS = re.compile(r"(?<![0-9])\.|(?<![eE])\+")
_PLAIN_INTEGERS = re.compile(r"[0-9\-,\s]*")
_NAN = re.compile(r"(-?)nan\((?:0x)?([0-9a-f]{1,16})\)")
_DECIMAL = re.compile(r"-?\d+")
_FLOAT = re.compile(r"-?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|inf|nan)")


class LiteralError(Exception):
    """A literal that cannot be read; the parser adds the place."""

    def __init__(self, what: str, why: str | None = None, hint: str | None = None, code: str = "TXT011") -> None:
        self.code, self.what, self.why, self.hint = code, what, why, hint
        super().__init__(what)


def parse_literal(
    text: str, shape: Shape, elided_as_zero: bool = False, elsewhere: Mapping[str, np.ndarray] = NOWHERE
) -> Literal:
    """The literal of that shape. Commas may be missing or too many. Raises LiteralError.

    ``elsewhere``: the bytes of literals that the text has digests of, by the digests.
    """
    if text.lstrip()[:5] == "{...#" and (match := _DIGEST.fullmatch(text)):
        found = elsewhere.get(match[1])
        if found is not None and is_long(shape):
            values = found.view(shape.element_type.dtype)
            if values.size == shape.num_elements:
                return Literal(shape, values.reshape(shape.dims))
        text = ELIDED
    try:
        if len(text) <= 32 and shape.is_array and "..." not in text:
            return _parse_small(text, shape)
        return _parse(text, shape, elided_as_zero)
    except LiteralError:
        usual = _with_commas(text)
        if _is_number(usual) or usual.translate(_NO_BLANKS) == text.translate(_NO_BLANKS):
            raise
        try:
            return _parse(usual, shape, elided_as_zero)
        except LiteralError:
            pass
        raise


def is_long(shape: Shape) -> bool:
    """Whether a literal has so many bytes that it may be known by a digest of them."""
    return shape.is_array and shape.num_elements * shape.element_type.dtype.itemsize > _LONG


def _with_commas(text: str) -> str:
    """The text with one comma between any two values, and no others."""
    parts: list[str] = []
    for part in _PARTS.findall(_COMMENT.sub(" ", text)):
        if parts and parts[-1] not in "{(" and part not in "})":
            parts.append(",")
        parts.append(part)
    return "".join(parts)


@lru_cache(maxsize=4096)
def _parse_small(text: str, shape: Shape) -> Literal:
    return _parse(text, shape, False)


def _parse(text: str, shape: Shape, elided_as_zero: bool) -> Literal:
    if text.strip() == ELIDED:
        if not elided_as_zero:
            raise LiteralError(
                "the value of this constant was left out when the text was printed",
                hint="print with large constants in full, or parse with elided_as_zero=True",
            )
        for _, leaf in shape.leaves():
            _check_rank(leaf)
        return _zeros(shape)
    if shape.is_tuple:
        return _parse_tuple(text, shape, elided_as_zero)
    if not shape.is_array:
        raise LiteralError(f"a constant cannot have the shape {shape}")
    _check_rank(shape)
    text = _COMMENT.sub("", text) if "/*" in text else text
    if shape.rank and not shape.element_type.is_complex and _is_number(text):
        return Literal(shape, _parse_first(text, shape))
    return Literal(shape, _parse_array(text, shape))


def _is_number(text: str) -> bool:
    """Whether the text is one value without braces."""
    word = text.strip()
    return bool(word) and not any(c in word for c in "{}, \t\r\n")


def _parse_first(text: str, shape: Shape) -> np.ndarray:
    """One number for a whole array: as in XLA, it is the first element, and all others are zero."""
    if not shape.num_elements:
        raise LiteralError("an array without elements has no first one", why=f"its shape is {shape}")
    if shape.byte_size > MAX_BYTES:
        why = f"its shape is {shape}; the limit for one number is {MAX_BYTES} bytes"
        raise LiteralError("the constant is too large to be written as one number", why=why)
    found = np.zeros(shape.dims, shape.element_type.dtype)
    found.reshape(-1)[:1] = _parse_words([text], shape.element_type)
    return found


def _check_rank(shape: Shape) -> None:
    if shape.is_unbounded:
        raise LiteralError(f"a constant needs its sizes, {shape} leaves them open")
    if shape.rank > MAX_RANK:
        raise LiteralError(f"a constant of rank {shape.rank}", why=f"the limit is {MAX_RANK}")


def _zeros(shape: Shape) -> Literal:
    if shape.is_tuple:
        return Literal(shape, [_zeros(s) for s in shape.tuple_shapes or ()])
    return Literal(shape, np.broadcast_to(np.zeros((), shape.element_type.dtype), shape.dims))


def _parse_tuple(text: str, shape: Shape, elided_as_zero: bool) -> Literal:
    text = _COMMENT.sub("", text).strip()
    parts = _split(text[1:-1]) if text[:1] == "(" and text[-1:] == ")" else None
    wanted = shape.tuple_shapes or ()
    if parts is None or len(parts) != len(wanted):
        raise LiteralError(f"a tuple of {len(wanted)} values is needed here", why=f"the shape is {shape}")
    return Literal(shape, [_parse(p, s, elided_as_zero) for p, s in zip(parts, wanted, strict=True)])


def _split(text: str) -> list[str]:
    """Cut at the commas outside all brackets."""
    if not text.strip():
        return []
    parts: list[str] = []
    depth = begin = 0
    for n, char in enumerate(text):
        if char in "({":
            depth += 1
        elif char in ")}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[begin:n])
            begin = n + 1
    parts.append(text[begin:])
    return parts


# -- arrays ----------------------------------------------------------------------------------------------------------
def _parse_array(text: str, shape: Shape) -> np.ndarray:
    element_type = shape.element_type
    structure = _COMPLEX.sub("x", text) if element_type.is_complex else text
    _check_structure(structure.encode("utf-8", "replace").translate(None, _NOT_STRUCTURE).decode(), shape, text)
    bare = text.replace("{", "").replace("}", "")
    if element_type.is_complex:
        pairs = _COMPLEX.findall(bare)
        if len(pairs) != shape.num_elements:
            raise LiteralError("complex numbers are written (real, imaginary)", why=f"the shape is {shape}")
        parts = [word for pair in pairs for word in pair]
        found = _parse_words(parts, element_type.component).view(element_type.dtype)
        return found.reshape(shape.dims)
    parts = bare.split(",") if shape.num_elements else []
    found = _parse_plain(bare, parts, element_type)
    return (_parse_words(parts, element_type) if found is None else found).reshape(shape.dims)


def _parse_plain(bare: str, words: list[str], element_type: ElementType) -> np.ndarray | None:
    """The fast way for numbers without surprises; None when there is one, to be found word by word."""
    try:
        if element_type.is_float and _PLAIN_FLOATS.fullmatch(bare) and not _PYTHON_FLOATS.search(bare):
            wide = np.array(list(map(float, words)), dtype=np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                found = wide.astype(element_type.dtype)
                return found if np.isfinite(found.astype(np.float64)).all() else None
        if element_type.is_integer and _PLAIN_INTEGERS.fullmatch(bare):
            values = list(map(int, words))
            low, high = integer_range(element_type)
            if values and low <= min(values) and max(values) <= high:
                return np.array(values, dtype=widest(element_type)).astype(element_type.dtype)
    except ValueError:
        pass
    return None


def widest(element_type: ElementType) -> type[np.generic]:
    return np.uint64 if element_type.is_unsigned else np.int64


def _check_structure(got: str, shape: Shape, text: str) -> None:
    """Braces and commas must be those of the shape."""
    outer = 1
    for size in shape.dims:
        outer *= size
        if outer > len(text):  # even one character an element would be more text than there is
            raise LiteralError("the constant has too few elements", why=f"its shape is {shape}")
    empty = not shape.num_elements and text.strip("{}, \t\r\n")
    if got == _structure(shape.dims) and not empty:
        return
    if shape.rank == 1 and got.count("{") == 1:
        count = got.count(",") + 1 if text.strip("{} \t\n") else 0
        why = f"its shape is {shape}"
        raise LiteralError(f"the constant has {count} elements instead of {shape.num_elements}", why=why)
    example = _structure(tuple(min(d, 2) for d in shape.dims)) if shape.rank else "a single number"
    raise LiteralError(
        f"the braces of this constant do not match its shape {shape}",
        hint=f"rank {shape.rank} is written like {example}",
    )


@lru_cache(maxsize=64)
def _structure(dims: tuple[int, ...]) -> str:
    """Braces and commas of a literal of those sizes."""
    if not dims:
        return ""
    if not dims[0]:  # the other sizes may be anything
        return "{}"
    return "{" + ",".join([_structure(dims[1:])] * dims[0]) + "}"


def _parse_words(words: list[str], element_type: ElementType) -> np.ndarray:
    if element_type.is_float:
        return _parse_floats(words, element_type)
    if element_type.kind == "pred":
        return np.array([_parse_bool(w) for w in words], dtype=np.bool_)
    return _parse_integers(words, element_type)


def _parse_bool(word: str) -> bool:
    word = word.strip()
    if word in ("true", "false"):
        return word == "true"
    if not _DECIMAL.fullmatch(word) or len(word) > 20:
        raise LiteralError(f"'{word[:40]}' is no boolean", hint="write true or false")
    return int(word) != 0


def _parse_integers(words: list[str], element_type: ElementType) -> np.ndarray:
    low, high = integer_range(element_type)
    values: list[int] = []
    for word in words:
        word = word.strip()
        if not _DECIMAL.fullmatch(word):
            raise LiteralError(f"'{word[:40]}' is not an integer", why=f"the constant is of type {element_type}")
        value = int(word) if len(word) <= 20 else high + 1
        if element_type is U64 and -(2**63) <= value < 0:
            value += 2**64  # as C's conversion does
        if not low <= value <= high:
            raise LiteralError(
                f"{word[:40]} is out of range", why=f"{element_type} holds {low} to {high}", code="TXT010"
            )
        values.append(value)
    return np.array(values, dtype=widest(element_type)).astype(element_type.dtype)


def integer_range(element_type: ElementType) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    bits = element_type.bits
    return (0, 2**bits - 1) if element_type.is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _parse_floats(words: list[str], element_type: ElementType) -> np.ndarray:
    payloads: dict[int, np.ndarray] = {}
    values: list[float] = []
    for n, word in enumerate(words):
        word = word.strip()
        if word.endswith(")") and (match := _NAN.fullmatch(word)):
            try:
                payloads[n] = make_nan(element_type, bool(match[1]), int(match[2], 16))
            except ValueError as error:
                raise LiteralError(str(error), why=f"found {word}", code="TXT010") from None
            values.append(0.0)
            continue
        if not _FLOAT.fullmatch(word):
            raise LiteralError(f"'{word[:40]}' is not a number", why=f"the constant is of type {element_type}")
        values.append(float(word))
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.array(values, dtype=np.float64)
        found = wide.astype(element_type.dtype)
        back = found if element_type.bits == 64 else found.astype(np.float64)
    _check_overflow(words, wide, back, element_type)
    for n in np.flatnonzero(np.isnan(wide)).tolist():
        payloads[n] = make_nan(element_type, words[n].strip().startswith("-"), None)
    for n, value in payloads.items():
        found[n : n + 1] = value
    return found


def _check_overflow(words: list[str], wide: np.ndarray, back: np.ndarray, element_type: ElementType) -> None:
    """Numbers in the text that are finite must be so in the type, too."""
    for n in np.flatnonzero(~np.isfinite(back)).tolist():
        word = words[n].strip()
        if np.isfinite(wide[n]) and element_type.kind == "float" or word.lstrip("+-") not in ("inf", "nan"):
            if word.endswith(")"):
                continue
            raise LiteralError(f"{word[:40]} is out of range", why=f"of type {element_type}", code="TXT010")
