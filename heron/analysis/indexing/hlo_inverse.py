"""The other direction, and whole computations: which result elements an operand's element reaches; fusions composed.

`input_to_output` is the map a pass asks to push a layout, a tile or a slice down through an op. `computation_maps`
composes `output_to_input` from a root up to each parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heron.analysis.indexing.expr import Const, Dim, Expr, Sym, dims, floordiv, mod
from heron.analysis.indexing.hlo_maps import output_to_input, reshape_index
from heron.analysis.indexing.map import Constraint, IndexingMap, compose
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction


def input_to_output(i: Instruction, n: int) -> IndexingMap | None:
    """The map from an index of operand `n` to the elements of `i`'s result it takes part in. None when not known.

    Symbols run over the result dimensions the operand's index says nothing about. Simplified.
    """
    operand = i.operands[n].shape
    if not operand.is_array or not (i.shape.is_array or i.opcode == "reduce"):
        return None
    if i.op.is_elementwise and operand.dims == i.shape.dims:
        return IndexingMap.identity(operand.dims)
    if i.op.is_elementwise or (operand.rank == 0 and i.opcode in _SCALAR_OPERANDS):
        return _everywhere(i)
    build = _BUILDERS.get(i.opcode)
    found = None if build is None else build(i, n)
    return None if found is None else found.simplify()


#: ops whose scalar operands (padding value, initial value, start index) take part in every element
_SCALAR_OPERANDS = frozenset({"pad", "dynamic-slice", "dynamic-update-slice", "broadcast"})


def _everywhere(i: Instruction) -> IndexingMap:
    return IndexingMap.from_sizes([Sym(d) for d in range(i.shape.rank)], (), i.shape.dims)


def _broadcast(i: Instruction, n: int) -> IndexingMap:
    operand = i.operands[0].shape.dims
    symbols: list[int] = []
    results: list[Expr] = []
    for d, size in enumerate(i.shape.dims):
        if d in i.dimensions and operand[i.dimensions.index(d)] == size:
            results.append(Dim(i.dimensions.index(d)))
        else:
            results.append(Sym(len(symbols)))
            symbols.append(size)
    return IndexingMap.from_sizes(results, operand, symbols)


def _reshape(i: Instruction, n: int) -> IndexingMap:
    operand = i.operands[0].shape.dims
    return IndexingMap.from_sizes(reshape_index(dims(len(operand)), operand, i.shape.dims), operand)


def _transpose(i: Instruction, n: int) -> IndexingMap:
    return IndexingMap.from_sizes([Dim(d) for d in i.dimensions], i.operands[0].shape.dims)


def _slice(i: Instruction, n: int) -> IndexingMap:
    results: list[Expr] = []
    constraints: list[Constraint] = []
    for d, ((start, _, stride), size) in enumerate(zip(i.slice, i.shape.dims, strict=True)):
        shifted = Dim(d) - start
        results.append(floordiv(shifted, Const(stride)))
        constraints.append((shifted, 0, (size - 1) * stride))
        if stride > 1:
            constraints.append((mod(shifted, Const(stride)), 0, 0))
    return IndexingMap.from_sizes(results, i.operands[0].shape.dims).replace(constraints=constraints)


def _reverse(i: Instruction, n: int) -> IndexingMap:
    found = output_to_input(i, n)
    assert found is not None  # its own inverse
    return found


def _pad(i: Instruction, n: int) -> IndexingMap:
    results: list[Expr] = []
    constraints: list[Constraint] = []
    for d, ((low, _, interior), size) in enumerate(zip(i.padding, i.shape.dims, strict=True)):
        results.append(Dim(d) * (interior + 1) + low)
        constraints.append((results[-1], 0, size - 1))
    return IndexingMap.from_sizes(results, i.operands[0].shape.dims).replace(constraints=constraints)


def _concatenate(i: Instruction, n: int) -> IndexingMap:
    d = i.dimensions[0]
    operand = i.operands[n].shape.dims
    results = list(dims(len(operand)))
    results[d] = results[d] + sum(o.shape.dims[d] for o in i.operands[:n])
    return IndexingMap.from_sizes(results, operand)


def _reduce(i: Instruction, n: int) -> IndexingMap:
    parts = i.shape.tuple_shapes
    result = (i.shape if parts is None else parts[0]).dims
    if n >= len(i.operands) // 2:
        return IndexingMap.from_sizes([Sym(d) for d in range(len(result))], (), result)
    operand = i.operands[n].shape.dims
    return IndexingMap.from_sizes([Dim(d) for d in range(len(operand)) if d not in i.dimensions], operand)


def _dot(i: Instruction, n: int) -> IndexingMap | None:
    if n > 1:
        return None
    batch = (i.lhs_batch_dims or (), i.rhs_batch_dims or ())
    contracted = (i.lhs_contracting_dims or (), i.rhs_contracting_dims or ())
    free = [
        [d for d in range(i.operands[k].shape.rank) if d not in batch[k] and d not in contracted[k]] for k in (0, 1)
    ]
    results: list[Expr] = [Dim(d) for d in batch[n]]
    other = [i.operands[1 - n].shape.dims[d] for d in free[1 - n]]
    mine: list[Expr] = [Dim(d) for d in free[n]]
    theirs: list[Expr] = [Sym(k) for k in range(len(other))]
    results += mine + theirs if n == 0 else theirs + mine
    return IndexingMap.from_sizes(results, i.operands[n].shape.dims, other)


_BUILDERS: dict[str, Callable[[Instruction, int], IndexingMap | None]] = {
    "broadcast": _broadcast,
    "reshape": _reshape,
    "bitcast": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "reverse": _reverse,
    "pad": _pad,
    "concatenate": _concatenate,
    "reduce": _reduce,
    "dot": _dot,
}


# -- whole computations ------------------------------------------------------------------------------------------------


def computation_maps(
    computation: Computation, root: Instruction | None = None
) -> dict[Instruction, set[IndexingMap | None]]:
    """For each instruction the root needs, parameters above all: the maps from a root index to what is read of it.

    An instruction read in several ways has several maps; None stands for "anything may be read".
    """
    root = root or computation.root
    found: dict[Instruction, set[IndexingMap | None]] = {root: {IndexingMap.identity(root.shape.dims)}}
    for i in reversed(_below(root)):
        for n, operand in enumerate(i.operands):
            known = found.setdefault(operand, set())
            step = output_to_input(i, n)
            for m in found[i]:
                if step is None or m is None:
                    known.add(None)
                else:
                    known.add(compose(m, step).simplify().remove_unused_syms())
    return found


def _below(root: Instruction) -> Sequence[Instruction]:
    """What `root` needs, operands first."""
    order: list[Instruction] = []
    seen: set[Instruction] = set()
    stack = [(root, False)]
    while stack:
        i, ready = stack.pop()
        if ready:
            order.append(i)
        elif i not in seen:
            seen.add(i)
            stack.append((i, True))
            stack.extend((o, False) for o in i.operands if o not in seen)
    return order
