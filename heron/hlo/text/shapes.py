"""Shapes in text: one token such as ``f32[2,<=3]{1,0:T(8,128)S(1)}`` to a Shape."""

from __future__ import annotations

import re

from heron.errors import HeronError
from heron.hlo.ir import layout as layouts
from heron.hlo.ir import shape as shapes
from heron.hlo.ir import types
from heron.hlo.ir.layout import Layout
from heron.hlo.ir.shape import MOST_BYTES, Shape
from heron.hlo.text.nearest import nearest

MAX_RANK = 254

_TOKEN = re.compile(r"([a-z]\w*)\s*\[([^\]]*)\]\s*(?:\{([^}]*)\})?")
_DIM = re.compile(r"\s*(?:(<=)?\s*(\d{1,19})|\?)\s*")
_INDEX = re.compile(r"\d{1,9}")
_TILE = r"\((?:\d{1,18}|\*)(?:,(?:\d{1,18}|\*))*\)"
_SPLIT = r"\(\d{1,9}:\d{1,18}(?:,\d{1,18})*\)"
_LEVEL = r"[DCSH][~+]?[~+]?"
#: what may follow the colon, in this order: dimension levels D, tiles T, padding L, types of indices # and pointers *,
#: element size E, memory space S, splits SC, bytes before dynamic data M
_FIELDS = re.compile(
    rf"(?:D\((?P<levels>{_LEVEL}(?:,{_LEVEL})*)\))?(?:T(?P<tiles>(?:{_TILE})+))?"
    r"(?:L\((?P<padding>\d{1,18})\))?(?P<types>(?:#\(\w+\))?(?:\*\(\w+\))?)"
    r"(?:E\((?P<size>\d{1,9})\))?(?:S\((?P<space>\d{1,9})\))?"
    rf"(?P<tail>(?:SC(?:{_SPLIT})+)?(?:M\(\d{{1,18}}\))?)"
)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_BLANKS = re.compile(r"\s+")


def parse_array(token: str, default_layout: bool = True) -> Shape:
    """The shape of one token.

    Without a layout in the text the layout is row-major, or left open when `default_layout` is false.
    Raises TXT013 (malformed), HLO001 (unknown element type), without a place.
    """
    match = _TOKEN.fullmatch(COMMENT.sub("", token) if "/*" in token else token)
    if match is None:
        raise HeronError("TXT013", f"'{token[:60]}' is not a shape", hint="shapes look like f32[2,3] or f32[2,3]{1,0}")
    name, inner, layout_text = match.groups()
    element_type = types.find(name)
    if element_type is None:
        hint = nearest(name, types.NAMES) or "one of " + ", ".join(sorted(types.NAMES))
        raise HeronError("HLO001", f"unknown element type '{name[:60]}'", hint=hint)
    dims, dynamic = _parse_dims(token, inner)
    layout: Layout | None = None
    if element_type.byte_size == 0:
        if dims:
            raise HeronError("TXT013", f"a {name} has no dimensions", why=f"found {token}")
        return shapes.array(element_type)
    if layout_text == "" and not dims:
        raise HeronError("TXT013", f"'{token}': a scalar has no dimensions to order", hint="leave the {} out")
    if layout_text is not None:
        layout = _parse_layout(layout_text, len(dims))
    elif default_layout:
        layout = layouts.default(len(dims))
    try:
        return shapes.array(element_type, dims, layout, dynamic)
    except HeronError as error:
        raise HeronError("TXT013", f"{token} is too large", why=error.why) from None


def _parse_dims(token: str, inner: str) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    if not inner.strip():
        return (), ()
    dims: list[int] = []
    dynamic: list[bool] = []
    parts = inner.split(",")
    if len(parts) > MAX_RANK:
        raise HeronError("TXT013", f"a shape of rank {len(parts)}", why=f"the limit is {MAX_RANK}")
    for part in parts:
        match = _DIM.fullmatch(part)
        if match is None:
            what, why = f"'{part.strip()[:60]}' is not a dimension", f"in the shape {token[:60]}"
            raise HeronError("TXT013", what, why=why, hint="a dimension is 3, <=3 (at most 3) or ? (of any size)")
        if match[2] is None:
            dims.append(shapes.UNBOUNDED)
            dynamic.append(True)
            continue
        size = int(match[2])
        if size > MOST_BYTES:
            raise HeronError("TXT013", f"dimension {size} is too large", why="the limit is 2**63 - 1")
        dims.append(size)
        dynamic.append(match[1] is not None)
    return tuple(dims), tuple(dynamic) if any(dynamic) else ()


def _parse_layout(text: str, rank: int) -> Layout:
    order_text, colon, rest = text.partition(":")
    words = [w.strip() for w in order_text.split(",")] if order_text.strip() else []
    order = tuple(map(int, words)) if all(map(_INDEX.fullmatch, words)) else ()
    if sorted(order) != list(range(rank)):
        raise HeronError(
            "TXT013",
            f"layout {{{order_text}}} does not order the dimensions",
            why=f"minor to major, it must name each of the {rank} dimensions once",
        )
    if not colon or not rest:
        return layouts.layout(order)
    return _parse_layout_fields(order, rest)


def _parse_layout_fields(order: tuple[int, ...], text: str) -> Layout:
    """The fields after the colon. Levels are dropped as in XLA; padding, types, splits, prefixes are only carried."""
    match = _FIELDS.fullmatch(_BLANKS.sub("", text))
    if match is None:
        raise HeronError(
            "TXT013",
            f"':{text[:60]}' is not a layout",
            why="fields come in this order: D T L # * E S SC M",
            hint="fields look like T(8,128)(2,1)E(4)S(1)SC(1:200)",
        )
    levels, tiles_text, padding, kinds, size, space, tail = match.groups()
    if levels is not None and len(levels.split(",")) != len(order):
        raise HeronError("TXT013", f"D({levels}) is not one level for each of {len(order)} dimensions")
    tiles: tuple[tuple[int, ...], ...] = ()
    if tiles_text:
        tiles = tuple(
            tuple(-1 if d == "*" else int(d) for d in tile.split(",")) for tile in tiles_text[1:-1].split(")(")
        )
    carried = kinds if padding in (None, "1") else f"L({padding}){kinds}"
    return layouts.layout(order, tiles, int(size or 0), int(space or 0), carried, tail)
