"""Dataflow: which value is found at each part of each instruction's result.

Tuples, get-tuple-element, bitcasts, calls and loop-invariant state only hand values on; everything else defines new
ones. A while or conditional whose inputs differ defines a *phi*. Where two values ought to sit in one buffer (loop
state, branch results, in-place updates, module outputs) the analysis records a `Flow`: copy insertion decides for
each flow whether the two really share or a copy is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from heron.analysis.fusion.in_place import in_place_pairs
from heron.analysis.graph.call_graph import CallGraph
from heron.errors import HeronError
from heron.hlo.facts import having
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.records import dataclass

ValueKind = Literal["defined", "phi", "parameter", "constant", "output"]
FlowKind = Literal["while-init", "while-body", "branch", "in-place", "output"]


class Value:
    """A value, computed once and stored in one place: part `index` of the result of `instruction`.

    ``kind`` "output" stands for the caller's own buffer of a module output: `index` is the root's part it takes.
    """

    __slots__ = ("instruction", "index", "shape", "kind", "number")

    def __init__(self, instruction: Instruction, index: ShapeIndex, shape: Shape, kind: ValueKind) -> None:
        self.instruction, self.index, self.shape, self.kind = instruction, index, shape, kind
        self.number = -1

    @property
    def is_given(self) -> bool:
        """Whether the value is a parameter's or a constant's: there before the computation starts."""
        return self.kind == "parameter" or self.kind == "constant"

    @property
    def size(self) -> int:
        return self.shape.byte_size

    @property
    def device_size(self) -> int:
        """Bytes that it takes of the device's memory: none on the host."""
        return 0 if self.shape.is_on_host else self.shape.byte_size

    @property
    def memory_space(self) -> int:
        """S(n) of its layout: values of two spaces never share a buffer."""
        layout = self.shape.layout
        return layout.memory_space if layout is not None else 0

    @property
    def name(self) -> str:
        """`add.3` or `while.1{0,2}`."""
        text = "out:" if self.kind == "output" else ""
        part = "{" + ",".join(map(str, self.index)) + "}" if self.index else ""
        return f"{text}{self.instruction.name}{part}"

    def __repr__(self) -> str:
        return f"<value {self.name} {self.kind}>"


#: the values of a (tuple) result, nested as its shape is; tokens and opaques are None
Tree: TypeAlias = "Value | None | tuple[Tree, ...]"


@dataclass(frozen=True, slots=True)
class Flow:
    """`source` moves into the buffer of `target` at part `index` of operand `operand` of `at` (-1: of the result of
    `at`, a root)."""

    kind: FlowKind
    source: Value
    target: Value
    at: Instruction
    operand: int
    index: ShapeIndex


#: handed through unchanged: the value of operand 0
FORWARDING = having(Trait.FORWARDS)
#: no data is touched when these run: they are not uses
TRANSPARENT = FORWARDING | having(Trait.TUPLE)


class Dataflow:
    """``at[i]``: the values of instruction `i`. ``values``: all, in order of definition. ``flows``: see `Flow`.

    Needs a flat call graph (see `flatten-call-graph`); raises BUF001 otherwise.
    """

    def __init__(self, module: Module, graph: CallGraph | None = None) -> None:
        self.module = module
        self.graph = graph or CallGraph(module)
        if not self.graph.is_flat():
            twice = [c.name for c in self.graph.sequential() if len(self.graph.nodes[c].callers) > 1]
            raise HeronError(
                "BUF001",
                f"computation '{twice[0]}' has several callers" if twice else "the call graph is not flat",
                why="buffers belong to one call site",
                hint="run flatten-call-graph first",
            )
        self.at: dict[Instruction, Tree] = {}
        self.flows: list[Flow] = []
        self.outputs: list[Value] = []
        self._made: dict[tuple[Instruction, ShapeIndex], Value] = {}
        self._phis: dict[tuple[Instruction, ShapeIndex], Value] = {}
        entry = module.entry
        root = self._run(entry, None)
        for index, value in leaves(root):
            if value is None:
                continue
            out = Value(entry.root, index, entry.root.shape.at(index), "output")
            self.outputs.append(out)
            self.flows.append(Flow("output", value, out, entry.root, -1, index))
        self._collect()

    # -- questions ---------------------------------------------------------------------------------------------------
    def value(self, i: Instruction, index: ShapeIndex = ()) -> Value:
        """The value at that part. Raises BUF002 when `i` has no such part or it holds no data."""
        found = self.at.get(i)
        for n in index:
            found = found[n] if isinstance(found, tuple) and n < len(found) else None
        if not isinstance(found, Value):
            raise HeronError(
                "BUF002", f"'{i.name}' has no array at {{{','.join(map(str, index))}}}", where=str(i.shape)
            )
        return found

    def readers(self) -> dict[Value, list[Instruction]]:
        """The instructions that read each value's data; what hands it on does not count. Roots are not readers."""
        found: dict[Value, list[Instruction]] = {v: [] for v in self.values}
        at = self.at
        for c in self.graph.sequential():
            for i in c.instructions:
                if i.opcode in TRANSPARENT or i.opcode == "call":
                    continue
                for operand in awaited(i):
                    tree = at[operand]
                    if isinstance(tree, Value):
                        found[tree].append(i)
                        continue
                    for _, value in leaves(tree):
                        if value is not None:
                            found[value].append(i)
        return found

    # -- construction ------------------------------------------------------------------------------------------------
    def _run(self, c: Computation, arguments: list[Tree] | None) -> Tree:
        """Give every instruction of `c` its values; the root's values."""
        at = self.at
        for i in c.post_order():
            opcode = i.opcode
            if opcode == "parameter" and arguments is not None:
                at[i] = arguments[i.attrs["number"]]
                continue
            rule = _RULES.get(opcode)
            at[i] = rule(self, i) if rule is not None else self._fresh(i)
        return at[c.root]

    def _fresh(self, i: Instruction, kind: ValueKind = "defined") -> Tree:
        if i.shape.is_array:
            return self._make(i, (), i.shape, kind)
        return build(i.shape, (), lambda index, shape: self._make(i, index, shape, kind))

    def _make(self, i: Instruction, index: ShapeIndex, shape: Shape, kind: ValueKind) -> Value | None:
        if not shape.is_array:
            return None
        key = (i, index)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = Value(i, index, shape, kind)
        return made

    def _phi(self, i: Instruction, index: ShapeIndex) -> Value:
        """It lies as the loop or the branches say, whichever way a bitcast reads what comes in."""
        made = self._phis.get((i, index))
        if made is None:
            made = self._phis[i, index] = Value(i, index, i.shape.at(index), "phi")
        return made

    def _while(self, i: Instruction) -> Tree:
        body, condition = i.attrs["body"], i.attrs["condition"]
        init = self.at[i.operands[0]]
        state = merge(i.shape, init, lambda ix, v: self._phi(i, ix) if (i, ix) in self._phis else v)
        while True:  # values that the body changes become phis until nothing new is found
            root = self._run(body, [state])
            changed = [
                (index, value)
                for (index, value), (_, result) in zip(leaves(state), leaves(root), strict=True)
                if value is not None and result is not value and (i, index) not in self._phis
            ]
            if not changed:
                break
            for index, _ in changed:
                self._phi(i, index)
            state = merge(i.shape, init, lambda ix, v: self._phis.get((i, ix), v))
        self._run(condition, [state])
        return state

    def _conditional(self, i: Instruction) -> Tree:
        roots = [
            self._run(branch, [self.at[operand]]) for branch, operand in zip(i.called, i.operands[1:], strict=True)
        ]

        def join(index: ShapeIndex, first: Value) -> Value:
            if all(part(root, index) is first for root in roots):
                return first
            return self._phi(i, index)

        return merge(i.shape, roots[0], join)

    def _collect(self) -> None:
        """Number the values and find the flows, now that phis are settled."""
        seen: dict[Value, None] = {}
        flows = self.flows
        for c in self.graph.sequential():
            for i in c.instructions:
                tree = self.at[i]
                if isinstance(tree, Value):
                    seen[tree] = None
                else:
                    for _, value in leaves(tree):
                        if value is not None:
                            seen[value] = None
                if i.opcode == "while":
                    self._while_flows(i)
                elif i.opcode == "conditional":
                    self._branch_flows(i)
                else:
                    for pair in in_place_pairs(i):
                        source = part(self.at[i.operands[pair.operand]], pair.operand_index)
                        target = part(tree, pair.output_index)
                        if isinstance(source, Value) and isinstance(target, Value):
                            flows.append(Flow("in-place", source, target, i, pair.operand, pair.operand_index))
        for out in self.outputs:
            seen[out] = None
        self.values = list(seen)
        for n, value in enumerate(self.values):
            value.number = n

    def _while_flows(self, i: Instruction) -> None:
        root = i.attrs["body"].root
        for index, value in leaves(self.at[i]):
            if value is None or (i, index) not in self._phis:
                continue
            init, result = part(self.at[i.operands[0]], index), part(self.at[root], index)
            if isinstance(init, Value) and isinstance(result, Value):
                self.flows.append(Flow("while-init", init, value, i, 0, index))
                self.flows.append(Flow("while-body", result, value, root, -1, index))

    def _branch_flows(self, i: Instruction) -> None:
        for index, value in leaves(self.at[i]):
            if value is None or self._phis.get((i, index)) is not value:
                continue
            for branch in i.called:
                result = part(self.at[branch.root], index)
                if isinstance(result, Value):
                    self.flows.append(Flow("branch", result, value, branch.root, -1, index))


def _call(flow: Dataflow, i: Instruction) -> Tree:
    return flow._run(i.attrs["to_apply"], [flow.at[o] for o in i.operands])


def _async_start(flow: Dataflow, i: Instruction) -> Tree:
    """(operands, result, context…): operands are handed on, so they stay alive until the done."""
    operands: Tree = tuple(flow.at[o] for o in i.operands)
    result = flow._run(i.called[0], [flow.at[o] for o in i.operands]) if i.called else None
    tail = tuple(
        build(s, (n,), lambda ix, sh: flow._make(i, ix, sh, "defined"))
        for n, s in enumerate(i.shape.tuple_shapes or ())
        if n >= 2
    )
    return (operands, result, *tail)


def _moving_start(flow: Dataflow, i: Instruction) -> Tree:
    """(operands, results, context…): as for async-start, of the results' own shapes."""
    fresh = flow._fresh(i)
    assert isinstance(fresh, tuple)
    operands = tuple(flow.at[o] for o in i.operands)
    return (operands if i.shape.at((0,)).is_tuple else operands[0], *fresh[1:])


def _recv_done(flow: Dataflow, i: Instruction) -> Tree:
    started = flow.at[i.operands[0]]
    assert isinstance(started, tuple)
    return (started[0], None)


def _copy_start(flow: Dataflow, i: Instruction) -> Tree:
    fresh = flow._fresh(i)
    assert isinstance(fresh, tuple)
    return (fresh[0], flow.at[i.operands[0]], *fresh[2:])


_RULES = {
    "parameter": lambda flow, i: flow._fresh(i, "parameter"),
    "constant": lambda flow, i: flow._fresh(i, "constant"),
    "tuple": lambda flow, i: tuple(flow.at[o] for o in i.operands),
    "get-tuple-element": lambda flow, i: flow.at[i.operands[0]][i.attrs["index"]],
    "while": Dataflow._while,
    "conditional": Dataflow._conditional,
    "call": _call,
    "async-start": _async_start,
    "async-update": lambda flow, i: flow.at[i.operands[0]],
    "async-done": lambda flow, i: flow.at[i.operands[0]][1],
    "all-gather-start": _moving_start,
    "all-gather-done": lambda flow, i: flow.at[i.operands[0]][1],
    "collective-permute-start": lambda flow, i: (_moving_start if i.slice_sizes is None else Dataflow._fresh)(flow, i),
    "collective-permute-done": lambda flow, i: flow.at[i.operands[0]][1],
    "all-reduce-done": lambda flow, i: flow.at[i.operands[0]],
    "send": _moving_start,
    "recv-done": _recv_done,
    "copy-start": _copy_start,
    "copy-done": lambda flow, i: flow.at[i.operands[0]][0],
    **{name: (lambda flow, i: flow.at[i.operands[0]]) for name in FORWARDING},
}


def awaited(i: Instruction) -> Sequence[Instruction]:
    """The dependences of `i`: its operands, and those of the all-reduce that it waits for."""
    if i.opcode != "all-reduce-done":
        return i.operands
    return (*i.operands, *i.operands[0].operands)


# -- trees -----------------------------------------------------------------------------------------------------------
def leaves(tree: Tree, prefix: ShapeIndex = ()) -> Iterator[tuple[ShapeIndex, Value | None]]:
    """Every leaf of a tree with its index, depth first."""
    if not isinstance(tree, tuple):
        yield prefix, tree
        return
    for n, below in enumerate(tree):
        yield from leaves(below, (*prefix, n))


def part(tree: Tree, index: ShapeIndex) -> Tree:
    """The subtree at `index`."""
    for n in index:
        assert isinstance(tree, tuple)
        tree = tree[n]
    return tree


def build(shape: Shape, prefix: ShapeIndex, make) -> Tree:
    """A tree of the form of `shape`, with ``make(index, leaf shape)`` at the leaves."""
    if shape.tuple_shapes is None:
        return make(prefix, shape)
    return tuple(build(s, (*prefix, n), make) for n, s in enumerate(shape.tuple_shapes))


def merge(shape: Shape, tree: Tree, change, prefix: ShapeIndex = ()) -> Tree:
    """`tree` with every value replaced by ``change(index, value)``."""
    if isinstance(tree, tuple):
        return tuple(merge(shape, t, change, (*prefix, n)) for n, t in enumerate(tree))
    return tree if tree is None else change(prefix, tree)
