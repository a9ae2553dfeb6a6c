"""The kernel that a fusion becomes: its kind, the instruction it is shaped after, its form, and the reasons.

Fusion passes, copy insertion, buffers, lowering and emitters ask `analyse` and nothing else, so that all of them hold
the same kernel to be the one that is emitted. docs/understand/fusion.md tells what asks for what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from heron.analysis.blocks.config import BlockConfig
from heron.analysis.fusion import reduction, transpose
from heron.analysis.fusion.cuts import Cuts, are_slices, cuts_of
from heron.analysis.fusion.fusion import Fusion, as_fusion, row_major
from heron.analysis.fusion.in_place import updates
from heron.analysis.fusion.long_elements import has_long_elements
from heron.analysis.fusion.prefix_scan import Scan, scan_of
from heron.analysis.fusion.products import as_reduction
from heron.analysis.fusion.reduce_order import along_columns, in_any_order
from heron.analysis.fusion.reduction import ReductionForm
from heron.analysis.fusion.rowwise import RowwiseForm, rows_of
from heron.analysis.fusion.scatter import Scatter, only_scatter
from heron.analysis.fusion.selection import is_selection
from heron.analysis.fusion.sort import Sort
from heron.analysis.fusion.sweep import Sweep
from heron.analysis.fusion.transpose import TransposeForm
from heron.analysis.indexing.hlo_maps import moves_elements
from heron.hlo.facts import contracts, having, is_product
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.records import dataclass
from heron.targets import Target

#: what the emitter of a kind needs: reduce, rows, transpose, scan, scatter, sort, concatenate, block, and for dus the
#: number of the input that each output overwrites; loop, slices and topk need nothing
Form: TypeAlias = (
    ReductionForm | RowwiseForm | TransposeForm | Scan | Scatter | Sort | Cuts | BlockConfig | dict[int, int] | None
)

#: elements a reduce must combine for a kernel shaped after it: fewer are combined where they are needed, by a GPU's
#: thread, or by a CPU in no vectors
MIN_REDUCED, MIN_REDUCED_ON_CPU = 64, 9
#: columns that a CPU combines side by side, and the shortest of those that are expensive to combine
MIN_COLUMNS, MIN_COLUMN = 8, 33
#: the shortest of other columns that are combined row by row, where there are a few of them and where there are more
MIN_FEW_COLUMNS, MIN_MORE_COLUMNS = 16, 12
#: ops between the root and a reduce hero that keep its elements in place, beside the elementwise ones
_EPILOGUE = having(Trait.VIEW) | {"get-tuple-element"}


@dataclass(frozen=True, slots=True)
class FusionAnalysis:
    """The kernel of a fusion.

    ``kind``: the emitter's name. ``hero``: the instruction that the kernel is shaped after, if any. ``form``: what the
    emitter needs to know. ``asked``: the kind that the hero asks for, where the fusion gets another one.
    """

    fusion: Fusion
    kind: str
    reason: str
    hero: Instruction | None = None
    form: Form = None
    asked: str = ""

    @property
    def wanted(self) -> str:
        """The kind that the hero asks for."""
        return self.asked or self.kind

    @property
    def sweep(self) -> Sweep:
        """The passes of the kernel over the arrays that it reduces."""
        return Sweep.of(self.fusion, self.form)

    @property
    def updates(self) -> dict[int, int]:
        """Numbers of outputs that must have the buffer of an input, and the numbers of these inputs."""
        if self.kind == "dus":
            return self.form  # type: ignore[return-value]
        if self.kind != "scatter":
            return {}
        operands = self.form.operands  # type: ignore[union-attr]
        return {n: o.number for n, o in enumerate(operands) if o.opcode == "parameter"}


def analyse(
    i: Instruction | Fusion,
    target: Target | None = None,
    *,
    in_place: bool = True,
    tiled: bool = True,
    parts: int = 0,
    least: int = 0,
) -> FusionAnalysis:
    """The kernel that `i` becomes.

    Args:
        i: a fusion, any other instruction by itself, or a fusion that no program has.
        target: the machine. None: the kernel on any machine; whether and how a transpose is tiled is then left open.
        in_place: whether outputs may have the buffers of inputs.
        tiled: whether a block-level fusion may be computed tile by tile.
        parts: as in `Fusion`.
        least: elements that a reduce must combine for a kernel shaped after it; 0: the target's number.

    Raises:
        HeronError: GEN130 or GEN133 for a scatter or a sort with other outputs.
    """
    if not isinstance(i, Instruction) or i.opcode != "fusion":
        return _analysed(i, target, in_place, tiled, parts, least)
    key = ("kernel", target, i.extras.get("backend_config"), in_place, tiled, parts, least)
    return i.attrs["calls"].remembered(key, lambda: _analysed(i, target, in_place, tiled, parts, least))


def _analysed(
    i: Instruction | Fusion, target: Target | None, in_place: bool, tiled: bool, parts: int, least: int
) -> FusionAnalysis:
    fusion = i if isinstance(i, Fusion) else as_fusion(i)
    if parts:
        fusion = replace(fusion, parts=parts)
    if target is not None and not target.is_gpu and isinstance(i, Instruction) and i.opcode == "dot":
        fusion = as_reduction(fusion)
    refused = ""
    if fusion.blocks is not None:
        is_gpu = target is None or target.is_gpu
        if tiled and is_gpu:
            return _tiled(fusion)
        refused = "" if is_gpu else "block kernels are for GPUs"
        fusion = replace(fusion, blocks=None)
    least = least or (MIN_REDUCED if target is None or target.is_gpu else MIN_REDUCED_ON_CPU)
    found = next(a for recognised in _KINDS if (a := recognised(fusion, target, least)) and _may(a, in_place))
    return replace(found, reason=f"{found.reason}; {refused}") if refused else found


def _may(found: FusionAnalysis, in_place: bool) -> bool:
    return in_place or found.kind != "dus"


# -- kinds ----------------------------------------------------------------------------------------------------------


def _tiled(fusion: Fusion) -> FusionAnalysis:
    inside = fusion.computation.instructions
    hero = min(inside, key=lambda i: (not contracts(i), not is_product(i)))
    return FusionAnalysis(
        fusion, "block", f"'{hero.name}' is computed tile by tile with what is around it", hero, fusion.blocks
    )


def _sort(fusion: Fusion, target: Target | None, least: int) -> FusionAnalysis | None:
    form = Sort.of(fusion)
    return None if form is None else FusionAnalysis(fusion, "sort", f"'{form.i.name}' is a sort", form.i, form)


def _selected(fusion: Fusion, target: Target | None, least: int) -> FusionAnalysis | None:
    hero = fusion.computation.root
    return FusionAnalysis(fusion, "topk", f"'{hero.name}' keeps few of many", hero) if is_selection(hero) else None


def _rowwise(fusion: Fusion, target: Target | None, least: int) -> FusionAnalysis | None:
    rows = rows_of(fusion)
    if rows is None:
        return None
    names = ", ".join(f"'{i.name}'" for i in rows.reduces)
    why = f"a row is stored after {names}, which reduce it"
    return FusionAnalysis(fusion, "rows", why, rows.reduces[-1], rows)


def _in_parts(fusion: Fusion, target: Target | None, least: int) -> FusionAnalysis | None:
    return FusionAnalysis(fusion, "loop", f"it is done in {fusion.parts} parts") if fusion.parts else None


def _after_hero(fusion: Fusion, target: Target | None, least: int) -> FusionAnalysis | None:
    in_order = _is_on_cpu(target, least)
    if in_order and any(map(_has_long_elements, fusion.computation.instructions)):
        least = 2
    else:
        least = max([least, *map(_least_reduced, fusion.computation.instructions)])
    found = next((found for o in fusion.outputs for found in _heroes(o.instruction, least, in_order)), None)
    if found is None:
        return None
    hero, why = found
    if hero.opcode == "scatter":
        return FusionAnalysis(fusion, "scatter", why, hero, Scatter.of(only_scatter(fusion)))
    if hero.opcode == "reduce":
        form = reduction.form_of(fusion, in_order)
        if not isinstance(form, str):
            return FusionAnalysis(fusion, "reduce", why, hero, form)
        other = elementwise(fusion)
        return replace(other, reason=f"{form}; {other.reason}", hero=hero, asked="reduce")
    scan = scan_of(fusion.roots[0])
    if not row_major(fusion):
        why_not = f"{why}, but not everything is row-major"
    elif len(fusion.roots) != 1 or scan is None:
        why_not = "more is computed than a scan"
    elif target is not None and target.is_gpu and scan.phases[2]:
        why_not = "results after the last element"
    else:
        return FusionAnalysis(fusion, "scan", why, hero, scan)
    return FusionAnalysis(fusion, "loop", why_not, hero, asked="scan")


def _in_place(fusion: Fusion, target: Target | None, least: int) -> FusionAnalysis | None:
    found, why_not = updates(fusion)
    if why_not:
        return None
    hero = fusion.outputs[0].instruction
    return FusionAnalysis(fusion, "dus", "every output updates an input in place", hero, found)


def _turned(fusion: Fusion, target: Target | None, least: int) -> FusionAnalysis | None:
    hero = transpose.candidate(fusion)
    if hero is None:
        return None
    form = None if target is None else transpose.form_of(fusion, target)
    if isinstance(form, str):
        other = elementwise(fusion)
        return replace(other, reason=f"{form}; {other.reason}", hero=hero, asked="transpose")
    return FusionAnalysis(fusion, "transpose", f"'{hero.name}' changes which dimension lies innermost", hero, form)


def _by_elements(fusion: Fusion, target: Target | None, least: int) -> FusionAnalysis:
    return elementwise(fusion, strided=target is not None and not target.is_gpu)


def elementwise(fusion: Fusion, strided: bool = False) -> FusionAnalysis:
    """The kernel of a fusion whose elements are each computed by themselves; ``strided``: see `cuts_of`."""
    if are_slices(fusion):
        hero = fusion.outputs[0].instruction
        return FusionAnalysis(fusion, "slices", f"all {len(fusion.outputs)} outputs are slices", hero)
    cuts = cuts_of(fusion, strided)
    if cuts is not None and cuts.step > 1:
        why = f"'{cuts.hero.name}' is told apart by the rest of its index by {cuts.step}"
        return FusionAnalysis(fusion, "concatenate", why, cuts.hero, cuts)
    if cuts is not None and cuts.at_edges:
        why = f"'{cuts.hero.name}' is told apart at the edges of its padding"
        return FusionAnalysis(fusion, "concatenate", why, cuts.hero, cuts)
    if cuts is not None:
        why = f"'{cuts.hero.name}' joins {len(cuts.hero.operands)} operands"
        return FusionAnalysis(fusion, "concatenate", why, cuts.hero, cuts)
    return FusionAnalysis(fusion, "loop", "each output element is computed by itself")


#: the first of these to recognise a fusion decides. A sort and a scatter write their operands' buffers, and are alone;
#: row-wise kernels read what several reductions read once, so they come before those; parts of the outputs are loops'
#: business; an update in place must not be taken for a transpose that is computed before it
_KINDS: tuple[Callable[[Fusion, Target | None, int], FusionAnalysis | None], ...] = (
    _sort, _selected, _rowwise, _in_parts, _after_hero, _in_place, _turned, _by_elements,
)  # fmt: skip


def _is_on_cpu(target: Target | None, least: int) -> bool:
    """Whether a question is about a CPU's kernel."""
    return least == MIN_REDUCED_ON_CPU if target is None else not target.is_gpu


def _has_long_elements(i: Instruction) -> bool:
    return i.opcode == "reduce" and has_long_elements(i)


def _least_reduced(i: Instruction) -> int:
    """More elements that `i` must combine if it is a reduce whose partial results are expensive to join: of several
    arrays, or of columns an extremum of floats. Along rows that is one of integers. Along columns there are no partial
    results, but few elements are written out."""
    if i.opcode != "reduce" or not i.dimensions:
        return 0
    is_extremum = i.to_apply.root.opcode in having(Trait.EXTREMUM) and not i.shape.element_type.is_integer
    dims = i.operands[0].shape.dims
    along_rows = len(dims) - 1 in i.dimensions
    if len(i.operands) == 2 and not is_extremum:
        shortest = MIN_FEW_COLUMNS if dims[-1] <= MIN_COLUMNS else MIN_MORE_COLUMNS
        return 0 if along_rows else shortest
    if is_extremum and along_rows:
        return 0
    return MIN_COLUMN if dims[-1] >= MIN_COLUMNS and not along_rows else MIN_REDUCED


def _heroes(root: Instruction, least: int, in_order: bool) -> Iterator[tuple[Instruction, str]]:
    """The scatters, scans and reduces of at least so many elements at `root`, or below elementwise ops of equal size,
    and why they are; ``in_order``: see `form_of` of reductions."""
    seen: set[Instruction] = set()
    stack = [root]
    while stack:
        i = stack.pop()
        if i in seen:
            continue
        seen.add(i)
        scan = scan_of(i)
        if i.opcode == "scatter":
            yield i, f"'{i.name}' is a scatter"
        elif scan is not None:
            yield i, f"'{i.name}' is a scan along dimension {scan.dimension}"
        elif i.opcode == "reduce":
            combined = i.operands[0].shape.num_elements // max(1, _result_elements(i))
            if combined >= least and (in_any_order(i) or in_order and along_columns(i)):
                yield i, f"'{i.name}' reduces {combined} elements to one"
        elif i.opcode in _EPILOGUE or i.opcode == "map" or (i.op.is_elementwise and moves_elements(i)):
            stack.extend(reversed(i.operands))


def _result_elements(i: Instruction) -> int:
    parts = i.shape.tuple_shapes
    return (parts[0] if parts is not None else i.shape).num_elements
