"""The shardings of all values of a program over the atoms of its mesh."""

from __future__ import annotations

from functools import lru_cache
from typing import NoReturn

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.hlo.sharding import Kind, Mesh, ShardGroup, Sharding, parse
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.hlo.sharding.tiles import reject

_IMPORT_FIRST = "run the pass sharding-importer first"
_free = lru_cache(TensorSharding.free)


class ProgramShardings:
    """The sharding of each leaf of each value, by instruction and ShapeIndex.

    The text form is the `sharding` extra of instructions: `read` takes it in, `write` puts it back. In between, `of`
    and `set` cost a table look-up. A value without an entry is free: all its dimensions are open.

    Attributes:
        mesh: the mesh of the whole program.
        groups: for each instruction with one, the group of values that are sharded alike.
    """

    def __init__(self, mesh: AtomicMesh) -> None:
        self.mesh = mesh
        self.groups: dict[Instruction, ShardGroup] = {}
        self._found: dict[Instruction, dict[ShapeIndex, TensorSharding]] = {}
        self._written: dict[TensorSharding, str] = {}

    def __repr__(self) -> str:
        return f"<shardings of {len(self._found)} instructions over {self.mesh.mesh}>"

    # -- questions and changes ---------------------------------------------------------------------------------------
    def of(self, i: Instruction, index: ShapeIndex = ()) -> TensorSharding:
        """The sharding of a leaf of a value; free where none is known. Raises IndexError when there is no such leaf."""
        leaves = self._found.get(i)
        found = None if leaves is None else leaves.get(index)
        return _free(i.shape.at(index).rank) if found is None else found

    def set(self, i: Instruction, index: ShapeIndex, sharding: TensorSharding) -> None:
        """Give a leaf of a value another sharding."""
        leaves = self._found.get(i)
        if leaves is None:
            self._found[i] = {index: sharding}
        else:
            leaves[index] = sharding

    def has(self, i: Instruction) -> bool:
        """Whether a leaf of the value has an entry."""
        return i in self._found

    def copy(self) -> ProgramShardings:
        """The same shardings, to be changed on their own."""
        made = ProgramShardings(self.mesh)
        made.groups = dict(self.groups)
        made._found = {i: dict(leaves) for i, leaves in self._found.items()}
        return made

    # -- text --------------------------------------------------------------------------------------------------------
    @staticmethod
    def read(module: Module) -> ProgramShardings:
        """The shardings that a module's text gives.

        Values on one device by number (`maximal`) have no entry. Raises HLO027 for two different meshes and for tiles
        without a mesh, which the pass `sharding-importer` turns into axes.
        """
        found = ProgramShardings(AtomicMesh.of(mesh_of(module)))
        known: dict[tuple[str, Shape], tuple[ShardGroup | None, list[tuple[ShapeIndex, TensorSharding]]]] = {}
        for c in module.computations:
            for i in c.instructions:
                text = i.extras.get("sharding")
                if text is None:
                    continue
                entry = known.get((text, i.shape))
                if entry is None:
                    entry = known[text, i.shape] = found._leaves(i, parse(text))
                group, leaves = entry
                if leaves:
                    found._found[i] = dict(leaves)
                if group is not None:
                    found.groups[i] = group
        return found

    def write(self, module: Module) -> None:
        """Put the shardings into the text of a module. Values without an entry keep theirs."""
        for c in module.computations:
            for i in c.instructions:
                leaves = self._found.get(i)
                if leaves is not None:
                    i.extras["sharding"] = self._text(i, leaves)

    def _leaves(
        self, i: Instruction, sharding: Sharding
    ) -> tuple[ShardGroup | None, list[tuple[ShapeIndex, TensorSharding]]]:
        try:
            if any(s.named is None for s in sharding.elements or (sharding,)) or len(sharding.elements) > 1:
                sharding.check(i.shape)  # axes of the mesh are checked as they are read
            found: list[tuple[ShapeIndex, TensorSharding]] = []
            elements = sharding.elements or (sharding,) * sum(1 for _ in i.shape.leaves())
            for (index, leaf), element in zip(i.shape.leaves(), elements, strict=True):
                tensor = self._tensor(element, leaf.rank)
                if tensor is not None:
                    found.append((index, tensor))
        except HeronError as error:
            raise error.located(str(i)[:200]) from None
        return sharding.group, found

    def _tensor(self, sharding: Sharding, rank: int) -> TensorSharding | None:
        """The sharding in atoms; None for a value on one device by number."""
        if sharding.kind is Kind.MAXIMAL:
            return None
        if sharding.named is not None:
            return self.mesh.read(sharding, rank)
        if sharding.kind is Kind.REPLICATED:
            return TensorSharding.whole(rank)
        if sharding.kind is Kind.UNKNOWN:
            return _free(rank)
        if sharding.kind is Kind.MANUAL:
            return TensorSharding.whole(rank, manual=range(len(self.mesh.sizes)))
        reject(f"{sharding} is not by the axes of a mesh", hint=_IMPORT_FIRST)

    def _text(self, i: Instruction, leaves: dict[ShapeIndex, TensorSharding]) -> str:
        group = self.groups.get(i)
        if not i.shape.is_tuple:
            text = self._leaf_text(leaves[()])
            return text if group is None else f"{text[:-1]} {group}}}"
        elements = (leaves.get(index) or _free(leaf.rank) for index, leaf in i.shape.leaves())
        parts = [(f"/*index={n}*/" if n and n % 5 == 0 else "") + self._leaf_text(e) for n, e in enumerate(elements)]
        return "{" + ", ".join(parts) + "}"

    def _leaf_text(self, sharding: TensorSharding) -> str:
        found = self._written.get(sharding)
        if found is None:
            found = self._written[sharding] = str(self.mesh.write(sharding))
        return found


def mesh_of(module: Module) -> Mesh:
    """The mesh that a module's shardings name; one axis of all devices where none names any. Raises HLO027."""
    seen: set[str] = set()
    found: tuple[Mesh, Instruction] | None = None
    for i in module.instructions():
        text = i.extras.get("sharding")
        if text is None or text in seen:
            continue
        seen.add(text)
        sharding = parse(text)
        for s in sharding.elements or (sharding,):
            if s.named is None or s.named.mesh.is_maximal:
                continue
            if found is None:
                found = s.named.mesh, i
            elif s.named.mesh != found[0]:
                refuse(
                    i,
                    "a program has one mesh",
                    f"here it is {s.named.mesh}; at '{found[1].name}' it is {found[0]}",
                    _IMPORT_FIRST,
                )
    if found is not None:
        mesh, first = found
        if mesh.size != module.num_partitions:
            refuse(
                first,
                f"a mesh of {mesh.size} devices in a program for {module.num_partitions}",
                hint="num_partitions in the module's header is the size of the mesh",
            )
        return mesh
    return Mesh((("devices", module.num_partitions),) if module.num_partitions > 1 else ())


def refuse(i: Instruction, what: str, why: str | None = None, hint: str | None = None) -> NoReturn:
    """Raise HLO027 with the instruction that has the sharding."""
    try:
        reject(what, why, hint)
    except HeronError as error:
        raise error.located(str(i)[:200]) from None
