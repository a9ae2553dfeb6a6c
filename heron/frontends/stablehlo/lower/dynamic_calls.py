"""Custom calls whose operands say sizes: operations that JAX writes so, claims about sizes, and any others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from heron.frontends.stablehlo.block import Block
from heron.frontends.stablehlo.lower.dynamic import known
from heron.frontends.stablehlo.sizes import integers, sized
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.ir.window import WindowDim

Lowering = Callable[[Block, Operation, list[Instruction]], list[Instruction]]


def _shape_assertion(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """A claim about sizes, which is settled here. Raises SHLO013 with the program's own message when it is false."""
    (holds,) = known(op, operands[0], "claim")
    if not holds:
        values = [str(integers(i)) for i in operands[1:]]
        message = op.word("error_message", default="the shapes do not fit the program")
        for n, value in enumerate(values):
            message = message.replace("{" + str(n) + "}", value)
        op.fail("SHLO013", "the program's check refuses the sizes of the arguments", why=message)
    return []


def _reduce_window(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """The arrays, their initial values, then five vectors: of windows, strides, both dilations and the padding."""
    arrays = operands[:-5]
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
    *columns, padding = (known(op, i, name) for i, name in zip(operands[-5:], names, strict=True))
    rows = zip(*columns, padding[::2], padding[1::2], strict=True)
    window = tuple(WindowDim(size, step, low, high, base, wide) for size, step, base, wide, low, high in rows)
    (name,) = op.find("called_computations")
    i = b.add("reduce-window", arrays, window=window, to_apply=b.importer.called(name, op))
    return b.unpacked(i, len(op.types))


def _rng_bit_generator(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """The state, then the sizes of the bits."""
    state, sizes = operands
    bits = sized(op, op.types[1], known(op, sizes, "output_shape"))
    algorithm = "rng_" + op.word("rng_algorithm").lower()
    shape = tuple_((state.shape, bits))
    return b.parts(b.checked("rng-bit-generator", (state,), shape, algorithm=algorithm))


def _top_k(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """The array, then how many elements of each row."""
    (k,) = known(op, operands[1], "k")
    return b.parts(b.add("topk", operands[:1], k=k, largest=True))


def _refined_already(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """An argument that was given its sizes by other tools; the second operand says what they are."""
    return operands[:1]


#: custom calls by their target
SIZED_CALLS: dict[str, Lowering] = {
    "shape_assertion": _shape_assertion,
    "stablehlo.dynamic_reduce_window": _reduce_window,
    "stablehlo.dynamic_rng_bit_generator": _rng_bit_generator,
    "stablehlo.dynamic_top_k": _top_k,
    "stablehlo.shape_refinement_operand_wrapper": _refined_already,
}


def shape_operands(op: Operation) -> tuple[int, ...]:
    """The operands of a custom call that hold the sizes of its results, one for each."""
    return op.ints("indices_of_shape_operands", default=())


def result_types(op: Operation, operands: list[Instruction]) -> list[Shape]:
    """The types of a custom call's results, with the sizes from its operands."""
    which = shape_operands(op)
    if not which:
        return list(op.types)
    leaves = [leaf for t in op.types for _, leaf in t.leaves()]
    if len(which) != len(leaves) or not all(0 <= n < len(operands) for n in which):
        op.wrong("indices_of_shape_operands", "one operand for each result")
    found = iter([sized(op, t, known(op, operands[n], "shape")) for n, t in zip(which, leaves, strict=True)])
    return [_rebuilt(t, found) for t in op.types]


def _rebuilt(stated: Shape, leaves: Iterator[Shape]) -> Shape:
    if stated.tuple_shapes is None:
        return next(leaves)
    return tuple_(tuple(_rebuilt(part, leaves) for part in stated.tuple_shapes))
