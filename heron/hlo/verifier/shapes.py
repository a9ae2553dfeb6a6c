"""Shapes: every instruction's against its op's rule."""

from __future__ import annotations

from collections.abc import Iterator

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.verifier.rules import Problem, Stage, rule


@rule("HLO108", Stage.SHAPES)
def shapes_are_as_inferred(module: Module) -> Iterator[Problem]:
    """Every shape is the one the op's rule gives, layouts apart; the rules' own findings are HLO010.

    The rules also check called computations against operands: reducers, loop bodies, branches, comparators.
    """
    for c in module.computations:
        for i in c.instructions:
            stated = i.shape
            if stated is None:
                yield Problem("HLO108", f"'{i.name}' has no shape", i)
                continue
            try:
                inferred = i.op.shape(i, *[o.shape for o in i.operands])
                if i.op.verify is not None:
                    i.op.verify(i)
            except HeronError as error:
                yield Problem(error.code, error.what, i, why=error.why, hint=error.hint)
                continue
            if inferred is stated or inferred.bare is stated.bare or _differ_in_bounds_only(inferred, stated):
                continue
            what = f"the shape of '{i.name}' is stated as {stated.bare}"
            yield Problem("HLO108", what, i, why=f"{i.opcode} gives {inferred.bare}")


def _differ_in_bounds_only(a: Shape, b: Shape) -> bool:
    """Whether two shapes are the same but for which dimensions are dynamic."""
    if a.tuple_shapes is not None and b.tuple_shapes is not None:
        if len(a.tuple_shapes) != len(b.tuple_shapes):
            return False
        return all(map(_differ_in_bounds_only, a.tuple_shapes, b.tuple_shapes))
    return a.is_tuple == b.is_tuple and a.element_type is b.element_type and a.dims == b.dims
