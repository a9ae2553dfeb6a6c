"""Builder: programs written in Python.

Every declared op is a method: operands in order, attributes by keyword::

    b = Builder("norm")
    x = b.parameter(0, row_major(F32, 4, 8))
    total = b.reduce(b.multiply(x, x), 0, dimensions=[1], to_apply=b.reducer("add", F32))
    module = b.build(b.sqrt(total))

Any op also takes metadata, a sharding, frontend attributes and a backend configuration by keyword. Elementwise ops
spread their operands by NumPy's rules, and numbers take the type and dimensions of what they stand beside. Errors point
at the line of Python that makes the op. Methods are named after the opcodes, ``-`` written ``_``, with a ``_`` behind
Python's keywords (`and_`, `while_`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import heron.hlo.ops  # noqa: F401  (fills the registry)
from heron.errors import HeronError
from heron.hlo.callers import at_caller
from heron.hlo.ir import literal as literals
from heron.hlo.ir import op as ops
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.broadcasting import broadcast_to, broadcast_together, common_dims
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import AttrKind, Op
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import PRED, S32, ElementType
from heron.hlo.verifier import verify as verify_module

#: what an op takes where an instruction is wanted
Value = Instruction | bool | int | float | complex | np.ndarray | np.generic

#: ops whose operands after these positions are indices, so numbers there become s32
_INDEX_OPERANDS = {"dynamic-slice": 1, "dynamic-update-slice": 2}

#: what any op takes beside its attributes; a sharding as value or text
CARRIED = frozenset({"metadata", "sharding", "frontend_attributes", "backend_config"})

#: elementwise ops that take scalars beside arrays
_SCALAR_OPERANDS = {"select", "clamp"}


class Builder:
    """One computation being built, in a module of its own or, from `nested()`, in the caller's."""

    def __init__(self, name: str, within: Module | None = None) -> None:
        self.module = Module(name) if within is None else within
        self.computation = Computation("main" if within is None else name)
        self.module.add_computation(self.computation, entry=within is None)
        self._reducers: dict[tuple[str, ElementType], Computation] = {}

    # -- leaves ------------------------------------------------------------------------------------------------------
    def parameter(self, number: int, shape: Shape, name: str = "") -> Instruction:
        """A parameter; a shape without layout gets the default one."""
        return self.computation.add_parameter(number, _with_layout(shape), name)

    def constant(self, value: Any, element_type: ElementType | None = None) -> Instruction:
        """A constant from a number or array; without `element_type`, of the array's own type.

        Raises HLO002 for what is no array of numbers.
        """
        try:
            return self._constant(np.asarray(value), element_type)
        except HeronError as error:
            raise at_caller(error) from None
        except (TypeError, ValueError) as error:
            raise at_caller(HeronError("HLO002", f"{value!r:.60} cannot be a constant", why=str(error))) from None

    def _constant(self, array: np.ndarray, element_type: ElementType | None) -> Instruction:
        if element_type is not None:
            literal = literals.Literal(shapes.row_major(element_type, *array.shape), array.astype(element_type.dtype))
        else:
            literal = literals.of(_narrowed(array))
        return self.computation.add("constant", (), literal.shape, literal=literal)

    def full(self, value: Any, shape: Shape) -> Instruction:
        """An array of that shape with `value` everywhere."""
        scalar = self.constant(value, shape.element_type)
        if not shape.rank:
            return scalar
        return self.computation.add("broadcast", (scalar,), shape.with_default_layout(), dimensions=())

    def iota(self, shape: Shape, dimension: int = 0) -> Instruction:
        """Counts along a dimension."""
        return self.computation.add("iota", (), _with_layout(shape), iota_dimension=dimension)

    # -- broadcasting ------------------------------------------------------------------------------------------------
    def broadcast_to(self, x: Value, dims: Iterable[int]) -> Instruction:
        """`x` repeated to these dimensions, as NumPy does. Raises HLO026 when it does not broadcast to them."""
        try:
            return broadcast_to(self.computation, self._operand(x), tuple(dims))
        except HeronError as error:
            raise at_caller(error) from None

    def broadcast_together(self, *operands: Value) -> list[Instruction]:
        """The operands with the dimensions they have in common. Raises HLO026 when they have none."""
        try:
            return broadcast_together(self.computation, [self._operand(x) for x in operands])
        except HeronError as error:
            raise at_caller(error) from None

    def _operand(self, x: Value) -> Instruction:
        return x if isinstance(x, Instruction) else self.constant(x)

    # -- computations ------------------------------------------------------------------------------------------------
    def nested(self, name: str) -> Builder:
        """A builder for a computation to be called from here; end it with `finish`."""
        return Builder(name, self.module)

    def finish(self, root: Instruction) -> Computation:
        """Set the root and hand out the computation."""
        self.computation.root = root
        return self.computation

    def reducer(self, opcode: str, element_type: ElementType) -> Computation:
        """A computation of two scalars that applies a binary op; the same one when asked again."""
        key = (opcode, element_type)
        if key not in self._reducers:
            inner = self.nested(f"{opcode}_{element_type}")
            scalar = shapes.scalar(element_type)
            a, b = inner.parameter(0, scalar), inner.parameter(1, scalar)
            self._reducers[key] = inner.finish(inner.computation.add(opcode, (a, b)))
        return self._reducers[key]

    def build(self, root: Instruction, verify: bool = True) -> Module:
        """The finished module. Raises what the verifier finds."""
        self.finish(root)
        if verify:
            verify_module(self.module)
        return self.module

    # -- ops ---------------------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Callable[..., Instruction]:
        if name.startswith("_"):
            raise AttributeError(name)
        op = ops.get(name.rstrip("_").replace("_", "-"))

        def make(*operands: Value, shape: Shape | None = None, name: str = "", **attrs: Any) -> Instruction:
            return self.apply(op, operands, shape, name, attrs)

        return make

    def apply(
        self, op: Op, operands: Sequence[Value], shape: Shape | None, name: str, attrs: dict[str, Any]
    ) -> Instruction:
        """An instruction of any op. Numbers among the operands become constants, lists among attributes tuples.

        `CARRIED` names what any op takes. Raises HLO004 (operand count), HLO005 (attributes), HLO006 (operands from
        elsewhere), HLO010 (shape rule), at the line of Python that asked for it.
        """
        try:
            return self._apply(op, operands, shape, name, attrs)
        except HeronError as error:
            raise at_caller(error) from None

    def _apply(
        self, op: Op, operands: Sequence[Value], shape: Shape | None, name: str, attrs: dict[str, Any]
    ) -> Instruction:
        carried = {n: v for n, v in attrs.items() if n in CARRIED and n not in op.attributes}
        attrs = {n: v for n, v in attrs.items() if n not in carried}
        for attribute in attrs:
            if attribute not in op.attributes:
                known = ", ".join(op.attributes) or "none"
                raise HeronError("HLO005", f"{op.name} has no attribute '{attribute}'", why=f"its attributes: {known}")
        for attribute, spec in op.attributes.items():
            if spec.required and attribute not in attrs:
                raise HeronError("HLO005", f"{op.name} needs the attribute '{attribute}'")
        for n, o in enumerate(operands):
            if isinstance(o, Instruction) and o.parent is not self.computation:
                home = "no computation" if o.parent is None else f"'{o.parent.name}'"
                raise HeronError(
                    "HLO006",
                    f"operand {n} of {op.name} belongs to {home}",
                    why=f"the op is added to '{self.computation.name}'",
                    hint="computations share no values: pass it as a parameter",
                )
        plain = {n: _plain(op, n, v) for n, v in attrs.items()}
        given = None if shape is None else _with_layout(shape)
        made = self.computation.add(op.name, self._spread(op, self._values(op, operands)), given, name, **plain)
        made.metadata = carried.pop("metadata", None)
        made.extras.update({n: str(v) if n == "sharding" else v for n, v in carried.items()})
        return made

    def _spread(self, op: Op, operands: list[Instruction]) -> list[Instruction]:
        """Operands of an elementwise op in their common dimensions; a scalar choice or bound stays one."""
        if not op.is_elementwise or len({o.shape.dims for o in operands}) < 2:
            return operands
        to = common_dims(*(o.shape.dims for o in operands))
        if to is None:
            return operands  # the shape rule tells what is wrong
        scalars = op.name in _SCALAR_OPERANDS
        return [o if scalars and not o.shape.rank else broadcast_to(self.computation, o, to) for o in operands]

    def _values(self, op: Op, operands: Sequence[Value]) -> list[Instruction]:
        known = [o for o in operands if isinstance(o, Instruction)]
        if len(known) == len(operands):
            return known
        like = next((o.shape for o in known if o.shape.element_type is not PRED), known[0].shape if known else None)
        first_index = _INDEX_OPERANDS.get(op.name, len(operands))
        return [
            o if isinstance(o, Instruction) else self._value(o, like, op.is_elementwise, n >= first_index)
            for n, o in enumerate(operands)
        ]

    def _value(self, value: Any, like: Shape | None, spread: bool, index: bool) -> Instruction:
        if isinstance(value, np.ndarray) and value.ndim:
            return self.constant(value)
        if index:
            return self.constant(value, S32)
        if like is None or not like.is_array:
            return self.constant(value)
        return self.full(value, like) if spread else self.constant(value, like.element_type)


def _with_layout(shape: Shape) -> Shape:
    if shape.is_tuple:
        return shapes.tuple_([_with_layout(s) for s in shape.tuple_shapes or ()])
    return shape.with_default_layout() if shape.is_array and shape.layout is None else shape


def _narrowed(array: np.ndarray) -> np.ndarray:
    """Python's int and float arrays as 32-bit ones, which is what programs mean by them."""
    if array.dtype == np.int64 and array.ndim == 0:
        return array.astype(np.int32)
    return array.astype(np.float32) if array.dtype == np.float64 and array.ndim == 0 else array


def _plain(op: Op, name: str, value: Any) -> Any:
    """Lists as tuples, a single computation where a tuple of them is wanted."""
    if op.attributes[name].kind is AttrKind.COMPUTATIONS and isinstance(value, Computation):
        return (value,)
    return _as_tuple(value)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list | tuple) and not hasattr(value, "_fields") else value
