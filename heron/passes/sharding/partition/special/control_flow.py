"""Loops, branches and calls: what they carry has the same shardings on all sides, and all devices take one path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.errors import HeronError
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition import walk
from heron.passes.sharding.partition.default import local_shapes
from heron.passes.sharding.partition.registry import partitions

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.instruction import Instruction
    from heron.passes.sharding.partition.context import Partitioner
    from heron.passes.sharding.partition.part import Part


@partitions("while", keeps_sums=True)
def while_(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """The carried values are resharded before the loop; the body gives them back as it took them."""
    carried = wanted_leaves(p, i)
    init = p.joined(i.shape, [p.reshard(part, s) for part, s in zip(operands, carried, strict=True)])
    whole = TensorSharding.whole(0, p.manual(i, operands))
    condition = body_of(p, i.condition, [(init.shape, i.shape, carried)], [whole])
    body = body_of(p, i.body, [(init.shape, i.shape, carried)], carried)
    p.at = i
    made = p.add("while", [init], init.shape, **{**i.attrs, "condition": condition, "body": body})
    p.keep_extras(i, made)
    return p.leaves(made, i.shape, carried)


@partitions("conditional", keeps_sums=True)
def conditional(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """The choice is the same on all devices. Each branch gets its operand as its parameter has it."""
    results = wanted_leaves(p, i)
    chosen, rest = p.whole(operands[0]), iter(operands[1:])
    values: list[Instruction] = []
    branches: list[Computation] = []
    for operand, branch in zip(i.operands[1:], i.branch_computations, strict=True):
        (parameter,) = branch.parameters
        shardings = wanted_leaves(p, parameter)
        p.at = i
        parts = [p.reshard(next(rest), s) for s in shardings]
        values.append(p.joined(operand.shape, parts))
        branches.append(body_of(p, branch, [(values[-1].shape, operand.shape, shardings)], results))
    p.at = i
    shape = local_shapes(p, i.shape, iter(results))
    made = p.add("conditional", [chosen.value, *values], shape, **{**i.attrs, "branch_computations": tuple(branches)})
    p.keep_extras(i, made)
    return p.leaves(made, i.shape, results)


@partitions("call", keeps_sums=True)
def call(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """A call is computed where it stands."""
    callee, rest = i.to_apply, iter(operands)
    for inner in callee.instructions:
        p.frame.parts.pop(inner, None)
    for parameter in callee.parameters:
        p.frame.parts[parameter] = [next(rest) for _ in parameter.shape.leaves()]
    return walk.visit(p, callee)


@partitions("opt-barrier", keeps_sums=True)
def opt_barrier(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """A barrier of the same values as parts."""
    value = p.joined(i.shape, operands)
    made = p.add("opt-barrier", [value], value.shape)
    return p.leaves(made, i.shape, [part.sharding for part in operands])


@partitions("infeed", "outfeed", "send", "recv", "send-done", "recv-done")
def host_transfer(p: Partitioner, i: Instruction, operands: list[Part]) -> None:
    """Raises SPMD003: transfers to and from the host are not spread over devices."""
    raise HeronError(
        "SPMD003",
        f"{i.opcode} in a program for {p.mesh.count} devices",
        where=str(i)[:200],
        why="it talks to one host, and nothing says which device does",
        hint="feed arrays as parameters, and return them as results",
    )


def wanted_leaves(p: Partitioner, i: Instruction) -> list[TensorSharding]:
    """The shardings that propagation decided for the leaves of an instruction."""
    return [p.wanted(i, index) for index, _ in i.shape.leaves()]


def body_of(
    p: Partitioner,
    computation: Computation,
    parameters: list[tuple[Shape, Shape, list[TensorSharding]]],
    results: list[TensorSharding],
) -> Computation:
    """A computation built on parts: for each parameter its local shape, its shape and the shardings of its leaves."""
    manual = p.frame.manual
    with p.computation(computation.name) as made:
        p.frame.manual = manual
        for i, (local, shape, shardings) in zip(computation.parameters, parameters, strict=True):
            p.at = i
            value = made.add_parameter(i.number, local, i.name)
            p.frame.parts[i] = p.leaves(value, shape, shardings)
        parts = walk.visit(p, computation)
        p.at = computation.root
        root = [p.reshard(part, s) for part, s in zip(parts, results, strict=True)]
        made.root = p.joined(computation.root.shape, root)
    return made
