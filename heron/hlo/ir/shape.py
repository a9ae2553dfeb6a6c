"""Shape: the type of a value: an array of some element type, a tuple, a token, an opaque handle or a buffer.

Shapes are immutable and interned, so equality is identity and a shape may key any table.
Source: https://openxla.org/xla/shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod

from heron.errors import HeronError
from heron.hlo.ir import layout as layouts
from heron.hlo.ir.layout import Layout
from heron.hlo.ir.types import OPAQUE, PRED, TOKEN, ElementType

#: what buffers have instead of an element type
BUFFER = ElementType("b", "buffer", 0, None, 34)

ShapeIndex = tuple[int, ...]
#: the size of a dynamic dimension without a bound, ``?`` in text
UNBOUNDED = -1
#: bytes of an array: addresses are signed numbers of 64 bits
MOST_BYTES = 2**63 - 1


class Shape:
    """Make with `array()`, `tuple_()`, `scalar()`, `token()` or `buffer()`; never directly.

    ``dims``: sizes, outermost first. ``layout`` is None when unspecified. ``dynamic`` marks bounded dynamic dimensions
    (``<=N``) and unbounded ones, whose size is `UNBOUNDED` and which programs can only be carried with.
    ``tuple_shapes`` is None unless this is a tuple. ``content`` is None unless this is a buffer, ``b(f32[2])``: memory
    for such an array, which ops write into. ``byte_size``: of an array; ``total_bytes``: of all arrays within a tuple.
    """

    __slots__ = (
        "element_type",
        "dims",
        "layout",
        "dynamic",
        "tuple_shapes",
        "content",
        "is_tuple",
        "is_array",
        "rank",
        "is_unbounded",
        "num_elements",
        "byte_size",
        "total_bytes",
        "_bare",
        "text",
        "__weakref__",
    )

    def __init__(
        self,
        element_type: ElementType | None,
        dims: tuple[int, ...],
        layout: Layout | None,
        dynamic: tuple[bool, ...],
        tuple_shapes: tuple[Shape, ...] | None,
        content: Shape | None = None,
    ) -> None:
        self.element_type: ElementType = element_type or OPAQUE  # tuples answer OPAQUE
        self.dims, self.layout, self.dynamic = dims, layout, dynamic
        self.tuple_shapes, self.content = tuple_shapes, content
        self.is_tuple = tuple_shapes is not None
        self.is_array = not self.is_tuple and self.element_type.byte_size > 0
        self.rank = len(dims)
        self.is_unbounded = UNBOUNDED in dims or any(s.is_unbounded for s in tuple_shapes or ())
        self.num_elements = prod(dims) if not self.is_unbounded else 0
        self.byte_size: int = self.num_elements * self.element_type.byte_size if self.is_array else 0
        self.total_bytes: int = self.byte_size + sum(s.total_bytes for s in tuple_shapes or ())
        self._bare: Shape | None = None
        self.text = self._text()

    def _text(self) -> str:
        if self.tuple_shapes is not None:
            parts = [(f"/*index={n}*/" if n and n % 5 == 0 else "") + s.text for n, s in enumerate(self.tuple_shapes)]
            return "(" + ", ".join(parts) + ")"
        if self.content is not None:
            return f"b({self.content.text})"
        dims = self.dims
        if any(self.dynamic):
            inner = ",".join(_dimension(d, dyn) for d, dyn in zip(dims, self.dynamic, strict=True))
        else:
            inner = ",".join(map(str, dims))
        text = f"{self.element_type.name}[{inner}]"
        lay = self.layout
        if lay is not None and (dims or lay.text != "{}"):
            text += lay.text
        return text

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __reduce__(self) -> tuple[object, ...]:
        if self.tuple_shapes is not None:
            return tuple_, (self.tuple_shapes,)
        if self.content is not None:
            return buffer, (self.content,)
        return array, (self.element_type, self.dims, self.layout, self.dynamic)

    # -- questions ---------------------------------------------------------------------------------------------------
    @property
    def is_scalar(self) -> bool:
        return self.is_array and not self.dims

    @property
    def is_token(self) -> bool:
        return self.element_type is TOKEN and not self.is_tuple

    @property
    def bare(self) -> Shape:
        """This shape without any layout: what the value *is*, whatever its place in memory."""
        if self._bare is None:
            if self.tuple_shapes is not None:
                self._bare = tuple_(tuple(s.bare for s in self.tuple_shapes))
            elif self.content is not None:
                self._bare = buffer(self.content.bare)
            else:
                self._bare = array(self.element_type, self.dims, None, self.dynamic)
        return self._bare

    def leaves(self, prefix: ShapeIndex = ()) -> Iterator[tuple[ShapeIndex, Shape]]:
        """Every non-tuple part with its index, depth first. An array yields itself at ``()``."""
        if self.tuple_shapes is None:
            yield prefix, self
            return
        for n, part in enumerate(self.tuple_shapes):
            yield from part.leaves((*prefix, n))

    def subshapes(self, prefix: ShapeIndex = ()) -> Iterator[tuple[ShapeIndex, Shape]]:
        """Every part, tuples included, parents first."""
        yield prefix, self
        for n, part in enumerate(self.tuple_shapes or ()):
            yield from part.subshapes((*prefix, n))

    def at(self, index: ShapeIndex) -> Shape:
        """The part at a tuple index. Raises IndexError when there is none."""
        shape = self
        for n in index:
            if shape.tuple_shapes is None:
                raise IndexError(f"{self} has no part {index}")
            shape = shape.tuple_shapes[n]
        return shape

    def fits(self, dims: tuple[int, ...]) -> bool:
        """Whether an array of those sizes is a value of this: a dynamic dimension may be smaller than its bound."""
        if dims == self.dims:
            return True
        sizes = zip(dims, self.dims, self.dynamic, strict=False)
        return len(dims) == len(self.dynamic) and all(n <= most if dyn else n == most for n, most, dyn in sizes)

    # -- variants ----------------------------------------------------------------------------------------------------
    def misfit(self, dims: tuple[int, ...]) -> str | None:
        """Why an array of those sizes is no value of this, with the numbers; None when it is one."""
        if len(dims) != self.rank:
            return f"it has {len(dims)} dimensions, not {self.rank}"
        for d, (n, most) in enumerate(zip(dims, self.dims, strict=True)):
            if self.dynamic and self.dynamic[d]:
                if n > most:
                    return f"dimension {d} has {n} elements, its bound is {most}"
            elif n != most:
                return f"dimension {d} has {n} elements, not {most}"
        return None

    def with_layout(self, layout: Layout | None) -> Shape:
        return array(self.element_type, self.dims, layout, self.dynamic)

    @property
    def is_on_host(self) -> bool:
        """Whether it is an array in the host's memory."""
        return self.layout is not None and self.layout.memory_space == layouts.HOST_SPACE

    def in_memory(self, space: int) -> Shape:
        """An array of the same kind and order in the memory of that number."""
        lay = self.layout or layouts.default(self.rank)
        return self.with_layout(
            layouts.layout(lay.minor_to_major, lay.tiles, lay.element_size, space, lay.extra, lay.tail)
        )

    def with_default_layout(self) -> Shape:
        """Row-major layouts everywhere, inside tuples too."""
        if self.tuple_shapes is not None:
            return tuple_(tuple(s.with_default_layout() for s in self.tuple_shapes))
        if not self.is_array:
            return self
        return array(self.element_type, self.dims, layouts.default(self.rank), self.dynamic)

    def with_dims(self, dims: tuple[int, ...]) -> Shape:
        """Same element type, other sizes; the default layout if this shape had one."""
        lay = None if self.layout is None else layouts.default(len(dims))
        return array(self.element_type, tuple(dims), lay)

    def with_type(self, element_type: ElementType) -> Shape:
        """Same sizes and layout, other element type."""
        return array(element_type, self.dims, self.layout, self.dynamic)


def _dimension(size: int, dynamic: bool) -> str:
    if not dynamic:
        return str(size)
    return "?" if size == UNBOUNDED else f"<={size}"


_arrays: dict[tuple[object, ...], Shape] = {}
_tuples: dict[tuple[Shape, ...], Shape] = {}


def array(
    element_type: ElementType,
    dims: tuple[int, ...] = (),
    layout: Layout | None = None,
    dynamic: tuple[bool, ...] = (),
) -> Shape:
    """The array shape with these fields (``layout=None``: unspecified). Raises HLO007: too large to address."""
    if dynamic and not any(dynamic):
        dynamic = ()
    key = (element_type, dims, layout, dynamic)
    found = _arrays.get(key)
    if found is None:
        found = Shape(element_type, dims, layout, dynamic, None)
        _check_size(found)
        _arrays[key] = found
    return found


def _check_size(shape: Shape) -> None:
    """Strides are products of sizes, those of an array without elements too: there sizes of 0 count as 1."""
    size = shape.byte_size or prod([max(1, d) for d in shape.dims]) * shape.element_type.byte_size
    if size > MOST_BYTES:
        raise HeronError("HLO007", f"{shape} is too large", why=f"{size:.3g} bytes; the limit is 2**63 - 1")


def tuple_(shapes: tuple[Shape, ...] | list[Shape]) -> Shape:
    """The tuple of these shapes."""
    key = tuple(shapes)
    found = _tuples.get(key)
    if found is None:
        found = _tuples[key] = Shape(None, (), None, (), key)
    return found


@cache
def row_major(element_type: ElementType, *dims: int) -> Shape:
    """An array with the default layout, the everyday constructor: ``row_major(F32, 2, 3)``."""
    return array(element_type, dims, layouts.default(len(dims)))


def scalar(element_type: ElementType) -> Shape:
    """``f32[]`` and its like, with layout ``{}``."""
    return row_major(element_type)


def token() -> Shape:
    """The shape of ordering tokens: ``token[]``."""
    return array(TOKEN)


@cache
def buffer(content: Shape) -> Shape:
    """Memory for an array of that shape: ``b(f32[2])``."""
    return Shape(BUFFER, (), None, (), None, content)


PRED_SCALAR = scalar(PRED)
