"""Sizes that types leave open (``?``): the functions that have such, and integers that are known at import.

A function with open sizes, or with an operation whose operands say sizes, is imported once for each kind of call: for
the shapes of its operands, and for the integers among them that are constants. In such a function, small integers that
follow from constants become constants as they are imported. An operation therefore only asks whether an operand that
holds sizes is a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from heron.errors import HeronError
from heron.frontends.arguments import Given
from heron.frontends.stablehlo.syntax import Function, Operation, Program, Region
from heron.hlo.facts import having
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import UNBOUNDED, Shape
from heron.hlo.ir.types import PRED, ElementType, of_dtype

if TYPE_CHECKING:
    from heron.evaluator import Value

#: operations whose operands say sizes
_SIZED = frozenset(
    f"stablehlo.{name}"
    for name in (
        "dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad dynamic_reshape"
        " real_dynamic_slice"
    ).split()
)
#: custom calls that do, or that are claims about sizes
_SIZED_CALLS = ("shape_assertion", "stablehlo.dynamic_", "stablehlo.shape_refinement_")
#: a text without any of these has no function of this kind
_SIGNS = ("?", "dynamic_", "shape_", "shape.")
#: sizes are vectors of few integers
MAX_INTEGERS = 64
#: integers that are not known before the program runs, or might never be, beside those of ops with side effects
_AT_RUN_TIME = having(Trait.DEVICE_ID, Trait.ASYNC) | {"parameter", "rng-bit-generator", "while", "custom-call"}


def polymorphic(program: Program) -> frozenset[str]:
    """Names of the functions that are imported anew for each kind of call, callers of such functions included."""
    if not any(sign in program.source.text for sign in _SIGNS):
        return frozenset()
    callers: dict[str, list[str]] = {}
    for function in program.functions.values():
        for callee in function.calls:
            callers.setdefault(callee, []).append(function.name)
    found = [f.name for f in program.functions.values() if _is_open(f)]
    seen = set(found)
    while found:
        for caller in callers.get(found.pop(), ()):
            if caller not in seen:
                seen.add(caller)
                found.append(caller)
    return frozenset(seen)


def _is_open(function: Function) -> bool:
    types = (*(a.type for a in function.arguments), *(shape for shape, _ in function.results))
    return any(t.is_unbounded for t in types) or (function.body is not None and _has_sizes(function.body))


def _has_sizes(region: Region) -> bool:
    stack = [region]
    while stack:
        for op in stack.pop().operations:
            if op.name in _SIZED or op.name.startswith("shape.") or any(t.is_unbounded for t in op.types):
                return True
            if op.name == "stablehlo.custom_call" and _says_sizes(op):
                return True
            stack.extend(op.regions)
    return False


def _says_sizes(op: Operation) -> bool:
    return str(op.find("call_target_name")).startswith(_SIZED_CALLS) or "indices_of_shape_operands" in op.attrs


def fits(shape: Shape, stated: Shape) -> bool:
    """Whether a value of `shape` is one of the `stated` type, which may leave sizes open."""
    if shape.bare is stated.bare:
        return True
    if not stated.is_unbounded or shape.is_tuple != stated.is_tuple:
        return False
    if stated.tuple_shapes is not None:
        parts = shape.tuple_shapes or ()
        return len(parts) == len(stated.tuple_shapes) and all(map(fits, parts, stated.tuple_shapes))
    if shape.element_type is not stated.element_type or shape.rank != stated.rank:
        return False
    return all(want in (UNBOUNDED, size) for size, want in zip(shape.dims, stated.dims, strict=True))


def shape(given: Given, t: ElementType | None = None) -> Shape:
    """The shape of what is known of an argument; stored bits without a type are taken to be of type `t`."""
    if isinstance(given, Shape):
        return given
    untyped = t is not None and given.dtype.type is np.void and given.dtype.itemsize == t.byte_size
    return shapes.row_major(t if untyped and t else of_dtype(given.dtype), *given.shape)


def value(given: Given) -> np.ndarray | None:
    """The value of an argument that sizes may depend on, if it is known."""
    return given if isinstance(given, np.ndarray) and _may_say_sizes(shape(given)) else None


def integers(i: Instruction) -> np.ndarray | None:
    """The values of a constant that may say sizes: few integers or booleans. None for anything else."""
    return i.attrs["literal"].array if i.opcode == "constant" and _may_say_sizes(i.shape) else None


def _may_say_sizes(shape: Shape) -> bool:
    if shape.tuple_shapes is not None:
        return all(_may_say_sizes(part) for part in shape.tuple_shapes)
    t = shape.element_type
    return (t.is_integer or t is PRED) and shape.num_elements <= MAX_INTEGERS and not shape.dynamic


class Folding:
    """Finds the integers that follow from constants alone, by the evaluator; asks for each instruction once."""

    def __init__(self) -> None:
        self._unknown: set[Instruction] = set()
        self._values: dict[Instruction, Value] = {}

    def value(self, i: Instruction) -> Value:
        """The value of an instruction: an array, or a tuple of arrays; None when it is not known yet."""
        if i in self._values:
            return self._values[i]
        if i in self._unknown:
            return None
        found = self._computed(i)
        if found is None:
            self._unknown.add(i)
        else:
            self._values[i] = found
        return found

    def _computed(self, i: Instruction) -> Value:
        if (constant := _returned(i)) is not None:
            return integers(constant)
        if i.opcode in _AT_RUN_TIME or i.has_side_effect or not _may_say_sizes(i.shape) or not _ends(i):
            return None
        operands = [self.value(o) for o in i.operands]
        if any(o is None for o in operands):
            return None
        from heron.evaluator import Evaluator  # few programs have open sizes

        try:
            return Evaluator().run_instruction(i, operands)
        except HeronError:
            return None


def _returned(i: Instruction) -> Instruction | None:
    """The constant that is the value of an instruction: itself, or what a function it calls returns in any case."""
    if i.opcode == "constant":
        return i
    index, call = (i.index, i.operands[0]) if i.opcode == "get-tuple-element" else (None, i)
    if call.opcode != "call":
        return None
    root = call.to_apply.root
    if index is not None:
        root = root.operands[index] if root.opcode == "tuple" else None
    return root if root is not None and root.opcode == "constant" else None


def _ends(i: Instruction) -> bool:
    """Whether what it calls has no loop, and nothing only known at run time."""
    work = i.called
    seen = set(work)
    while work:
        for inner in work.pop().instructions:
            if inner.opcode != "parameter" and (inner.opcode in _AT_RUN_TIME or inner.op.has_side_effect):
                return False
            fresh = [c for c in inner.called if c not in seen]
            seen.update(fresh)
            work.extend(fresh)
    return True


def same_value(a: Instruction, b: Instruction) -> bool:
    """Whether two instructions compute the same from the same."""
    work, seen = [(a, b)], set()
    while work:
        pair = x, y = work.pop()
        if x is y or pair in seen:
            continue
        seen.add(pair)
        if x.opcode != y.opcode or x.shape is not y.shape or x.opcode in _AT_RUN_TIME or x.has_side_effect:
            return False
        if x.attrs != y.attrs or len(x.operands) != len(y.operands):
            return False
        work.extend(zip(x.operands, y.operands, strict=True))
    return True


def call_key(operands: Iterable[Instruction]) -> tuple[object, ...]:
    """The properties of a call that decide how its function is imported."""
    return tuple([(o.shape.bare, _bytes(integers(o))) for o in operands])


def _bytes(values: np.ndarray | None) -> bytes | None:
    return None if values is None else values.tobytes()


def sized(op: Operation, stated: Shape, sizes: Sequence[int]) -> Shape:
    """The `stated` type of an operation with its sizes. Raises SHLO004 when they are not what the type says."""
    if any(n < 0 for n in sizes):
        op.fail("SHLO004", f"{op.name} is given sizes below zero", why=f"they are {list(sizes)}")
    found = stated.with_dims(tuple(sizes))
    if not fits(found, stated):
        op.fail("SHLO004", f"{op.name} is given other sizes than its type says", why=f"{found.bare} and {stated.bare}")
    return found
