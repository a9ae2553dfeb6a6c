"""The passes of a kernel with reductions over its arrays."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.reduction import ReductionForm
from heron.analysis.fusion.rowwise import RowwiseForm
from heron.hlo.ir.computation import Computation


class Sweep(NamedTuple):
    """``parts``: for each output the number of the part of the kernel that writes it; empty if there are no parts.

    ``is_lone``: all is one reduction and outputs of the size of its arrays or results; ``is_to_one``: and that of all
    elements to one. ``is_rowwise``: it goes row by row, and takes all reductions of a row before it stores any.
    """

    parts: tuple[int, ...] = ()
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
        outputs = range(len(fusion.outputs))
        parts = tuple(next((k for k, part in enumerate(form.parts) if n in part), -1) for n in outputs)
        is_lone = alike and len(form.reductions) == 1 and not form.loose
        return Sweep(parts, is_lone, is_lone and form.reductions[0].rows == 1)


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
