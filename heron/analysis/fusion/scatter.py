"""The parts of a scatter, and the targets of its updates."""

from __future__ import annotations

from heron.analysis.fusion import scatter_order as facts
from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.in_place import updated_parameter
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.errors import HeronError
from heron.hlo.facts import is_view, keeps_order, updated_operands
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Scatter:
    """A scatter taken apart. ``batch``: update dimensions that count updates; ``window``: those inside one."""

    i: Instruction
    operands: tuple[Instruction, ...]
    indices: Instruction
    updates: tuple[Instruction, ...]
    batch: tuple[int, ...]
    window: tuple[int, ...]

    @staticmethod
    def of(i: Instruction) -> Scatter:
        n = len(i.operands) // 2
        updates = tuple(i.operands[n + 1 :])
        window = tuple(i.update_window_dims)
        batch = tuple(d for d in range(updates[0].shape.rank) if d not in window)
        operands = tuple(_without_views(o) for o in i.operands[:n])
        return Scatter(i, operands, i.operands[n], updates, batch, window)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The dimensions of the updates."""
        return self.updates[0].shape.dims

    @property
    def target_dims(self) -> tuple[int, ...]:
        """The dimensions of the operands."""
        return self.i.operands[0].shape.dims

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """The dimensions of the updates that count them."""
        return tuple(self.sizes[d] for d in self.batch)

    @property
    def takes_update(self) -> bool:
        """Whether the combiner gives the updates as they are."""
        return facts.takes_update(self.i)

    def index(self, batch: Index, window: Index) -> Index:
        """The index into the updates."""
        index: list[Expr] = [Const(0)] * len(self.sizes)
        for d, e in (*zip(self.batch, batch, strict=True), *zip(self.window, window, strict=True)):
            index[d] = e
        return tuple(index)


def _without_views(i: Instruction) -> Instruction:
    """The array that a view shows. A copy is one of its own: its original stays as it is."""
    while is_view(i) and i.operands[0].opcode == "parameter":
        i = i.operands[0]
    return i


def only_scatter(fusion: Fusion) -> Instruction:
    """The scatter that all outputs are. Raises GEN130 when there is anything else, GEN135 where it overwrites what the
    kernel reads."""
    found: list[Instruction] = []
    for output in fusion.outputs:
        i = output.instruction
        while keeps_order(i) and i.shape.element_type is i.operands[0].shape.element_type:
            i = i.operands[0]
        if i.opcode != "scatter" or (found and i is not found[0]):
            raise HeronError(
                "GEN130",
                "a kernel with a scatter has no other outputs",
                where=str(output.instruction),
                why="the scatter writes into its operand's buffer",
            )
        found.append(i)
    _check_overwritten(found[0])
    return found[0]


def _is_read(i: Instruction, scatter: Instruction) -> bool:
    """Whether anything takes elements of `i` but the scatter, as what it updates: its results begin as copies of it."""
    read = scatter.operands[len(updated_operands(scatter)) :]
    return any(i in read if u is scatter else not is_view(u) or _is_read(u, scatter) for u in i.users)


def _check_overwritten(scatter: Instruction) -> None:
    for n, operand in enumerate(updated_operands(scatter)):
        source = _without_views(operand)
        if source.opcode == "parameter" and updated_parameter(scatter, n) is None and _is_read(source, scatter):
            raise HeronError(
                "GEN135",
                "a kernel cannot read the array that its scatter overwrites",
                where=str(scatter),
                why=f"'{source.name}' has {len(source.users)} readers, and may have new elements when they read it",
                hint="compute the updates in a kernel before, or scatter into a copy",
            )
