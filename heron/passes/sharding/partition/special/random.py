"""Random numbers: every device makes its own bits by counting on, or all of them."""

from __future__ import annotations

from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, row_major, scalar, tuple_
from heron.hlo.ir.types import PRED, U64
from heron.hlo.meaning.bit_generators import split_dimension
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions


@partitions("rng-bit-generator")
def rng_bit_generator(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """The state is whole everywhere.

    Along the first dimension every device counts on to the begin of its part, where the part begins with a counter.
    Else it makes all bits and takes its own.
    """
    state, bits = p.whole(operands[0]), i.shape.at((1,))
    wanted = p.wanted(i, (1,))
    rows = _leading(bits, wanted)
    local = p.local(bits, rows)
    is_whole = rows.is_whole or not _begins_with_counter(i.algorithm, bits, local)
    if is_whole:
        rows, local = TensorSharding.whole(bits.rank, wanted.manual), bits
    if is_whole and any(wanted.dims):
        p.decide(False, f"every device makes all {bits.num_elements} random numbers: parts begin within a counter")
    if is_whole:
        made = p.add("rng-bit-generator", [state.value], tuple_([state.value.shape, local]), algorithm=i.algorithm)
        after = p.add("get-tuple-element", [made], state.value.shape, index=0)
    else:
        axes = next(axes for axes in rows.dims if axes)
        first = _advanced(p, i.algorithm, state.value, p.index(axes), _counters(i.algorithm, local))
        made = p.add("rng-bit-generator", [first], tuple_([first.shape, local]), algorithm=_algorithm(i.algorithm))
        after = _after(p, i.algorithm, state.value, _counters(i.algorithm, bits))
    drawn = Part(p.add("get-tuple-element", [made], local, index=1), bits, rows)
    split = TensorSharding.closed(wanted.dims, manual=wanted.manual)
    return [Part(after, state.shape, TensorSharding.whole(1, wanted.manual)), p.reshard(drawn, split)]


def _leading(bits: Shape, wanted: TensorSharding) -> TensorSharding:
    """The sharding of the first dimension that has more than one element, alone."""
    first = next((d for d, n in enumerate(bits.dims) if n > 1), 0)
    return TensorSharding.closed([a if d == first else () for d, a in enumerate(wanted.dims)], manual=wanted.manual)


# -- counting --------------------------------------------------------------------------------------------------------
def _is_threefry(algorithm: str) -> bool:
    return algorithm == "rng_three_fry"


def _algorithm(algorithm: str) -> str:
    """The algorithm that begins at a state of `_advanced`."""
    return algorithm if _is_threefry(algorithm) else "rng_philox"


def _counters(algorithm: str, bits: Shape) -> int:
    """The number of counters that a generator takes."""
    count, is_wide = bits.num_elements, bits.element_type.bits == 64
    if not _is_threefry(algorithm):
        return -(-count * (2 if is_wide else 1) // 4)
    split = None if is_wide else split_dimension(bits.dims)
    return count if split is None else count // bits.dims[split] * -(-bits.dims[split] // 2)


def _begins_with_counter(algorithm: str, bits: Shape, local: Shape) -> bool:
    """Whether rows of a part take whole counters, which are those that the rows take as part of all of them."""
    is_wide = bits.element_type.bits == 64
    if not _is_threefry(algorithm):
        return local.num_elements * (2 if is_wide else 1) % 4 == 0
    if is_wide:
        return True
    split = split_dimension(bits.dims)
    if split is None or split_dimension(local.dims) != split:
        return False
    return local.dims[split] in (bits.dims[split], local.dims[split] // 2 * 2)


def _words(p: Partitioner, state: Instruction) -> list[Instruction]:
    """The state in words of 64 bits; u64[]."""
    t = state.shape.element_type
    if t is not U64:
        per_word = 64 // t.bits
        count = state.shape.dims[0] // per_word
        state = p.add("bitcast-convert", [p.reshape(state, (count, per_word))], row_major(U64, count))
    return [p.reshape(p.slice(state, 0, n, n + 1), ()) for n in range(state.shape.dims[0])]


def _counted_on(p: Partitioner, words: list[Instruction], by: Instruction) -> list[Instruction]:
    """Key, low and high word of Philox's counter, which then stands further on."""
    key, low, high = words if len(words) == 3 else (*words, words[0])
    end = p.add("add", [low, by])
    carry = p.convert(p.compare("LT", end, low), U64)
    return [key, end, p.add("add", [high, carry])]


def _advanced(p: Partitioner, algorithm: str, state: Instruction, number: Instruction, step: int) -> Instruction:
    """The state where part `number` begins, of which each takes `step` counters."""
    words = _words(p, state)
    by = p.add("multiply", [p.convert(number, U64), p.constant(step, U64)], scalar(U64))
    if _is_threefry(algorithm):
        return _joined(p, [words[0], p.add("add", [words[1], by])])
    return _joined(p, _counted_on(p, words, by))


def _after(p: Partitioner, algorithm: str, state: Instruction, count: int) -> Instruction:
    """The state behind all counters, in the form of the state before."""
    words, by = _words(p, state), p.constant(count, U64)
    if _is_threefry(algorithm):
        found = [words[0], p.add("add", [words[1], by])]
    else:
        found = _counted_on(p, words, by)[: len(words)]
    joined, t = _joined(p, found), state.shape.element_type
    if t is U64:
        return joined
    return p.reshape(p.add("bitcast-convert", [joined], row_major(t, len(words), 64 // t.bits)), state.shape.dims)


def _joined(p: Partitioner, words: list[Instruction]) -> Instruction:
    return p.concatenate([p.reshape(w, (1,)) for w in words], 0)


# -- numbers that no program repeats ---------------------------------------------------------------------------------
@partitions("rng")
def rng(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """Every device draws all numbers, so that all states go on alike; those of the first device are everybody's."""
    wanted = p.wanted(i)
    t, dims = i.shape.element_type, i.shape.dims
    drawn = p.add("rng", [p.whole(o).value for o in operands], i.shape, distribution=i.distribution)
    axes = tuple(a for a in range(len(p.mesh.sizes)) if a not in wanted.manual)
    reducer = "or" if t is PRED else "add"
    is_first = p.compare("EQ", p.index(axes), p.constant(0, p.index(axes).shape.element_type))
    nothing = p.full(facts.identity(reducer, t), t, dims)
    value = p.add("select", [p.full(is_first, PRED, dims), drawn, nothing])
    p.decide(True, "every device draws all numbers and takes the first one's")
    return p.reshard(
        Part(p.all_reduce(value, axes, reducer), i.shape, TensorSharding.whole(len(dims), wanted.manual)), wanted
    )


@partitions("rng-get-and-update-state")
def state(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """All devices begin at the same state and go on alike."""
    return Part(
        p.add("rng-get-and-update-state", [], i.shape, delta=i.delta),
        i.shape,
        TensorSharding.whole(1, p.wanted(i).manual),
    )
