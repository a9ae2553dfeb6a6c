"""Building the one fusion of a cluster of kernels."""

from __future__ import annotations

from heron.analysis.fusion.iteration_space import hero_of, source
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import ShapeIndex, tuple_
from heron.passes.fusion.model.build import kind_and_name
from heron.passes.rewriting.building import reshape
from heron.passes.rewriting.tuples import take_apart


def join_kernels(nodes: list[Instruction]) -> Instruction:
    """Replace kernels by one with all their outputs that are still read from outside; `nodes` are in execution order.

    A value that one of them reads of another is computed in place.
    """
    home = nodes[0].parent
    assert home is not None and home.module is not None
    body = Computation("fused_outputs")
    given, computed = _joined_body(nodes, body)
    outputs = _outputs(nodes, computed)
    found = [inner for _, _, inner in outputs]
    roots = _as_walked(found)
    several = len(roots) > 1
    body.root = body.add("tuple", roots, tuple_([r.shape for r in roots])) if several else roots[0]
    for part in computed.values():  # outputs and parts of reductions that nobody reads
        body.remove_dead_from(part)
    home.module.add_computation(body)
    main = hero_of(roots)
    kind, name = kind_and_name(main)
    fusion = home.add("fusion", given, body.root.shape, name, kind=kind, calls=body)
    fusion.metadata = nodes[0].metadata
    for n, output in enumerate(outputs):
        part = home.add("get-tuple-element", [fusion], roots[n].shape, index=n) if several else fusion
        _hand_out(home, part, *output)
    for node in reversed(nodes):
        for user in list(node.users):
            if user.opcode == "get-tuple-element":
                home.remove_dead_from(user)
        home.remove_dead_from(node)
    return fusion


def _joined_body(
    nodes: list[Instruction], body: Computation
) -> tuple[list[Instruction], dict[tuple[Instruction, ShapeIndex], Instruction]]:
    """Clone what all kernels compute into `body`: its operands, and the clones by kernel and index."""
    given: list[Instruction] = []
    operands: dict[Instruction, Instruction] = {}
    computed: dict[tuple[Instruction, ShapeIndex], Instruction] = {}

    def operand(o: Instruction) -> Instruction:
        whole, index = (o.operands[0], (o.attrs["index"],)) if o.opcode == "get-tuple-element" else (o, ())
        inside = computed.get((whole, index))
        if inside is not None:
            return inside
        if o.opcode == "constant" and o.shape.is_scalar and o not in operands:
            operands[o] = body.attach(o.clone())
        if o not in operands:
            operands[o] = body.add_parameter(len(given), o.shape)
            given.append(o)
        return operands[o]

    for node in nodes:
        if node.shape.is_tuple:
            take_apart(node)
        _inline(node, body, [operand(o) for o in node.operands], computed)
    return given, computed


def _hand_out(home: Computation, part: Instruction, node: Instruction, index: ShapeIndex, inner: Instruction) -> None:
    """Let `part` of the joined kernel take the place of a kernel's output, which is `inner` inside."""
    if part.shape is not inner.shape:
        part = home.add("bitcast", [part], inner.shape)
    for old in _readers_of(node, index):
        part.metadata = old.metadata
        old.replace_uses_with(part)


def _inline(
    node: Instruction,
    body: Computation,
    operands: list[Instruction],
    computed: dict[tuple[Instruction, ShapeIndex], Instruction],
) -> None:
    """Clone what a kernel computes into `body`."""

    def record(index: ShapeIndex, made: Instruction) -> None:
        if not made.shape.is_tuple:
            computed[node, index] = made
            return
        for n, shape in enumerate(made.shape.tuple_shapes or ()):
            computed[node, (n,)] = body.add("get-tuple-element", [made], shape, index=n)

    if node.opcode != "fusion":
        record((), body.attach(node.clone(operands)))
        return
    inner = node.attrs["calls"]
    clones: dict[Instruction, Instruction] = {}
    for i in inner.post_order():
        if i.opcode == "parameter":
            clones[i] = operands[i.attrs["number"]]
        elif i is not inner.root or i.opcode != "tuple":
            clones[i] = body.attach(i.clone([clones[o] for o in i.operands]))
    root = inner.root
    if root.opcode != "tuple":
        record((), clones[root])
        return
    for n, part in enumerate(root.operands):
        computed[node, (n,)] = clones[part]


def _as_walked(roots: list[Instruction]) -> list[Instruction]:
    """The roots, but of arrays that are reduced with other dimensions: those have these dimensions, too."""
    reduced = next((made.operands[0].shape for made in map(source, roots) if made.opcode == "reduce"), None)
    if reduced is None:
        return roots
    results = {r.shape.num_elements for r in roots if source(r).opcode == "reduce"}
    count = reduced.num_elements
    return [reshape(r, reduced.dims) if r.shape.num_elements == count not in results else r for r in roots]


def _outputs(
    nodes: list[Instruction], computed: dict[tuple[Instruction, ShapeIndex], Instruction]
) -> list[tuple[Instruction, ShapeIndex, Instruction]]:
    """(kernel, index, instruction inside) of what is read from outside the cluster."""
    inside = set(nodes)
    found: list[tuple[Instruction, ShapeIndex, Instruction]] = []
    for (node, index), inner in computed.items():
        readers = _readers_of(node, index)
        if any(r.is_root or any(u not in inside for u in r.users) for r in readers):
            found.append((node, index, inner))
    return found


def _readers_of(node: Instruction, index: ShapeIndex) -> list[Instruction]:
    """The instructions that stand for part `index` of a kernel's result."""
    if not index:
        return [node]
    return [u for u in node.users if u.opcode == "get-tuple-element" and u.attrs["index"] == index[0]]
