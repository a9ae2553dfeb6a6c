"""Random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape, row_major, tuple_
from heron.hlo.ir.types import U64
from heron.hlo.meaning import bit_generators, draws
from heron.hlo.ops.rules import attr, default, given, need_arrays, need_same_type, stated

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

ALGORITHMS = ("rng_default", "rng_three_fry", "rng_philox")


@op("rng")
class Rng(Op):
    """Draws from a distribution: uniform in [a, b), or normal with mean a and standard deviation b.

    The choice of numbers is open; heron's are made of Philox's bits and the module's random state, which they advance.
    A third operand may repeat the sizes of the result; it is not read.

    Shape: as stated.
    """

    operands = ("a", "b", "size?")
    attributes = {"distribution": Attr(AttrKind.ENUM, required=True, choices=("rng_uniform", "rng_normal"))}
    traits = {Trait.SIDE_EFFECT, Trait.RANDOM}

    def shape(self, i: Instruction, a: Shape, b: Shape, size: Shape | None = None) -> Shape:
        to = given(i)
        need_arrays(i, a, b, to)
        need_same_type(i, a, b)
        need_same_type(i, a, to)
        if a.rank or b.rank:
            reject(i, "the distribution's parameters must be scalars", f"{a} and {b}")
        if attr(i, "distribution") not in ("rng_uniform", "rng_normal"):
            reject(i, f"distribution={i.distribution} is neither rng_uniform nor rng_normal")
        if i.distribution == "rng_normal" and not to.element_type.is_float:
            reject(i, "normal numbers are floats", f"the result is {to}")
        if to.element_type.is_complex:
            reject(i, "uniform numbers are floats, integers or pred", f"the result is {to}")
        return default(to)

    def evaluate(self, ev: Evaluation, i: Instruction, a: np.ndarray, b: np.ndarray, _: Any = None) -> np.ndarray:
        t, dims = i.shape.element_type, i.shape.dims
        if i.distribution == "rng_normal":
            return draws.normal(ev, t, dims, a, b)
        if t.is_integer:
            return draws.integers(ev, t, dims, int(a), int(b))
        # [a, b) of pred holds a alone
        return draws.uniform(ev, t, dims, a, b) if t.is_float else np.full(dims, a)


@op("rng-bit-generator")
class RngBitGenerator(Op):
    """Random bits from a counter-based generator: (new state, bits).

    Shape: as stated: a tuple of the state's shape and that of the bits.
    """

    operands = ("state",)
    attributes = {"algorithm": Attr(AttrKind.ENUM, required=True, choices=ALGORITHMS)}

    def shape(self, i: Instruction, state: Shape) -> Shape:
        need_arrays(i, state)
        algorithm = attr(i, "algorithm")
        if algorithm not in ALGORITHMS:
            reject(i, f"algorithm={algorithm} is none of {', '.join(ALGORITHMS)}")
        words = {"rng_three_fry": (2,), "rng_philox": (2, 3)}.get(algorithm, (2, 3))
        count = state.num_elements * state.element_type.bits // 64
        if state.rank != 1 or not state.element_type.is_unsigned or count not in words:
            reject(i, f"the state must be a vector of {' or '.join(map(str, words))} x 64 bits", f"it is {state}")
        parts = given(i).tuple_shapes
        if parts is None or len(parts) != 2 or parts[0].bare is not state.bare or not parts[1].is_array:
            reject(i, "the result must be (state, bits)", f"it is {i.shape} for the state {state}")
        bits = parts[1].element_type
        if not (bits.is_integer or bits.is_float):
            reject(i, "the bits must be numbers of an integer or float type", f"they are {parts[1]}")
        return tuple_([default(p) for p in parts])

    def evaluate(self, ev: Evaluation, i: Instruction, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return bit_generators.generate(i.algorithm, state, i.shape.at((1,)))


@op("rng-get-and-update-state")
class RngGetAndUpdateState(Op):
    """The module's 128-bit random state, its low word first, which then advances by `delta`.

    Shape: u64[2].
    """

    attributes = {"delta": Attr(AttrKind.INT, required=True)}
    traits = {Trait.SIDE_EFFECT, Trait.RANDOM}

    def shape(self, i: Instruction) -> Shape:
        attr(i, "delta")
        want = row_major(U64, 2)
        if stated(i) is not None and i.shape.bare is not want.bare:
            reject(i, "the result must be u64[2]", f"it is {i.shape}")
        return want

    def evaluate(self, ev: Evaluation, i: Instruction) -> np.ndarray:
        return np.array(draws.advanced(ev, i.delta), np.uint64)
