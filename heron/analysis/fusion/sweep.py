"""The passes of a kernel with reductions over its arrays."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from heron.analysis.fusion.fusion import Fusion, Output
from heron.analysis.fusion.reduction import Reduction, ReductionForm
from heron.analysis.fusion.rowwise import RowwiseForm
from heron.analysis.indexing.expr import Expr, dims
from heron.analysis.indexing.hlo_maps import linearize
from heron.analysis.indexing.simplify import simplifier
from heron.hlo.ir.computation import Computation


class Step(NamedTuple):
    """When an element of an output is stored: in which ``part`` of the kernel, and with which result of the reduction.

    ``element``: the row-major number of the element that is stored with the result at (d0, d1, ...); None for an output
    whose element is stored at its own place of a walk over all of them.
    """

    part: int
    element: Expr | None = None


class Sweep(NamedTuple):
    """``steps``: for each output when its elements are stored; empty if the kernel has no parts. Outputs of one step
    have elements of the same number stored together, after all that these are made from has been read.

    ``is_lone``: all is one reduction and outputs of the size of its arrays or results; ``is_to_one``: and that of all
    elements to one. ``is_rowwise``: it goes row by row, and takes all reductions of a row before it stores any.
    """

    steps: tuple[Step, ...] = ()
    is_lone: bool = False
    is_to_one: bool = False
    is_rowwise: bool = False

    @staticmethod
    def of(fusion: Fusion, form: object) -> Sweep:
        """The sweep of a kernel with that form."""
        alike = _reduces_one_kind(fusion.computation)
        if isinstance(form, RowwiseForm):
            return Sweep(is_rowwise=alike)
        if not isinstance(form, ReductionForm):
            return Sweep()
        steps = tuple(_step(form, n, output) for n, output in enumerate(fusion.outputs))
        first = form.reductions[0]
        is_lone = alike and len(form.reductions) == 1 and not form.loose and _takes_all(fusion.computation, first)
        return Sweep(steps, is_lone, is_lone and first.rows == 1)


def _step(form: ReductionForm, n: int, output: Output) -> Step:
    """When the elements of output `n` are stored."""
    part = next((k for k, members in enumerate(form.parts) if n in members), -1)
    reduction = next((r for r in form.reductions if n in r.after), None)
    if reduction is None:
        return Step(part)
    sizes = reduction.result_sizes
    place = reduction.place(output.instruction, dims(len(sizes)))
    return Step(part, simplifier(tuple((0, k - 1) for k in sizes)).simplify(linearize(place, output.shape.dims)))


def _takes_all(body: Computation, reduction: Reduction) -> bool:
    """Whether the reduction has all reduces there are: others are computed where their results are needed."""
    return all(i in reduction.reduces for i in body.instructions if i.opcode == "reduce")


def _reduces_one_kind(body: Computation) -> bool:
    """Whether all reductions are of equal arrays over the same dimensions, and all outputs of these arrays' size or of
    the results'."""
    reduces = [r for r in body.instructions if r.opcode == "reduce"]
    kinds = {(r.operands[0].shape.dims, tuple(sorted(r.attrs["dimensions"]))) for r in reduces}
    if len(kinds) != 1:
        return False
    ((dims, gone),) = kinds
    sizes = prod(dims), prod(n for d, n in enumerate(dims) if d not in gone)
    return all(s.num_elements in sizes for _, s in body.root.shape.leaves() if s.is_array)
