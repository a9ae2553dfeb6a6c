"""The short spelling of asynchronous ops: ``y-start(x), …`` for an async-start whose computation is a single ``y``.

XLA prints, and so we print, the one op in the place of its computation; ``y-update`` and ``y-done`` follow suit.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import REGISTRY, Attr, Op, Trait
from heron.hlo.ir.shape import Shape

_FOLLOWING = {"-update": "async-update", "-done": "async-done"}
FOLLOWING = tuple(_FOLLOWING.values())
THREAD, ALIASING = "async_execution_thread", "output_to_operand_aliasing"
#: annotations that hold for the op as well as for the async-start that runs it
_SHARED = ("frontend_attributes", "backend_config")
#: the thread that computations run on unless the text says otherwise
MAIN = "main"


class Start(Op):
    """The content of ``y-start``: the operands and attributes of ``y``, and its thread."""

    def __init__(self, inner: Op) -> None:
        self.inner = inner
        self.name = inner.name + "-start"  # type: ignore[misc]
        self.operands = inner.operands  # type: ignore[misc]
        self.min_operands, self.max_operands = inner.min_operands, inner.max_operands
        own = {name: spec for name, spec in REGISTRY["async-start"].attributes.items() if name != "calls"}
        self.attributes: dict[str, Attr] = {**inner.attributes, **own}  # type: ignore[misc]


@cache
def find(opcode: str) -> Op | None:
    """The op a short spelling stands for: a `Start`, or async-update or async-done; None when it is none."""
    stem, dash, suffix = opcode.rpartition("-")
    inner = REGISTRY.get(stem)
    if inner is None or Trait.GIVEN in inner.traits:
        return None
    if suffix == "start":
        return Start(inner)
    return REGISTRY.get(_FOLLOWING.get(dash + suffix, ""))


def wrap(
    start: Start, operands: list[Instruction], shape: Shape | None, attrs: dict[str, Any], extras: dict[str, Any]
) -> Computation:
    """The computation of the one op, for an async-start with that result shape and `extras`; takes the op's `attrs`."""
    parts = shape.tuple_shapes if shape is not None else None
    c = Computation("async_computation")
    parameters = [c.add_parameter(n, o.shape, "async_param") for n, o in enumerate(operands)]
    result = parts[1] if parts is not None and len(parts) > 1 else None
    shared = {name: value for name, value in extras.items() if name in _SHARED}
    c.root = c.attach(Instruction(start.inner, parameters, result, attrs, start.inner.name, shared))
    return c


def set_thread(c: Computation, thread: str) -> None:
    """Let a computation, and all it calls, run on a thread."""
    work = [c]
    while work:
        c = work.pop()
        if c.extras.get("execution_thread") != thread:
            c.extras["execution_thread"] = thread
            work.extend(k for i in c.instructions for k in i.called)


def single_op(start: Instruction) -> Instruction | None:
    """The op that an async-start runs when that is just one op on all its operands in order.

    Annotations of both must be the same: they are shown once. As in XLA's text, the op's metadata is not shown: the
    asynchronous op's own says where it comes from.
    """
    c: Computation | None = start.attrs.get("calls")
    if c is None or c.root.has(Trait.GIVEN) or len(c) != len(c.root.operands) + 1:
        return None
    numbers = [o.attrs.get("number") for o in c.root.operands]
    if c.root.control_predecessors or numbers != list(range(len(start.operands))):
        return None
    if any(c.root.opcode + suffix in REGISTRY for suffix in ("-start", "-done")):  # an op of that name would be read
        return None
    if len(start.shape.tuple_shapes or ()) < 2:  # the op has no shape of its own to read
        return None
    if start.attrs.get(ALIASING) and ALIASING in c.root.op.attributes:  # whose it is could not be told
        return None
    return c.root if all(start.extras.get(n, value) == value for n, value in c.root.extras.items()) else None


def start_of(i: Instruction) -> Instruction | None:
    """The async-start of a chain of updates, or None when there is none."""
    while i.opcode == "async-update" and i.operands:
        i = i.operands[0]
    return i if i.opcode == "async-start" else None


def wrapped(i: Instruction) -> Instruction | None:
    """The one op that an asynchronous instruction runs, or None when it has to be spelled out."""
    while i.opcode in FOLLOWING and i.operands:
        i = i.operands[0]
    return single_op(i) if i.opcode == "async-start" else None
