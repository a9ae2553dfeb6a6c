"""Literals ↔ LiteralProto: elements in the order of the shape's layout, as little-endian bytes or as integers."""

from __future__ import annotations

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir import literal as literals
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType
from heron.hlo.proto.schema import Message
from heron.hlo.proto.shapes import ShapeReader, ShapeWriter

#: element types whose values travel as a list of (variable-length) integers
_LISTS = ("s32", "s64", "u32", "u64")


def _field(element_type: ElementType) -> str:
    return element_type.name + "s"


def write_literal(literal: Literal, to: Message, writer: ShapeWriter) -> None:
    """Fill an empty LiteralProto."""
    shape = literal.shape
    writer.write(shape, to.shape)
    if shape.is_tuple:
        for part in literal.parts:
            write_literal(part, to.tuple_literals.add(), writer)
        return
    if not shape.is_array:
        return
    array = literal.array.transpose(_major_to_minor(shape)) if shape.rank > 1 else literal.array
    name = shape.element_type.name
    if name in _LISTS:
        getattr(to, _field(shape.element_type)).extend(array.reshape(-1).tolist())
    elif shape.element_type.bits < 8:
        mask = np.uint8((1 << shape.element_type.bits) - 1)
        setattr(to, _field(shape.element_type), (np.ascontiguousarray(array).view(np.uint8) & mask).tobytes())
    else:
        setattr(to, _field(shape.element_type), array.tobytes())


def read_literal(proto: Message, reader: ShapeReader) -> Literal:
    """The literal. Raises PROTO004 when its data do not fit its shape."""
    return _read(proto, reader.read(proto.shape), reader)


def _read(proto: Message, shape: Shape, reader: ShapeReader) -> Literal:
    if shape.is_tuple:
        parts, wanted = proto.tuple_literals, shape.tuple_shapes or ()
        if len(parts) != len(wanted):
            raise HeronError("PROTO004", f"a literal has {len(parts)} parts instead of {len(wanted)}", why=str(shape))
        return Literal(shape, [_read(p, s, reader) for p, s in zip(parts, wanted, strict=True)])
    if not shape.is_array:
        raise HeronError("PROTO004", f"a literal cannot have the shape {shape}")
    if any(shape.dynamic) or proto.dynamic_sizes:
        raise HeronError("PROTO005", f"a literal of dynamic size is not supported: {shape}")
    if shape.layout is None:
        shape = shape.with_default_layout()
    flat = _elements(proto, shape)
    order = _major_to_minor(shape)
    array = flat.reshape([shape.dims[d] for d in order]).transpose(np.argsort(order)) if shape.rank > 1 else flat
    return Literal(shape, np.ascontiguousarray(array).reshape(shape.dims))


def _elements(proto: Message, shape: Shape) -> np.ndarray:
    element_type, count = shape.element_type, shape.num_elements
    data = getattr(proto, _field(element_type))
    bits = element_type.bits
    found = len(data) if element_type.name in _LISTS or bits < 8 else len(data) / element_type.byte_size
    if found != count:
        what = f"a literal has {found:g} elements instead of {count}"
        raise HeronError("PROTO004", what, why=f"its shape is {shape}")
    if element_type.name in _LISTS:
        return np.fromiter(data, element_type.dtype, count)
    if element_type.kind == "pred":
        return np.frombuffer(data, np.uint8) != 0
    if bits >= 8:
        return np.frombuffer(data, element_type.dtype)
    low = np.frombuffer(data, np.uint8) & np.uint8((1 << bits) - 1)
    if not element_type.is_integer:
        return low.view(element_type.dtype)
    if element_type.is_signed:
        return ((low << (8 - bits)).view(np.int8) >> (8 - bits)).astype(element_type.dtype)
    return low.astype(element_type.dtype)


def _major_to_minor(shape: Shape) -> tuple[int, ...]:
    if shape.layout is None:
        return tuple(range(shape.rank))
    return shape.layout.minor_to_major[::-1]


def literal_of(value: object, shape: Shape | None = None) -> Literal:
    """A literal of an array, or of a tuple of arrays, as the evaluator gives them."""
    if isinstance(value, Literal):
        return value
    if isinstance(value, tuple | list):
        parts = [literal_of(v) for v in value]
        return Literal(shapes.tuple_([p.shape for p in parts]), parts)
    return literals.of(np.asarray(value))
