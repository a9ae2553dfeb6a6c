"""Shapes and layouts ↔ ShapeProto and LayoutProto, each distinct one converted once per module."""

from __future__ import annotations

import re
from collections.abc import Callable

from heron.errors import HeronError
from heron.hlo.ir import layout as layouts
from heron.hlo.ir import shape as shapes
from heron.hlo.ir import types
from heron.hlo.ir.layout import Layout
from heron.hlo.ir.shape import BUFFER, MOST_BYTES, UNBOUNDED, Shape
from heron.hlo.ir.types import ElementType
from heron.hlo.proto.schema import MESSAGES, Message
from heron.hlo.text.shapes import MAX_RANK

TUPLE = 13  # PrimitiveType's number for tuples, which is no element type here

_TYPES = {t.proto_id: t for t in types.ALL}
_ShapeProto = MESSAGES["ShapeProto"]
_ANY_SIZE = -(2**63)  # a tile's "*", a dimension's "?"

#: how Layout.extra spells what heron only carries, in the order XLA prints it
_EXTRA = re.compile(r"([A-Z#*]+)((?:\([^()]*(?:\([^()]*\)[^()]*)*\))+)")
_LEVELS = "DCSH"  # dense, compressed, singleton, loosely compressed


class ShapeWriter:
    """ShapeProtos of shapes."""

    def __init__(self) -> None:
        self._known: dict[Shape, Message] = {}

    def write(self, shape: Shape, to: Message) -> None:
        """Fill an empty ShapeProto."""
        found = self._known.get(shape)
        if found is None:
            found = self._known[shape] = _ShapeProto()
            self._fill(shape, found)
        to.CopyFrom(found)

    def _fill(self, shape: Shape, to: Message) -> None:
        if shape.tuple_shapes is not None:
            to.element_type = TUPLE
            for part in shape.tuple_shapes:
                self.write(part, to.tuple_shapes.add())
            return
        to.element_type = shape.element_type.proto_id
        if shape.content is not None:
            self.write(shape.content, to.tuple_shapes.add())
        if not shape.is_array:
            return
        to.dimensions.extend([_ANY_SIZE if d == UNBOUNDED else d for d in shape.dims])
        to.is_dynamic_dimension.extend(shape.dynamic or (False,) * shape.rank)
        if shape.layout is not None:
            _write_layout(shape.layout, to.layout)

    def program(self, parameters: list[Shape], result: Shape, names: list[str], to: Message) -> None:
        """Fill a ProgramShapeProto."""
        for p in parameters:
            self.write(p, to.parameters.add())
        self.write(result, to.result)
        to.parameter_names.extend(names)


def _write_layout(layout: Layout, to: Message) -> None:
    to.SetInParent()
    to.minor_to_major.extend(layout.minor_to_major)
    for tile in layout.tiles:
        to.tiles.add().dimensions.extend([_ANY_SIZE if d < 0 else d for d in tile])
    to.element_size_in_bits = layout.element_size
    to.memory_space = layout.memory_space
    to.tail_padding_alignment_in_elements = 1
    for key, values in _EXTRA.findall(layout.extra + layout.tail):
        write = _WRITE_EXTRA.get(key)
        try:
            if write is None:
                raise ValueError(key)
            write(values[1:-1], to)
        except (ValueError, KeyError):
            raise HeronError("PROTO005", f"the layout {layout} has no form in LayoutProto", why=f"'{key}'") from None


def _write_levels(text: str, to: Message) -> None:
    words = text.split(",")
    to.dim_level_types.extend([_LEVELS.index(w[0]) for w in words])
    to.dim_unique.extend(["+" not in w for w in words])
    to.dim_ordered.extend(["~" not in w for w in words])


def _write_splits(text: str, to: Message) -> None:
    for part in text.split(")("):
        dimension, _, indices = part.partition(":")
        to.split_configs.add(dimension=int(dimension), split_indices=map(int, indices.split(",")))


def _set(field: str, read: Callable[[str], int] = int) -> Callable[[str, Message], None]:
    return lambda text, to: setattr(to, field, read(text))


_WRITE_EXTRA = {
    "D": _write_levels,
    "L": _set("tail_padding_alignment_in_elements"),
    "#": _set("index_primitive_type", lambda text: types.by_name(text).proto_id),
    "*": _set("pointer_primitive_type", lambda text: types.by_name(text).proto_id),
    "SC": _write_splits,
    "M": _set("dynamic_shape_metadata_prefix_bytes"),
}


# -- reading ---------------------------------------------------------------------------------------------------------
class ShapeReader:
    """Shapes of ShapeProtos."""

    def __init__(self) -> None:
        self._known: dict[bytes, Shape] = {}

    def read(self, proto: Message) -> Shape:
        """The shape. Raises PROTO003 for unknown element types, bad layouts and sizes."""
        key: bytes = proto.SerializeToString()
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._read(proto)
        return found

    def _read(self, proto: Message) -> Shape:
        number = proto.element_type
        if number == TUPLE:
            return shapes.tuple_([self.read(part) for part in proto.tuple_shapes])
        if number == BUFFER.proto_id and len(proto.tuple_shapes) == 1:
            content = self.read(proto.tuple_shapes[0])
            if not content.is_array:
                raise HeronError("PROTO003", "a buffer is memory for an array", why=f"found {content}")
            return shapes.buffer(content)
        element_type = _TYPES.get(number)
        if element_type is None:
            raise HeronError("PROTO003", f"element type {number} of a shape is unknown")
        if not element_type.byte_size:
            return shapes.array(element_type)
        dynamic = tuple(proto.is_dynamic_dimension)
        dims = _read_dims(tuple(proto.dimensions), dynamic, element_type)
        layout = _read_layout(proto.layout, len(dims)) if proto.HasField("layout") else None
        return shapes.array(element_type, dims, layout, dynamic)


def _read_dims(dims: tuple[int, ...], dynamic: tuple[bool, ...], element_type: ElementType) -> tuple[int, ...]:
    """Sizes as shapes have them. Raises PROTO003 for those no array has."""
    unbounded = [n for n, (d, dyn) in enumerate(zip(dims, dynamic, strict=False)) if d == _ANY_SIZE and dyn]
    size = element_type.byte_size
    for n, d in enumerate(dims):
        size *= max(d, 1)
        if (d < 0 and n not in unbounded) or size > MOST_BYTES or len(dims) > MAX_RANK:
            why = f"dimensions {list(dims[:8])}"
            raise HeronError("PROTO003", f"a shape of {element_type} has impossible dimensions", why=why)
    if dynamic and len(dynamic) != len(dims):
        raise HeronError("PROTO003", f"{len(dynamic)} dynamic flags for {len(dims)} dimensions")
    return tuple(UNBOUNDED if n in unbounded else d for n, d in enumerate(dims))


def _read_layout(proto: Message, rank: int) -> Layout:
    order = tuple(proto.minor_to_major)
    if sorted(order) != list(range(rank)):
        raise HeronError(
            "PROTO003",
            f"the layout {list(order[:8])} does not order the dimensions",
            why=f"minor to major, it must name each of the {rank} dimensions once",
        )
    tiles = tuple(tuple(-1 if d == _ANY_SIZE else d for d in t.dimensions) for t in proto.tiles)
    return layouts.layout(order, tiles, proto.element_size_in_bits, proto.memory_space, *_read_extra(proto))


def _read_extra(proto: Message) -> tuple[str, str]:
    """The texts before the element size and after the memory space."""
    text = _read_levels(proto)
    if proto.tail_padding_alignment_in_elements > 1:
        text += f"L({proto.tail_padding_alignment_in_elements})"
    for sign, number in (("#", proto.index_primitive_type), ("*", proto.pointer_primitive_type)):
        if number in _TYPES:
            text += f"{sign}({_TYPES[number].name})"
    tail = ""
    if proto.split_configs:
        parts = [f"({s.dimension}:{','.join(map(str, s.split_indices))})" for s in proto.split_configs]
        tail += "SC" + "".join(parts)
    if proto.HasField("physical_shape"):
        raise HeronError("PROTO005", "a layout with a physical shape (of a sparse array) is not supported")
    if proto.dynamic_shape_metadata_prefix_bytes:
        tail += f"M({proto.dynamic_shape_metadata_prefix_bytes})"
    return text, tail


def _read_levels(proto: Message) -> str:
    levels, unique, ordered = proto.dim_level_types, proto.dim_unique, proto.dim_ordered
    words: list[str] = []
    for n, level in enumerate(levels):
        if not 0 <= level < len(_LEVELS):
            raise HeronError("PROTO003", f"dimension level type {level} of a layout is unknown")
        words.append(_LEVELS[level])
        words[-1] += "+" if n < len(unique) and not unique[n] else ""
        words[-1] += "~" if n < len(ordered) and not ordered[n] else ""
    return f"D({','.join(words)})" if any(w != "D" for w in words) else ""
