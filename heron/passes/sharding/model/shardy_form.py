"""Shardy's form of shardings in HLO: frontend attributes and custom calls named ``xla.sdy.…``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.sharding import Axis, Kind, Mesh, NamedSharding, ShardGroup, Sharding, Split
from heron.hlo.sharding.refinement import named_of
from heron.hlo.sharding.shardy import read_group, read_manual_axes, read_meshes, read_shardings
from heron.hlo.sharding.tiles import reject
from heron.passes.sharding.model.annotations import CONSTRAINT, ENTER, LEAVE, Annotations, target

_PREFIX = "xla.sdy."
_SHARDING = f"{_PREFIX}sharding"
_MANUAL = f"{_PREFIX}manual_axes"
_RESULT = f"{_PREFIX}FuncResultSharding"
#: attributes of the header that give the shardings of all parameters, or of all results
_PARAMETERS = (f"{_PREFIX}tuple_args_shardings", f"{_PREFIX}in_tuple_shardings")
_RESULTS = (f"{_PREFIX}tuple_results_shardings", f"{_PREFIX}out_tuple_shardings")
#: attributes that later passes read
_KEPT = frozenset({f"{_PREFIX}sharding_rule", f"{_PREFIX}allowed_direction"})


def read_shardy(module: Module, found: Annotations) -> bool:
    """Take in what Shardy's attributes and calls say, and remove them; whether there were any."""
    header = dict(module.header.get("frontend_attributes") or {})  # a copy of the module shares the dictionary
    meshes = read_meshes(header.get(f"{_PREFIX}meshes", "{}"))
    reader = _Reader(module, meshes, found)
    reader.whole(header)
    reader.root()
    for c in module.computations:
        for i in c.instructions:
            reader.instruction(i)
    _drop(header, found)
    if header:
        module.header["frontend_attributes"] = header
    else:
        module.header.pop("frontend_attributes", None)
    return reader.read


def device_count(module: Module) -> int:
    """The number of devices of the program's meshes; 1 where it has none."""
    header = module.header.get("frontend_attributes") or {}
    return max((m.size for m in read_meshes(header.get(f"{_PREFIX}meshes", "{}")).values()), default=1)


def _drop(attributes: dict[str, str], found: Annotations) -> None:
    for name in [n for n in attributes if n.startswith(_PREFIX) and n not in _KEPT]:
        del attributes[name]
        found.changed = True


class _Reader:
    """Reads one module. `read` tells whether a sharding was met."""

    def __init__(self, module: Module, meshes: dict[str, Mesh], found: Annotations) -> None:
        self.module, self.meshes, self.found = module, meshes, found
        self.devices = max(module.num_partitions, *(m.size for m in meshes.values())) if meshes else 1
        self.read = False

    # -- the program's ends ------------------------------------------------------------------------------------------
    def whole(self, header: dict[str, str]) -> None:
        """The shardings of parameters and results that the header gives."""
        entry = self.module.entry
        for name in _PARAMETERS:
            if name in header:
                leaves = [(p, leaf) for p in entry.parameters for _, leaf in p.shape.leaves()]
                given = self._shardings(header[name], [leaf.rank for _, leaf in leaves])
                for (p, _), sharding in zip(leaves, given, strict=True):
                    self.found.leaves.setdefault(p, []).append(sharding)
        for name in _RESULTS:
            if name in header:
                shape = entry.root.shape
                given = self._shardings(header[name], [leaf.rank for _, leaf in shape.leaves()])
                self.found.results.update(zip([index for index, _ in shape.leaves()], given, strict=True))

    def root(self) -> None:
        """The shardings of results, which calls in front of the root give."""
        entry = self.module.entry
        if entry.root.opcode == "get-tuple-element" and entry.root.operands[0].opcode == "tuple":
            part = entry.root.operands[0].operands[entry.root.attrs["index"]]
            if target(part) == _RESULT:
                entry.root = part
        root = entry.root
        for index, i in [((n,), o) for n, o in enumerate(root.operands)] if root.opcode == "tuple" else [((), root)]:
            text = (i.extras.get("frontend_attributes") or {}).get(_SHARDING)
            if target(i) == _RESULT and text is not None:
                (self.found.results[index],) = self._shardings(text, [i.shape.rank])
                root.extras.pop("sharding", None)

    # -- instructions ------------------------------------------------------------------------------------------------
    def instruction(self, i: Instruction) -> None:
        """The statement of one instruction, which may be replaced."""
        attributes = i.extras.get("frontend_attributes")
        rewrite = _CALLS.get(target(i))
        if attributes is None or i.parent is None:
            return
        attributes = dict(attributes)
        try:
            if rewrite is not None:
                rewrite(self, i, attributes)
            elif _SHARDING in attributes:
                self._annotate(i, attributes[_SHARDING])
            if i.opcode == "call":
                self._call(i, attributes)
        except HeronError as error:
            raise error.located(str(i)[:200]) from None
        _drop(attributes, self.found)
        if attributes:
            i.extras["frontend_attributes"] = attributes
        else:
            i.extras.pop("frontend_attributes", None)

    def _annotate(self, i: Instruction, text: str) -> None:
        self.read = True
        if i.opcode == "call" or i.opcode == "parameter" and i.parent is not self.module.entry:
            return  # the body says more
        given = read_shardings(text, self.meshes)
        if i.has_side_effect and given and all(s.kind is Kind.MAXIMAL for s in given):
            i.extras["sharding"] = str(given[0])  # an effect on one device, maybe without any result
            return
        ranks = [leaf.rank for _, leaf in i.shape.leaves()]
        if not ranks or i.opcode == "get-tuple-element" and len(given) != len(ranks):
            return  # no value, or one of several whose shardings the operand has
        i.extras.pop("sharding", None)
        self.found.leaves[i] = list(self._shardings(text, ranks))

    def _call(self, i: Instruction, attributes: dict[str, str]) -> None:
        if "manual_computation_body" not in i.attrs["to_apply"].name:
            return
        attributes.pop("inlineable", None)
        if _MANUAL in attributes:
            mesh = next(iter(self.meshes.values()))
            self.found.manual[i] = _manual(mesh, read_manual_axes(attributes[_MANUAL]))

    def enter(self, i: Instruction, attributes: dict[str, str]) -> None:
        """One border for each value that enters a manual computation."""
        given, axes = self._border(i, attributes, f"{_PREFIX}in_shardings", i.operands)
        made: list[Instruction] = []
        for x, shape, sharding in zip(i.operands, i.shape.tuple_shapes or (i.shape,), given, strict=True):
            outer = self._add(i, CONSTRAINT, x, x.shape, sharding)
            made.append(self._add(i, ENTER, outer, shape, _local(sharding, axes)))
        self._become(i, made)

    def leave(self, i: Instruction, attributes: dict[str, str]) -> None:
        """One border for each value that leaves a manual computation."""
        shapes = i.shape.tuple_shapes or (i.shape,)
        given, axes = self._border(i, attributes, f"{_PREFIX}out_shardings", i.operands)
        made: list[Instruction] = []
        for x, shape, sharding in zip(i.operands, shapes, given, strict=True):
            made.append(self._add(i, LEAVE, x, shape, sharding))
            self.found.manual[made[-1]] = _manual(sharding.mesh, axes)
            body = x.operands[0] if x.opcode == "get-tuple-element" else x
            if body.opcode == "call":
                self.found.manual[body] = self.found.manual[made[-1]]
        self._become(i, made)

    def group(self, i: Instruction, attributes: dict[str, str]) -> None:
        """A constraint of all open dimensions in the group."""
        (x,) = i.operands
        assert i.parent is not None
        number = ShardGroup(read_group(attributes[f"{_PREFIX}sharding_group_id"]))
        marker = self._add(i, CONSTRAINT, x, x.shape, named_of(Sharding.unknown(), x.shape.rank, self.devices))
        self.found.groups[marker] = number
        # nothing may use the value, and its sharding still counts for the others of the group
        marker.attrs["custom_call_has_side_effect"] = True
        x.replace_uses_with(marker, [u for u in x.users if u is not marker and u is not i])
        if x.is_root:
            i.parent.root = marker
        self._remove(i)

    def result(self, i: Instruction, attributes: dict[str, str]) -> None:
        """The value itself; the root has the sharding already."""
        self.found.replace(i, i.operands[0])

    # -- parts -------------------------------------------------------------------------------------------------------
    def _shardings(self, text: str, ranks: Sequence[int]) -> list[NamedSharding]:
        found = read_shardings(text, self.meshes)
        if len(found) != len(ranks):
            reject(f"{len(found)} shardings for {len(ranks)} values", f"they are {text[:200]}")
        self.read = True
        return [named_of(s, rank, self.devices) for s, rank in zip(found, ranks, strict=True)]

    def _border(
        self, i: Instruction, attributes: dict[str, str], name: str, values: Sequence[Instruction]
    ) -> tuple[list[NamedSharding], tuple[str, ...]]:
        axes = read_manual_axes(attributes.get(_MANUAL, "#sdy<manual_axes{}>"))
        whole = values if name.endswith("in_shardings") else (i.shape.tuple_shapes or (i.shape,))
        ranks = [v.shape.rank if isinstance(v, Instruction) else v.rank for v in whole]
        return self._shardings(attributes.get(name, "#sdy.sharding_per_value<[]>"), ranks), axes

    def _add(self, at: Instruction, name: str, x: Instruction, shape: object, sharding: NamedSharding) -> Instruction:
        assert at.parent is not None
        i = at.parent.add("custom-call", (x,), shape, like=at, custom_call_target=name)  # type: ignore[arg-type]
        self.found.leaves[i] = [sharding]
        return i

    def _become(self, i: Instruction, made: list[Instruction]) -> None:
        """Let `made` stand for the parts of `i`."""
        assert i.parent is not None
        if not i.shape.is_tuple:
            self.found.replace(i, made[0])
            return
        for user in list(i.users):
            if user.opcode == "get-tuple-element":
                self.found.replace(user, made[user.attrs["index"]])
        if i.users or i.is_root:
            self.found.replace(i, i.parent.add("tuple", made, i.shape, like=i))
        else:
            self._remove(i)

    def _remove(self, i: Instruction) -> None:
        assert i.parent is not None
        i.drop_control_edges()
        i.parent.remove(i)
        self.found.changed = True


_CALLS: dict[str, Callable[[_Reader, Instruction, dict[str, str]], None]] = {
    f"{_PREFIX}GlobalToLocalShape": _Reader.enter,
    f"{_PREFIX}LocalToGlobalShape": _Reader.leave,
    f"{_PREFIX}ShardingGroup": _Reader.group,
    _RESULT: _Reader.result,
}


# -- manual axes -----------------------------------------------------------------------------------------------------
def _manual(mesh: Mesh, names: Sequence[str]) -> NamedSharding:
    """Nothing but manual axes. Raises HLO027 for an axis that the mesh has not."""
    known = [name for name, _ in mesh.axes]
    missing = [n for n in names if n not in known]
    if missing:
        reject(f"no axis '{missing[0]}' in {mesh}")
    return NamedSharding(mesh, manual=tuple(Axis(known.index(n)) for n in names))


def _local(sharding: NamedSharding, names: Sequence[str]) -> NamedSharding:
    """The sharding inside a manual computation: without the manual axes."""
    manual = _manual(sharding.mesh, names).manual
    numbers = {a.number for a in manual}

    def free(axes: Sequence[Axis]) -> tuple[Axis, ...]:
        return tuple(a for a in axes if a.number not in numbers)

    splits = tuple(Split(free(s.axes), s.is_open, s.priority) for s in sharding.splits)
    return NamedSharding(sharding.mesh, splits, free(sharding.replicated), free(sharding.unreduced), manual)
