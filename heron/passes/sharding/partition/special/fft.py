"""fft: transformed dimensions are whole one after the other; a single one is transformed in two steps where it pays."""

from __future__ import annotations

from math import pi

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import S32
from heron.hlo.sharding.atoms import Axes, TensorSharding
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.special.computed import computed_in

#: the transform of the other dimensions in one that has real numbers on one side
_COMPLEX = {"RFFT": "FFT", "IRFFT": "IFFT"}


@partitions("fft")
def fft(p: Partitioner, i: Instruction, operands: list[Part]) -> Part | None:
    """Batch dimensions stay split, and take the atoms of transformed ones where they have room: that is the default.

    Else several dimensions are transformed one by one: atoms go from the next one to another. A single dimension is
    transformed in two steps of shorter transforms, with an all-to-all before, between and behind.
    """
    (x,) = operands
    first = x.shape.rank - len(i.fft_length)
    split = [d for d in range(first, x.shape.rank) if x.sharding.dims[d]]
    if not split:
        return None
    (planned,) = computed_in(p, i, operands).operands
    if planned.used >= x.sharding.used:
        return None
    if len(i.fft_length) > 1 and (found := _one_by_one(p, i, x)) is not None:
        return found
    if len(i.fft_length) == 1 and _pays(p, i, x):
        return _in_two_steps(p, i, x)
    return None


# -- several dimensions ----------------------------------------------------------------------------------------------
def _one_by_one(p: Partitioner, i: Instruction, x: Part) -> Part | None:
    """The transform dimension by dimension; None where the atoms of one have no other dimension to go to."""
    rank = x.shape.rank
    order = sorted(range(rank - len(i.fft_length), rank), key=lambda d: bool(x.sharding.dims[d]))
    if i.fft_type in _COMPLEX:  # real numbers are read first and written last
        order.remove(rank - 1)
        order.insert(0 if i.fft_type == "RFFT" else len(order), rank - 1)
    plan: list[tuple[int, TensorSharding]] = []
    sharding = x.sharding
    for d in order:
        moved = _moved(p, x.dims, sharding, d)
        if moved is None:
            return None
        sharding = moved
        plan.append((d, sharding))
    for d, sharding in plan:
        x = _along(p, i, p.reshard(x, sharding), d)
    p.decide(True, f"dimensions {order} transformed one by one")
    return x


def _moved(p: Partitioner, dims: tuple[int, ...], sharding: TensorSharding, d: int) -> TensorSharding | None:
    """The sharding with the atoms of `d` behind those of another dimension that they divide; None without one."""
    axes = sharding.dims[d]
    if not axes:
        return sharding
    for other in range(len(dims)):
        if other != d and dims[other] % p.mesh.size((*sharding.dims[other], *axes)) == 0:
            return sharding.with_dim(d, ()).with_dim(other, (*sharding.dims[other], *axes))
    return None


def _along(p: Partitioner, i: Instruction, x: Part, d: int) -> Part:
    """The transform of one dimension, which is whole."""
    last = x.shape.rank - 1
    length = i.fft_length[d - x.shape.rank]
    kind = i.fft_type if d == last else _COMPLEX.get(i.fft_type, i.fft_type)
    swap = list(range(last + 1))
    swap[d], swap[last] = last, d
    value = x.value if d == last else p.add("transpose", [x.value], dimensions=tuple(swap))
    value = p.add("fft", [value], fft_type=kind, fft_length=(length,))
    value = value if d == last else p.add("transpose", [value], dimensions=tuple(swap))
    dims = (*x.dims[:d], value.shape.dims[d], *x.dims[d + 1 :])
    return Part(value, row_major(value.shape.element_type, *dims), x.sharding)


# -- one dimension ---------------------------------------------------------------------------------------------------
def _pays(p: Partitioner, i: Instruction, x: Part) -> bool:
    """Whether three all-to-alls move less than a gather, and the parts divide the dimension twice."""
    count = p.mesh.size(x.sharding.dims[-1])
    return i.fft_type not in _COMPLEX and count > 3 and x.dims[-1] % count**2 == 0 and x.dims[-1] < 1 << 31


def _in_two_steps(p: Partitioner, i: Instruction, x: Part) -> Part:
    """With n devices that have M elements each: transforms of length n, factors, transforms of length M.

    Element ``j = device * M + m`` of the input and element ``k = q + n * r`` of the result meet with the factor
    ``w^jk``, which is the product of those of the n elements (device, q), of (m, q), and of the M elements (m, r).
    """
    axes: Axes = x.sharding.dims[-1]
    n, m = p.mesh.size(axes), x.local_dims[-1]
    outer, rank = x.local_dims[:-1], x.shape.rank
    p.decide(True, f"{n} parts of {m} elements transformed in two steps")
    swap = (*range(rank - 1), rank, rank - 1)
    value = p.all_to_all(p.reshape(x.value, (*outer, 1, m)), rank, rank - 1, axes)  # (device, m / n)
    value = p.add("transpose", [value], dimensions=swap)
    value = p.add("fft", [value], fft_type=i.fft_type, fft_length=(n,))  # (m / n, q)
    value = p.add("multiply", [value, _factors(p, i, value, x.dims[-1], p.index(axes))])
    value = p.all_to_all(value, rank, rank - 1, axes)  # (m, 1)
    value = p.add("fft", [p.reshape(value, (*outer, m))], fft_type=i.fft_type, fft_length=(m,))  # (r)
    value = p.all_to_all(p.reshape(value, (*outer, 1, m)), rank, rank - 1, axes)  # (q, r / n)
    value = p.reshape(p.add("transpose", [value], dimensions=swap), (*outer, m))
    return Part(value, x.shape, x.sharding)


def _factors(p: Partitioner, i: Instruction, like: Instruction, length: int, device: Instruction) -> Instruction:
    """``w^(m * q)`` for this device's part of m, with w the root of unity of that order."""
    *_, own, count = like.shape.dims
    t = like.shape.element_type.component
    first = p.full(p.scaled(device, own), S32, (own, count))
    steps = p.add("multiply", [p.add("add", [first, p.iota((own, count), 0)]), p.iota((own, count), 1)])
    turn = (2 if i.fft_type == "IFFT" else -2) * pi / length
    angle = p.add("multiply", [p.convert(steps, t), p.full(turn, t, (own, count))])
    factor = p.add("complex", [p.add("cosine", [angle]), p.add("sine", [angle])])
    rank = like.shape.rank
    return p.add("broadcast", [factor], like.shape, dimensions=(rank - 2, rank - 1))
