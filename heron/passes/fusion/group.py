"""Groups: kernels in the making, and how often each of their instructions would be computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from heron.analysis.prefix_scan import is_long_scan
from heron.hlo.instruction import Instruction

#: a scalar's computation is taken out of the loops around it: it counts as this many evaluations
HOISTED = 64.0


@dataclass(slots=True, eq=False)
class Group:
    """One kernel: its ``root`` and all it computes, `root` included.

    ``evaluations[i]``: how many elements of member `i` the kernel computes; more than `i` has when some are computed
    again for several readers. ``inputs``: what it reads from memory.
    """

    root: Instruction
    evaluations: dict[Instruction, float] = field(default_factory=dict)
    inputs: dict[Instruction, None] = field(default_factory=dict)

    @staticmethod
    def of(root: Instruction) -> Group:
        """The kernel of `root` alone."""
        size = (root.shape.tuple_shapes or (root.shape,))[0].num_elements
        return Group(root, {root: float(size)}, dict.fromkeys(root.operands))

    def __contains__(self, i: Instruction) -> bool:
        return i in self.evaluations

    def add(self, i: Instruction, evaluations: float) -> None:
        """Compute `i` inside."""
        self.evaluations[i] = evaluations
        self.inputs.pop(i, None)
        for operand in i.operands:
            if operand not in self.evaluations:
                self.inputs[operand] = None

    def evaluations_of(self, i: Instruction) -> float:
        """How many elements of `i` the members that use it would compute, were it inside.

        Members that read it at their own index share one computation; each other way of reading adds its own.
        """
        own = other = 0.0
        for user in i.users:
            n = self.evaluations.get(user)
            if n is None:
                continue
            if user.op.is_elementwise and user.shape.num_elements == i.shape.num_elements:
                own = max(own, n)
            else:
                other += n * sum(reads(user, k) for k, o in enumerate(user.operands) if o is i)
        total = own + other
        return min(total, HOISTED) if i.shape.num_elements == 1 else total


def reads(user: Instruction, operand: int) -> float:
    """How many elements of that operand one element of `user` needs."""
    opcode = user.opcode
    if opcode == "broadcast":  # what does not change along the innermost loop is computed outside it
        mapped = user.attrs.get("dimensions") or ()
        dims = user.shape.dims
        return 1.0 / max(1, dims[-1]) if dims and len(dims) - 1 not in mapped else 1.0
    x = user.operands[operand].shape
    size = max(1, (user.shape.tuple_shapes or (user.shape,))[0].num_elements)
    if opcode in ("concatenate", "pad"):
        return min(1.0, x.num_elements / size)
    if opcode == "reduce":
        return max(1.0, x.num_elements / size)
    if opcode == "reduce-window":
        if x.is_scalar or is_long_scan(user):
            return 1.0
        return float(prod(w.size for w in user.attrs["window"]))
    if opcode == "gather" and operand == 1:
        return float(len(user.attrs.get("start_index_map") or (0,)))
    if opcode == "dynamic-update-slice":
        return user.operands[1].shape.num_elements / size
    if opcode == "scatter":
        updates = user.operands[-1].shape.num_elements / size
        is_index = operand == len(user.operands) // 2
        return updates * (len(user.attrs.get("scatter_dims_to_operand_dims") or (0,)) if is_index else 1)
    return 1.0
