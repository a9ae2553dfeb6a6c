"""Pass sharding-importer."""

from __future__ import annotations

from collections.abc import Iterable

from heron.analysis.sharding.chosen import may_choose
from heron.analysis.sharding.program import ProgramShardings, refuse
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import ShapeIndex
from heron.hlo.sharding import NamedSharding, Sharding, parse
from heron.hlo.sharding.atoms import TensorSharding
from heron.hlo.sharding.refinement import Refinement, named_of, refine
from heron.hlo.sharding.tiles import reject
from heron.passes.control_flow.call_inliner import CallInliner
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.sharding.model import shardy_form, tile_form
from heron.passes.sharding.model.annotations import ENTER, LEAVE, Annotations, target
from heron.passes.sharding.model.manual import ManualAxes, mark_manual, with_constraints
from heron.passes.sharding.model.moved_ends import move_ends
from heron.records import dataclass

#: the cure where a mesh has another number of devices than the program
_SIZE = "num_partitions in the module's header, or --devices, is the size of the mesh"


@register
@dataclass(frozen=True)
class ShardingImporter(Pass):
    """Brings all shardings of a program into one form: axes of one mesh, in the extra `sharding` of instructions.

    It reads Shardy's attributes and calls (`xla.sdy.…`) and GSPMD's tiles, from which it makes a common mesh; axes of
    size 1 go, and so do meshes of the same devices. Constraints are custom calls `Sharding`; `{?}` stands for open.
    Each value that enters a manual computation has a call SPMDFullToShardShape, and SPMDShardToFullShape where it
    leaves. All values in between name the manual axes. Bodies of calls are inlined.

    A constraint that the axes of the mesh cannot express is left out, with a decision that says so. Tiles of such
    parameters and results are permuted among the devices; borders raise HLO032.

    HloModule m, num_partitions=8
    a = f32[8,4] parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}
    b = f32[8,4] custom-call(a), custom_call_target="Sharding", sharding={devices=[2,4]<=[8]}
    ROOT r = f32[8,4] negate(b)
    ->
    HloModule m, num_partitions=8
    a = f32[8,4] parameter(0), sharding={mesh['axis_0'=2,'axis_1'=4], [{'axis_0'}, {}]}
    b = f32[8,4] custom-call(a), custom_call_target="Sharding",
      sharding={mesh['axis_0'=2,'axis_1'=4], [{'axis_0'}, {'axis_1'}]}
    ROOT r = f32[8,4] negate(b)
    """

    name = "sharding-importer"

    def run(self, module: Module, ctx: PassContext) -> bool:
        devices = max(module.num_partitions, shardy_form.device_count(module), tile_form.device_count(module))
        if devices == 1:
            return False
        found = Annotations()
        before = {i: i.extras.get("sharding") for i in module.instructions()}
        _clear_applied(module, found)
        by_shardy = shardy_form.read_shardy(module, found)
        tile_form.read_tiles(module, found, devices, by_shardy)
        _give_ends(module, found, devices)
        if found.is_empty:
            return found.changed
        if module.num_partitions not in (1, devices):
            reject(f"a mesh of {devices} devices in a program for {module.num_partitions}", hint=_SIZE)
        _need_devices(module, found, devices)
        if module.num_partitions != devices:
            module.set_counts(module.replica_count, devices)
            found.changed = True
        with_constraints(module, found)
        borders, ends = _needed(module, found)
        refinement = refine(borders, _all(found), devices, ends)
        move_ends(module, found, refinement)
        for named in refinement.refused:
            ctx.decide(False, "no axes of the program's mesh express this sharding", subject=str(named))
        results = {index: s for index, n in found.results.items() if (s := refinement.convert(n)) is not None}
        _write(module, found, refinement)
        found.changed |= CallInliner().run(module, ctx)
        _set_results(module, results, refinement, found)
        return found.changed or any(before.get(i) != i.extras.get("sharding") for i in module.instructions())


def _need_devices(module: Module, found: Annotations, devices: int) -> None:
    """Raises HLO027, at the value, for a mesh of another number of devices than the program has."""
    given = [(i, named) for i, leaves in found.leaves.items() for named in leaves]
    given += [(module.entry.root, named) for named in found.results.values()]
    for i, named in given:
        if named is not None and named.mesh.size not in (1, devices):
            what = f"a mesh of {named.mesh.size} devices in a program for {devices}"
            refuse(i, what, f"the mesh is {named.mesh}", _SIZE)


def _clear_applied(module: Module, found: Annotations) -> None:
    """Computations of elements, such as reducers, have no shardings; calls that state some give their operand."""
    sequential = set(module.non_fusion_computations())
    for c in module.computations:
        if c in sequential:
            continue
        for i in c.instructions:
            found.changed |= i.extras.pop("sharding", None) is not None
            if target(i) == "Sharding" and len(i.operands) == 1:
                found.replace(i, i.operands[0])


def _give_ends(module: Module, found: Annotations, devices: int) -> None:
    """Parameters and results that have no sharding and that the partitioner may not choose are whole.

    A sharding of the root is that of the result.
    """
    entry = module.entry
    choose_parameters, choose_results = may_choose(module)
    leaves = [(p, n, leaf.rank) for p in entry.parameters for n, (_, leaf) in enumerate(p.shape.leaves())]
    for (p, n, rank), chosen in zip(leaves, choose_parameters, strict=True):
        given = found.leaves.get(p)
        if not chosen and (given is None or given[n] is None):
            given = found.leaves.setdefault(p, [None] * sum(1 for _ in p.shape.leaves()))
            given[n] = _whole(rank, devices)
    own = found.leaves.get(entry.root) if _is_of_result(entry.root) else None
    if own is not None and entry.root.opcode == "tuple" and not any(n.manual for n in own if n is not None):
        del found.leaves[entry.root]
    parts = list(entry.root.shape.leaves())
    for n, ((index, leaf), chosen) in enumerate(zip(parts, choose_results, strict=True)):
        named = None if own is None else own[n]
        if named is not None:
            found.results.setdefault(index, named)
        if not chosen:
            found.results.setdefault(index, _whole(leaf.rank, devices))


def _is_of_result(root: Instruction) -> bool:
    """Whether the sharding of the root is the result's: by axes, that of a parameter or constraint is its own."""
    text = root.extras.get("sharding")
    return root.opcode not in ("parameter", "custom-call") or text is not None and parse(text).named is None


def _whole(rank: int, devices: int) -> NamedSharding:
    return named_of(Sharding.replicated(), rank, devices)


def _needed(module: Module, found: Annotations) -> tuple[list[NamedSharding], list[NamedSharding]]:
    """The shardings that manual computations rely on, and those that callers see."""
    borders = [j for i in found.leaves if target(i) in (ENTER, LEAVE) for j in (i, *i.operands)]

    def given(values: Iterable[Instruction]) -> list[NamedSharding]:
        return [s for i in values for s in found.leaves.get(i, ()) if s is not None]

    return [*given(borders), *found.manual.values()], [*given(module.entry.parameters), *found.results.values()]


def _all(found: Annotations) -> list[NamedSharding]:
    return [s for leaves in found.leaves.values() for s in leaves if s is not None]


def _write(module: Module, found: Annotations, refinement: Refinement) -> None:
    """Put all shardings into the instructions."""
    manual = ManualAxes(module, found, refinement).of
    shardings = ProgramShardings(refinement.mesh)
    shardings.groups.update(found.groups)
    for i, leaves in found.leaves.items():
        i.extras.pop("sharding", None)
        for (index, leaf), named in zip(i.shape.leaves(), leaves, strict=True):
            s = None if named is None else refinement.convert(named)
            shardings.set(i, index, s or TensorSharding.free(leaf.rank))
    mark_manual(shardings, manual)
    shardings.write(module)


def _set_results(
    module: Module, results: dict[ShapeIndex, TensorSharding], refinement: Refinement, found: Annotations
) -> None:
    """Put the shardings of the results on a root that is there for nothing else."""
    if not results or any(s.manual for s in results.values()):
        return  # a program that is manual as a whole has its shardings where they stood
    shardings = ProgramShardings(refinement.mesh)
    root = _root_for(module, results, refinement, found)
    for index, leaf in root.shape.leaves():
        shardings.set(root, index, results.get(index) or TensorSharding.free(leaf.rank))
    root.extras.pop("sharding", None)
    shardings.write(module)


def _root_for(
    module: Module, results: dict[ShapeIndex, TensorSharding], refinement: Refinement, found: Annotations
) -> Instruction:
    """The root if it is a tuple or an op that states that sharding itself, else a tuple or a copy of it.

    The sharding of a result is no constraint on the op that computes it, and that of a parameter or a constraint is not
    the result's.
    """
    root = module.entry.root
    if root.opcode == "tuple":
        return root
    states = root.opcode not in ("parameter", "custom-call")
    if states and () in results and root.extras.get("sharding") == str(refinement.mesh.write(results[()])):
        return root
    found.changed = True
    c = module.entry
    if root.shape.is_tuple:
        shapes = root.shape.tuple_shapes or ()
        parts = [c.add("get-tuple-element", (root,), s, like=root, index=n) for n, s in enumerate(shapes)]
        c.root = c.add("tuple", parts, root.shape, like=root)
        return c.root
    c.root = c.add("copy", (root,), root.shape, like=root)
    return c.root
