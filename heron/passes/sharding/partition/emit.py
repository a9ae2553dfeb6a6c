"""A part in another sharding: the steps of a plan as collectives and slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import PRED, S32
from heron.hlo.sharding.atoms import AtomicMesh, Axes, TensorSharding
from heron.passes.sharding.partition import collectives
from heron.passes.sharding.partition.frame import View
from heron.passes.sharding.partition.halo import exchange
from heron.passes.sharding.partition.moves import Span, joint, own_pieces, retiled, tiles
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.plan import Plan, Step, plan
from heron.passes.sharding.partition.windowed import nothing_added

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


def reshard(p: Partitioner, part: Part, sharding: TensorSharding) -> Part:
    """The same array in another sharding; the part itself where it has it already.

    A value that was brought into several shardings is taken from the one that costs least.
    """
    if not part.shape.is_array or (
        part.sharding.dims == sharding.dims and part.sharding.unreduced == sharding.unreduced
    ):
        return part
    wanted = TensorSharding.closed(sharding.dims, sharding.unreduced, part.sharding.manual)
    origin = p.frame.origins.get(_view(part), part)
    versions = p.frame.versions.setdefault(_view(origin), {origin.sharding: origin})
    found = versions.get(wanted)
    if found is None:
        options = [(planned(p, version, wanted), version) for version in versions.values()]
        best, version = min(options, key=lambda option: (option[0].cost, len(option[0].steps)))
        found = versions[wanted] = _resharded(p, version, wanted, best)
        p.frame.origins[_view(found)] = origin
    return found


def _view(part: Part) -> View:
    """Equal for parts that are the same array. Inside a manual computation a share is an array of its own."""
    return part.value, part.shape, part.sharding.manual


def planned(p: Partitioner, part: Part, wanted: TensorSharding) -> Plan:
    """The plan from a part's sharding to another one."""
    return _plan(p.mesh, part.shape, part.sharding, wanted)


def cost(mesh: AtomicMesh, shape: Shape, old: TensorSharding, new: TensorSharding) -> float:
    """The bytes that each device sends to bring an array from one sharding to another."""
    return _plan(mesh, shape, old, new).bytes


def _plan(mesh: AtomicMesh, shape: Shape, old: TensorSharding, new: TensorSharding) -> Plan:
    item = shape.element_type.byte_size
    return plan(mesh.sizes, shape.dims, item, old.dims, old.unreduced, new.dims, new.unreduced, mesh.latency)


def _resharded(p: Partitioner, part: Part, wanted: TensorSharding, steps: Plan) -> Part:
    if steps.bytes:
        _tell(p, part, wanted, steps)
    value, dims = part.value, part.sharding.dims
    pending: list[Step] = []
    for step in steps.steps:
        if step.kind == "slice":
            pending.append(step)
        else:
            value = _cut(p, part, value, dims, pending, wanted)
            dims = pending[-1].dims if pending else dims
            pending = []
            value = _STEPS[step.kind](p, part, value, dims, step, wanted)
            value = _trimmed(p, part, value, dims, step)
            dims = step.dims
    return Part(_cut(p, part, value, dims, pending, wanted), part.shape, wanted)


def _tell(p: Partitioner, part: Part, wanted: TensorSharding, steps: Plan) -> None:
    """Keep the reshard as a decision. It is a refusal of memory where a share on the way is larger than both ends."""
    have, goal = p.text(part.sharding), p.text(wanted)
    names = ", ".join(f"{s.kind}" + (f" of dimension {s.dim}" if s.dim >= 0 else "") for s in steps.steps)
    large = "" if steps.within else f"; a share on the way has {steps.peak} bytes, more than before and after"
    p.decide(
        steps.within,
        f"{part.shape.bare} from {have} to {goal}: {names}; each device sends {steps.bytes:.0f} bytes{large}",
        object=part.value.name,
        cost_after=steps.bytes,
    )


# -- steps -----------------------------------------------------------------------------------------------------------
def _covered(p: Partitioner, part: Part, d: int, wanted: TensorSharding) -> int:
    """The size that the tiles of a dimension cover in the end."""
    parts = p.mesh.size(wanted.dims[d])
    return -(-part.dims[d] // parts) * parts


def _ready(
    p: Partitioner, part: Part, value: Instruction, dims: tuple[Axes, ...], d: int, wanted: TensorSharding
) -> Instruction:
    """`value` with a whole dimension padded to what tiles will cover."""
    if dims[d]:
        return value
    return p.pad(value, d, 0, _covered(p, part, d, wanted) - value.shape.dims[d])


def _trimmed(p: Partitioner, part: Part, value: Instruction, dims: tuple[Axes, ...], step: Step) -> Instruction:
    """`value` without what lies beyond the end of a dimension that has become whole."""
    for d, (before, after) in enumerate(zip(dims, step.dims, strict=True)):
        if before and not after:
            value = p.slice(value, d, 0, part.dims[d])
    return value


def _cut(
    p: Partitioner, part: Part, value: Instruction, dims: tuple[Axes, ...], steps: list[Step], wanted: TensorSharding
) -> Instruction:
    """Consecutive slices as one."""
    if not steps:
        return value
    added: dict[int, Axes] = {}
    for step in steps:
        added[step.dim] = added.get(step.dim, ()) + step.axes
    starts: dict[int, Instruction] = {}
    for d in added:
        value = _ready(p, part, value, dims, d, wanted)
    sizes = list(value.shape.dims)
    for d, axes in added.items():
        sizes[d] //= p.mesh.size(axes)
        starts[d] = p.scaled(p.index(axes), sizes[d])
    return p.dynamic_slice(value, starts, sizes)


def _gather(
    p: Partitioner, part: Part, value: Instruction, dims: tuple[Axes, ...], step: Step, wanted: TensorSharding
) -> Instruction:
    """Shares joined; where most of them are beyond the array's end, a sum of what devices have."""
    d, size, count = step.dim, part.dims[step.dim], p.mesh.size(step.axes)
    tile, zero = value.shape.dims[d], nothing_added(part.shape.element_type)
    if step.dims[d] or 2 * size >= count * tile or zero is None or part.shape.element_type is PRED:
        return p.all_gather(value, d, step.axes)
    mine = own_pieces(tiles(size, count, tile), [Span(n, 0, size) for n in range(count)])
    return p.all_reduce(exchange(p, value, d, step.axes, mine, size, zero), step.axes, "add")


def _exchange(
    p: Partitioner, part: Part, value: Instruction, dims: tuple[Axes, ...], step: Step, wanted: TensorSharding
) -> Instruction:
    return p.all_to_all(_ready(p, part, value, dims, step.to, wanted), step.to, step.dim, step.axes)


def _permute(
    p: Partitioner, part: Part, value: Instruction, dims: tuple[Axes, ...], step: Step, wanted: TensorSharding
) -> Instruction:
    return collectives.send(p, value, p.devices.moves(dims, step.dims))


def _reduce(
    p: Partitioner, part: Part, value: Instruction, dims: tuple[Axes, ...], step: Step, wanted: TensorSharding
) -> Instruction:
    return p.all_reduce(value, step.axes, "add")


def _scatter(
    p: Partitioner, part: Part, value: Instruction, dims: tuple[Axes, ...], step: Step, wanted: TensorSharding
) -> Instruction:
    return p.reduce_scatter(_ready(p, part, value, dims, step.dim, wanted), step.dim, step.axes, "add")


def _retile(
    p: Partitioner, part: Part, value: Instruction, dims: tuple[Axes, ...], step: Step, wanted: TensorSharding
) -> Instruction:
    d, old = step.dim, dims[step.dim]
    goal = _covered(p, part, d, wanted) // p.mesh.size(step.axes)
    found = retiled(part.dims[d], value.shape.dims[d], old, step.axes, p.mesh.sizes, goal)
    return exchange(p, value, d, joint(old, step.axes), found, goal, None)


def _spread(
    p: Partitioner, part: Part, value: Instruction, dims: tuple[Axes, ...], step: Step, wanted: TensorSharding
) -> Instruction:
    """The share where it belongs in zeros; of what is there already, the first device has it and the others zeros."""
    sizes, t = value.shape.dims, value.shape.element_type
    if step.dim < 0:
        return _on_first(p, value, step.axes)
    d, tile = step.dim, sizes[step.dim]
    whole = p.full(0, t, (*sizes[:d], tile * p.mesh.size(step.axes), *sizes[d + 1 :]))
    at = p.scaled(p.index(step.axes), tile)
    starts = [at if n == d else p.constant(0, at.shape.element_type) for n in range(len(sizes))]
    return p.add("dynamic-update-slice", [whole, value, *starts], whole.shape)


_STEPS = {
    "all-gather": _gather,
    "all-to-all": _exchange,
    "collective-permute": _permute,
    "all-reduce": _reduce,
    "reduce-scatter": _scatter,
    "retile": _retile,
    "spread": _spread,
}


def _on_first(p: Partitioner, value: Instruction, axes: Axes) -> Instruction:
    """`value` on the first device along these atoms, zeros on the others: partial sums of it."""
    if not axes:
        return value
    dims = value.shape.dims
    first = p.compare("EQ", p.index(axes), p.constant(0, S32))
    nothing = p.full(0, value.shape.element_type, dims)
    return p.add("select", [p.full(first, first.shape.element_type, dims), value, nothing], value.shape)
