"""Extras: what instructions carry beside their op's attributes: shardings, origins, accuracies, configurations.

They are kept as text, so the first rule for each is that it can be read.
"""

from __future__ import annotations

from collections.abc import Iterator

from heron.errors import HeronError
from heron.hlo.calls.backend_config import parse
from heron.hlo.facts import opcodes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.original_value import read_origin
from heron.hlo.sharding import Kind, Sharding
from heron.hlo.verifier.rules import Problem, Stage, rule

#: ops that can be computed more or less accurately
ACCURACY = sorted(opcodes(lambda op: "result_accuracy" in op.attributes))


#: the Python types extras are kept in
TYPES: dict[str, tuple[type, ...]] = {
    "backend_config": (str,),
    "carried": (bytes,),
    "frontend_attributes": (dict,),
    "origin": (str,),
    "parameter_replication": (tuple, list),
    "result_accuracy": (str,),
    "sharding": (str,),
    "statistics": (str,),
}


@rule("HLO159", Stage.STRUCTURE)
def extras_have_their_types(module: Module) -> Iterator[Problem]:
    """Extras are kept as text, frontend attributes as a dictionary, replication flags as a tuple."""
    for c in module.computations:
        for i in c._instructions:
            for name, value in i.extras.items():
                wanted = TYPES.get(name)
                if wanted is not None and not isinstance(value, wanted):
                    why = f"it is {value!r}"[:80]
                    yield Problem("HLO159", f"'{name}' of '{i.name}' must be a {wanted[0].__name__}", i, why=why)


# -- sharding --------------------------------------------------------------------------------------------------------
@rule("HLO150", carrying="sharding")
def shardings_can_be_read(i: Instruction) -> Iterator[Problem]:
    """A sharding is written as XLA writes shardings."""
    try:
        _ = i.sharding
    except HeronError as error:
        why = error.what + (f": {error.why}" if error.why else "")
        yield Problem("HLO150", f"the sharding of '{i.name}' cannot be read", i, why=why)


@rule("HLO151", carrying="sharding")
def shardings_fit_shapes(i: Instruction) -> Iterator[Problem]:
    """A tuple's sharding has a part for each leaf, and a tiled one a number of tiles for each dimension."""
    found = _readable(i)
    if found is None or i.shape.is_token:
        return
    leaves = [s for _, s in i.shape.leaves()]
    if found.is_tuple and not i.shape.is_tuple:
        yield Problem("HLO151", f"'{i.name}' is not a tuple, but its sharding is one", i, why=f"it is {i.shape}")
        return
    parts = found.elements if found.is_tuple else (found,) * len(leaves)
    if len(parts) != len(leaves) and (leaves or len(parts) > 1):
        why = f"{len(parts)} parts, {len(leaves)} leaves in {i.shape}"
        yield Problem("HLO151", f"the sharding of '{i.name}' needs a part for each leaf", i, why=why)
        return
    for part, shape in zip(parts, leaves, strict=False):
        rank = _rank(part)
        if rank is not None and shape.is_array and rank != shape.rank:
            why = f"it splits {rank} dimensions, the shape is {shape}"
            yield Problem("HLO151", f"the sharding of '{i.name}' has another rank", i, why=why)


@rule("HLO152", carrying="sharding")
def shardings_name_devices_once(i: Instruction) -> Iterator[Problem]:
    """A tiled sharding has more than one tile, and each on a device of its own that there is."""
    found = _readable(i)
    if found is None:
        return
    assert i.parent is not None and i.parent.module is not None
    limit = i.parent.module.num_partitions
    for part in found.elements if found.is_tuple else (found,):
        plain = part.plain
        devices = (plain.device,) if plain.kind is Kind.MAXIMAL else _listed(plain)
        largest = plain.tiles.size - 1 if plain.tiles is not None and not devices else max(devices, default=0)
        if len(set(devices)) != len(devices):
            yield Problem("HLO152", f"the sharding of '{i.name}' names a device twice", i, why=f"it is {part}"[:200])
        elif largest < 0 or min(devices, default=0) < 0 or (limit > 1 and largest >= limit):
            why = f"the devices are 0 to {limit - 1}" if limit > 1 else f"it is {part}"[:200]
            yield Problem("HLO152", f"the sharding of '{i.name}' names a device that does not exist", i, why=why)
        elif plain.tiles is not None and plain.tiles.size == 1:
            hint = "{replicated} or {maximal device=0}"
            yield Problem("HLO152", f"the sharding of '{i.name}' has a single tile", i, hint=hint)


@rule("HLO153", on=("while", "conditional"))
def loops_keep_their_sharding(i: Instruction) -> Iterator[Problem]:
    """A loop, its parameters and its body's result have one sharding if they have any; so have branches' results.

    A constraint at the end of a branch says how its own value is spread, and nothing of the other branches.
    """
    if i.opcode == "while":
        body, condition = i.body, i.condition
        alike = [i, body.root, *body.parameters, *condition.parameters]
    else:
        roots = [branch.root for branch in i.branch_computations]
        alike = [i, *(r for r in roots if r.opcode != "custom-call" or r.custom_call_target != "Sharding")]
    stated = [(k, found) for k in alike if (found := _readable(k)) is not None]
    for other, sharding in stated[1:]:
        first, wanted = stated[0]
        if sharding != wanted:
            why = f"{wanted} and {sharding}"[:200]
            yield Problem("HLO153", f"'{first.name}' and '{other.name}' must have one sharding", i, why=why)


def _readable(i: Instruction) -> Sharding | None:
    """The sharding, if there is one and HLO150 found no fault with it."""
    if "sharding" not in i.extras:
        return None
    try:
        return i.sharding
    except HeronError:
        return None


def _rank(sharding: Sharding) -> int | None:
    """The number of dimensions that a sharding splits; None if it does not matter."""
    if sharding.named is not None:
        return len(sharding.named.splits) or None
    return None if sharding.tiles is None else len(sharding.data_dims)


def _listed(sharding: Sharding) -> tuple[int, ...]:
    """The devices of tiles where they are listed; an iota names each once, and may name millions."""
    tiles = sharding.tiles
    return () if tiles is None or tiles.iota is not None else tiles.devices


# -- the rest --------------------------------------------------------------------------------------------------------
@rule("HLO154", carrying="origin")
def origins_have_the_tuples_shape(i: Instruction) -> Iterator[Problem]:
    """An origin is written as XLA writes origins and has a part for each leaf of the shape."""
    try:
        parts = read_origin(i.extras["origin"])
    except HeronError as error:
        yield Problem("HLO154", f"the origin of '{i.name}' cannot be read", i, why=error.what)
        return
    if parts is None:
        return
    has = {part.part for part in parts}
    wants = {index for index, _ in i.shape.leaves()}
    if has != wants:
        why = f"it has the parts {_indices(has)}, the shape {_indices(wants)}"
        yield Problem("HLO154", f"the origin of '{i.name}' has other parts than its shape", i, why=why)


def _indices(found: set[tuple[int, ...]]) -> str:
    return ", ".join("{" + ",".join(map(str, index)) + "}" for index in sorted(found)[:8]) or "none"


@rule("HLO155", carrying="result_accuracy")
def accuracies_are_of_functions(i: Instruction) -> Iterator[Problem]:
    """Only the transcendental functions of one operand have a result accuracy."""
    if i.opcode not in ACCURACY:
        yield Problem(
            "HLO155", f"{i.opcode} has no result accuracy to choose", i, why=f"{', '.join(ACCURACY)} have one"
        )


@rule("HLO156", carrying="parameter_replication")
def replications_cover_leaves(i: Instruction) -> Iterator[Problem]:
    """parameter_replication stands on parameters and has a flag for each leaf."""
    flags, leaves = i.extras["parameter_replication"], sum(1 for _ in i.shape.leaves())
    if i.opcode != "parameter":
        yield Problem("HLO156", f"'{i.name}' is not a parameter, but has parameter_replication", i)
    elif len(flags) != leaves:
        why = f"{len(flags)} flags, {leaves} leaves in {i.shape}"
        yield Problem("HLO156", f"parameter_replication of '{i.name}' needs a flag for each leaf", i, why=why)


@rule("HLO157", carrying="backend_config")
def configurations_are_json(i: Instruction) -> Iterator[Problem]:
    """A backend configuration in braces is JSON as XLA reads it, but on custom calls, which read their own."""
    text = i.extras["backend_config"]
    if i.opcode == "custom-call" or text[:1] != "{":
        return
    try:
        parse(text)
    except ValueError as error:
        yield Problem("HLO157", f"the backend configuration of '{i.name}' is not JSON", i, why=str(error)[:200])


@rule("HLO158")
def stack_frames_exist(module: Module) -> Iterator[Problem]:
    """A stack frame that metadata name is in the module's table, if it has one."""
    table = module.header.get("stack_frames")
    if table is None:
        return
    count = len(table.frames)
    for i in module.instructions():
        if i.metadata is not None and not 0 <= i.metadata.stack_frame_id <= count:
            why = f"frame {i.metadata.stack_frame_id}, the table has {count}"
            yield Problem("HLO158", f"'{i.name}' comes from a stack frame that is not there", i, why=why)
