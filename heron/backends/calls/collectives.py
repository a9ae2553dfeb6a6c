"""Collectives, and the numbers of devices: native code on the CPU, NCCL's calls on GPUs, the meaning of the op where
those are simulated.

A collective that was begun early (``-start``) is done where it begins; its ``-done`` is only a name for the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from heron.analysis.devices.groups import device_groups, device_pairs
from heron.backends.calls import transfers
from heron.backends.calls.host import Place, arrays_of, call, call_at, memory_order
from heron.backends.devices import Devices
from heron.backends.reducers import reducer
from heron.backends.refusals import no_code
from heron.codegen.native.collectives import fits_slot
from heron.errors import HeronError
from heron.hlo.facts import begun_by, having
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.hlo.meaning.batched import simple_opcode
from heron.runtime.collectives.evaluated import OnDevices
from heron.runtime.collectives.exchange import Piece, Reduction, Way, exchanged, gathered, in_rows, scattered, whole
from heron.runtime.thunks import CollectiveThunk, DeviceNumberThunk, Thunk
from heron.targets.libnccl import combination

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

Groups = tuple[tuple[int, ...], ...]

#: ops in which several devices take part, but for those that only wait for the end of another
COLLECTIVES = having(Trait.COLLECTIVE)
NUMBERS = having(Trait.DEVICE_ID)
TRANSFERS = having(Trait.CHANNEL)


def collective(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """The exchange of arrays among devices. Raises GEN012 for a collective that the target has no code for."""
    if Trait.FREE in i.op.traits:
        return []
    if Devices.of(lowering.module).count == 1:
        raise _alone(i)
    if lowering.target.sim:
        return on_host(lowering, i)
    rule = _RULES.get(i.opcode.removesuffix("-start"))
    if rule is None or i.attrs.get("slice_sizes") is not None:
        raise _refused(i, lowering.target.name)
    return [rule(_Collective(lowering, i))]


def refuse_absent(module: Module) -> None:
    """Raise GEN012 for a collective that names other devices in a program for one, ahead of passes that would leave it.

    Branches do not count: passes may take them away.
    """
    if Devices.of(module).count > 1:
        return
    work, seen = [module.entry], {module.entry}
    while work:
        for i in work.pop().instructions:
            if i.opcode in COLLECTIVES and _names_others(i, module):
                raise _alone(i)
            new = [c for c in i.called if c not in seen] if i.opcode != "conditional" else []
            seen.update(new)
            work += new


def _names_others(i: Instruction, module: Module) -> bool:
    pairs = i.attrs.get("source_target_pairs") or ()
    if any(device for pair in pairs for device in pair):
        return True
    return "replica_groups" in i.op.attributes and any(len(group) > 1 for group in device_groups(i, module))


def transfer(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """A send or a receive between devices. Raises GEN002 on CPUs, and for transfers to the host."""
    if not lowering.target.is_gpu or i.is_host_transfer or Devices.of(lowering.module).count == 1:
        raise no_code(i, lowering.target.name)
    return on_host(lowering, i) if lowering.target.sim else transfers.exchanged(lowering, i)


def ended(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """The end of what an async-start began: simulated devices wait for what they began to receive."""
    if not lowering.target.sim:
        return []
    return [_received(lowering, k) for k in begun_by(i).instructions if k.opcode == "recv"]


def _received(lowering: Lowering, recv: Instruction) -> Thunk:
    """A step of the host that ends `recv`: the data comes to the place that `recv` has for it."""
    alone = Computation("end")
    end = alone.add("recv-done", [alone.add_parameter(0, recv.shape.bare)], **recv.attrs)
    arrays = arrays_of(recv)
    data = [place for place in arrays if place[1][0] == 0]
    return call_at(lowering, arrays, data, OnDevices.of(end, lowering.module), "collectives", recv.name)


def device_number(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """The number of the device that runs the program; zero on the only one."""
    if Devices.of(lowering.module).count == 1:
        return lowering.alone(i)
    if lowering.target.sim:
        return on_host(lowering, i)
    return [DeviceNumberThunk(lowering.slice(i), i.opcode == "partition-id", i.name)]


def on_host(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """A step of the host, which exchanges the values of simulated devices by the op's meaning."""
    return call(lowering, i, OnDevices.of(i, lowering.module), "collectives")


def _alone(i: Instruction) -> HeronError:
    return HeronError(
        "GEN012",
        f"{i.opcode.removesuffix('-start')} needs other devices, and the program is for one",
        where=str(i),
        why="replica_count=1, num_partitions=1, and it exchanges more than one device has",
        hint="state replica_count or num_partitions in the module's header",
    )


def _refused(i: Instruction, target: str) -> HeronError:
    return HeronError(
        "GEN012",
        f"{i.opcode.removesuffix('-start')} has no code for {target}",
        where=str(i),
        why="it places slices of arrays in memory" if i.attrs.get("slice_sizes") is not None else None,
        hint="`heron eval --devices N` runs it",
    )


class _Collective:
    """A collective with its arrays: operands and results in pairs, and who exchanges them."""

    def __init__(self, lowering: Lowering, i: Instruction) -> None:
        self.lowering, self.i = lowering, i
        self.devices = Devices.of(lowering.module)
        self.groups: Groups = device_groups(i, lowering.module)
        self._need_devices()
        self.operands: list[Place] = [(o, (), o.shape) for o in i.operands]
        self.results: list[Place] = _results(i)

    def _need_devices(self) -> None:
        """Raise GEN012 for groups with a device that does not exist, or that is in two of them."""
        members = [device for group in self.groups for device in group]
        strange = next((d for d in members if d >= self.devices.count), None)
        if strange is not None or len(set(members)) < len(members):
            what = f"the groups of '{self.i.name}' " + (
                f"name device {strange}" if strange is not None else "name a device twice"
            )
            raise HeronError("GEN012", what, where=str(self.i), why=f"the program is for {self.devices}")

    @property
    def size(self) -> int:
        """The members of a group. Raises GEN012 where groups differ in size."""
        sizes = {len(g) for g in self.groups}
        if len(sizes) != 1:
            why = f"groups have {' and '.join(map(str, sorted(sizes)))} devices"
            raise HeronError("GEN012", f"the groups of '{self.i.name}' differ in size", where=str(self.i), why=why)
        return sizes.pop()

    def pieces(self, cut: Callable[[Sequence[int], int, int, int], Piece]) -> tuple[Piece, ...]:
        """The cut of each operand along the op's dimension, or its place in the result."""
        dim, found = self.i.dimensions[0], list[Piece]()
        for (_, _, given), (_, _, made) in zip(self.operands, self.results, strict=True):
            self.need_alike(given, made)
            order = memory_order(given)
            dims = [given.dims[d] for d in order]
            piece = cut(dims, given.element_type.byte_size, order.index(dim), self.size)
            if piece.result_bytes(self.size) != made.byte_size or piece.part_bytes(self.size) != piece.operand_bytes:
                what = f"groups of {self.size} devices do not fit the shapes of '{self.i.name}'"
                raise HeronError("GEN012", what, where=str(self.i), why=f"{given.bare} to {made.bare}")
            found.append(piece)
        return tuple(found)

    def wholes(self) -> tuple[Piece, ...]:
        """Each operand as it is."""
        for (_, _, given), (_, _, made) in zip(self.operands, self.results, strict=True):
            self.need_alike(given, made)
        return tuple(whole(s.dims, s.element_type.byte_size) for _, _, s in self.operands)

    def need_alike(self, given: Shape, made: Shape) -> None:
        """Raise GEN012 for an operand and a result that lie differently in memory."""
        if memory_order(given) != memory_order(made):
            what = f"operand and result of '{self.i.name}' lie differently in memory"
            raise HeronError("GEN012", what, where=str(self.i), why=f"{given} and {made}")

    def combined(self, way: Way, pieces: tuple[Piece, ...]) -> CollectiveThunk:
        """The thunk of a collective that combines arrays: by NCCL on a GPU, by kernels elsewhere.

        Raises GEN012 for what NCCL does not combine.
        """
        if not self.lowering.target.is_gpu:
            return self.thunk(way, pieces, reducers=self.reducers())
        opcode, types = simple_opcode(self.i.to_apply), tuple(s.element_type for _, _, s in self.operands)
        exact = not self.lowering.options.allows("finite-only")
        odd = next((t for t in types if combination(opcode, t, exact) is None), None)
        if opcode is None or odd is not None:
            raise HeronError(
                "GEN012",
                f"NCCL has no such {self.i.opcode.removesuffix('-start')}",
                where=str(self.i),
                why=f"it does not combine {odd or types[0]} by {opcode or 'a computation of several ops'}",
                hint="devices do it themselves in groups of one size (collective-reduction-expander); "
                "with math=fast NCCL computes extrema of floats",
            )
        return self.thunk(Way.ALL_REDUCE, pieces, reduction=Reduction(opcode, types))

    def reducers(self) -> tuple[str, ...]:
        """The kernels that combine arrays, of each pair, for groups of each size."""
        types, sizes = [s.element_type for _, _, s in self.operands], sorted({len(g) for g in self.groups})
        return tuple(reducer(self.lowering, self.i, t, size) for size in sizes for t in types)

    def thunk(
        self,
        way: Way,
        pieces: tuple[Piece, ...],
        senders: Sequence[int] = (),
        reducers: tuple[str, ...] = (),
        reduction: Reduction | None = None,
    ) -> CollectiveThunk:
        operands, results = (
            tuple(self.lowering.slice(o, index) for o, index, _ in side) for side in (self.operands, self.results)
        )
        opcode = self.i.opcode.removesuffix("-start")
        return CollectiveThunk(
            opcode, way, self.groups, tuple(senders), operands, results, pieces, reducers, self.i.name, reduction
        )


def _results(i: Instruction) -> list[Place]:
    """The arrays that a collective computes."""
    at: ShapeIndex = (1,) if i.op.holds_operands else ()
    shape = i.shape.at(at)
    if shape.tuple_shapes is None:
        return [(i, at, shape)]
    return [(i, (*at, n), s) for n, s in enumerate(shape.tuple_shapes)]


# -- rules -------------------------------------------------------------------------------------------------------------
def _all_gather(c: _Collective) -> CollectiveThunk:
    return c.thunk(Way.EACH, c.pieces(gathered))


def _all_to_all(c: _Collective) -> CollectiveThunk:
    if c.i.attrs.get("dimensions") is not None:
        return c.thunk(Way.EACH, c.pieces(exchanged))
    return c.thunk(Way.PAIRED, c.wholes())


def _all_reduce(c: _Collective) -> CollectiveThunk:
    wholes = c.wholes()
    way = Way.REDUCE if fits_slot([p.operand_bytes for p in wholes]) else Way.ALL_REDUCE
    return c.combined(way, wholes)


def _reduce_scatter(c: _Collective) -> CollectiveThunk:
    return c.combined(Way.REDUCE, c.pieces(scattered))


def _broadcast(c: _Collective) -> CollectiveThunk:
    return c.thunk(Way.FROM, c.wholes(), [0] * c.devices.count)


def _permute(c: _Collective) -> CollectiveThunk:
    senders = [-1] * c.devices.count
    rank = {number: n for group in c.groups for n, number in enumerate(group)}
    for source, target in device_pairs(c.i, c.lowering.module):
        if max(source, target) >= c.devices.count:
            what = f"'{c.i.name}' names device {max(source, target)}"
            raise HeronError("GEN012", what, where=str(c.i), why=f"there are {c.devices}")
        senders[target] = rank[source]
    return c.thunk(Way.FROM, c.wholes(), senders)


def _ragged(c: _Collective) -> CollectiveThunk:
    dims = [s.dims for _, _, s in c.operands]
    if any(memory_order(s) != tuple(range(s.rank)) for _, _, s in (*c.operands, *c.results)) or len(dims[2]) != 1:
        raise _refused(c.i, c.lowering.target.name)
    if dims[2][0] % c.size or not dims[2][0] or any(s.element_type.bits not in (32, 64) for _, _, s in c.operands[2:]):
        what = f"{dims[2][0]} pieces among {c.size} devices"
        raise HeronError("GEN012", what, where=str(c.i), why="each device needs as many, with offsets of 32 or 64 bits")
    items = [s.element_type.byte_size for _, _, s in c.operands]
    pieces = [in_rows(d, n) for d, n in zip(dims[:2], items[:2], strict=True)]
    pieces += [whole(d, n) for d, n in zip(dims[2:], items[2:], strict=True)]
    return c.thunk(Way.RAGGED, tuple(pieces))


_RULES: dict[str, Callable[[_Collective], CollectiveThunk]] = {
    "all-gather": _all_gather,
    "all-reduce": _all_reduce,
    "all-to-all": _all_to_all,
    "collective-broadcast": _broadcast,
    "collective-permute": _permute,
    "ragged-all-to-all": _ragged,
    "reduce-scatter": _reduce_scatter,
}
