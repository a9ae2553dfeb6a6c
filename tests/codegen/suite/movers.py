"""Ops that are not elementwise, in front of every hero: each as a text that makes a value of the hero's input shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from heron.codegen.elemental import supported
from heron.errors import HeronError
from heron.hlo.ir import types
from heron.hlo.ir.types import ElementType
from tests.codegen.suite.heroes import Hero, combiner, lowest
from tests.codegen.suite.ops import Op, shape_text
from tests.codegen.suite.program import Dims, Program
from tests.codegen.suite.run import TARGETS, Outcome, execute
from tests.codegen.suite.values import tame

#: writes the op; the name of a value of that type and these two dimensions
Make = Callable[[Program, ElementType, Dims], str]


@dataclass(frozen=True)
class Mover:
    """``make`` raises HeronError for a type that has no such op; ``adds``: its complex sums are rounded."""

    name: str
    make: Make


def _data(p: Program, t: ElementType, dims: Dims, seed: int = 0) -> str:
    return p.parameter(t, dims, tame(t, int(np.prod(dims)), seed))


def _starts(p: Program, *values: int, t: ElementType = types.S32) -> list[str]:
    return [p.parameter(t, (), np.array([v], t.dtype)) for v in values]


def _iota(p: Program, t: ElementType, dims: Dims) -> str:
    return p.line(t, dims, "iota(), iota_dimension=1")


def _constant(p: Program, t: ElementType, dims: Dims) -> str:
    def word(v: object) -> str:
        if t.is_complex:
            return f"({v.real:.17g}, {v.imag:.17g})"  # type: ignore[attr-defined]
        return f"{float(v):.17g}" if t.is_float else str(bool(v)).lower() if t is types.PRED else str(int(v))  # type: ignore

    values = ", ".join(word(v) for v in tame(t, dims[1], 3))
    line = p.line(t, (dims[1],), f"constant({{{values}}})")
    return p.line(t, dims, f"broadcast({line}), dimensions={{1}}")


def _broadcast(p: Program, t: ElementType, dims: Dims) -> str:
    return p.line(t, dims, f"broadcast({_data(p, t, dims[:1])}), dimensions={{0}}")


def _reshape(p: Program, t: ElementType, dims: Dims) -> str:
    return p.line(t, dims, f"reshape({_data(p, t, (dims[1], dims[0]))})")


def _transpose(p: Program, t: ElementType, dims: Dims) -> str:
    return p.line(t, dims, f"transpose({_data(p, t, dims[::-1])}), dimensions={{1,0}}")


def _slice(p: Program, t: ElementType, dims: Dims) -> str:
    source = _data(p, t, (dims[0] + 3, 2 * dims[1] + 1))
    return p.line(t, dims, f"slice({source}), slice={{[2:{dims[0] + 2}:1], [1:{2 * dims[1] + 1}:2]}}")


def _reverse(p: Program, t: ElementType, dims: Dims) -> str:
    return p.line(t, dims, f"reverse({_data(p, t, dims)}), dimensions={{0,1}}")


def _pad(p: Program, t: ElementType, dims: Dims) -> str:
    source, value = _data(p, t, (dims[0] - 1, dims[1] // 2)), _data(p, t, (), 4)
    high = dims[1] - 1 - (2 * (dims[1] // 2) - 1)
    return p.line(t, dims, f"pad({source}, {value}), padding=2_-1x1_{high}_1")


def _concatenate(p: Program, t: ElementType, dims: Dims) -> str:
    parts = [_data(p, t, (dims[0], n), n) for n in (1, 2, dims[1] - 3)]
    return p.line(t, dims, f"concatenate({', '.join(parts)}), dimensions={{1}}")


def _dynamic_slice(p: Program, t: ElementType, dims: Dims) -> str:
    starts = ", ".join(_starts(p, 100, -3))
    sizes = ",".join(map(str, dims))
    source = _data(p, t, (dims[0] + 2, dims[1] + 3))
    return p.line(t, dims, f"dynamic-slice({source}, {starts}), dynamic_slice_sizes={{{sizes}}}")


def _dynamic_update(p: Program, t: ElementType, dims: Dims) -> str:
    starts = ", ".join(_starts(p, 1, 100, t=types.U8))
    update = p.line(t, (2, 3), f"copy({_data(p, t, (2, 3), 5)})")
    return p.line(t, dims, f"dynamic-update-slice({_data(p, t, dims)}, {update}, {starts})")


def _gather(p: Program, t: ElementType, dims: Dims) -> str:
    indices = p.parameter(types.S64, (dims[0], 1), np.array([3, -1, 1, 99, 0, 2], np.int64))
    source = _data(p, t, (5, dims[1]))
    where = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1"
    return p.line(t, dims, f"gather({source}, {indices}), {where}, slice_sizes={{1,{dims[1]}}}")


def _gather_batch(p: Program, t: ElementType, dims: Dims) -> str:
    indices = p.parameter(types.U32, (*dims, 1), np.array([3, 0, 1, 99, 2], np.uint32))
    source = _data(p, t, (dims[0], 4))
    where = (
        "offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, "
        "start_indices_batching_dims={0}, index_vector_dim=2"
    )
    return p.line(t, dims, f"gather({source}, {indices}), {where}, slice_sizes={{1,1}}")


def _small_reduce(p: Program, t: ElementType, dims: Dims) -> str:
    to_apply = p.computation("combine", t, combiner(t))
    init = p.parameter(t, (), lowest(t))
    return p.line(t, dims, f"reduce({_data(p, t, (*dims, 3))}, {init}), dimensions={{2}}, to_apply={to_apply}")


def _argmax(p: Program, t: ElementType, dims: Dims) -> str:
    """A reduce of pairs: the value with the largest key."""
    keys = p.parameter(types.S32, (*dims, 3), np.random.default_rng(1).permutation(int(np.prod(dims)) * 3))
    values, low = _data(p, t, (*dims, 3)), p.parameter(types.S32, (), np.array([-1]))
    init = p.parameter(t, (), lowest(t))
    pair = f"({shape_text(types.S32, dims)}, {shape_text(t, dims)})"
    both = p.raw(f"{pair} reduce({keys}, {values}, {low}, {init}), dimensions={{2}}, to_apply={p.later(t)}")
    return p.line(t, dims, f"get-tuple-element({both}), index=1")


def _window(p: Program, t: ElementType, dims: Dims) -> str:
    to_apply = p.computation("combine", t, combiner(t))
    init = p.parameter(t, (), lowest(t))
    window = "window={size=2x3 pad=1_0x1_1 rhs_dilate=1x1}"
    return p.line(t, dims, f"reduce-window({_data(p, t, dims)}, {init}), {window}, to_apply={to_apply}")


def _select_and_scatter(p: Program, t: ElementType, dims: Dims) -> str:
    if t.is_complex:
        raise HeronError("HLO000", "complex numbers have no order")
    select = p.computation("chosen", t, "GE") if t is not types.PRED else p.computation("chosen", t, "EQ")
    scatter = p.computation("combine", t, combiner(t))
    source, init = _data(p, t, (dims[0] // 2, dims[1] - 1), 6), p.parameter(t, (), lowest(t))
    window = f"window={{size=2x2 stride=2x1 pad=0_{0}x0_0}}"
    return p.line(
        t,
        dims,
        f"select-and-scatter({_data(p, t, dims)}, {source}, {init}), {window}, select={select}, scatter={scatter}",
    )


def _dot(p: Program, t: ElementType, dims: Dims) -> str:
    if t is types.PRED:
        raise HeronError("HLO000", "no products of truth values")
    left, right = (p.parameter(t, d, _whole(t, int(np.prod(d)))) for d in ((dims[0], 3), (3, dims[1])))
    return p.line(t, dims, f"dot({left}, {right}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")


def _whole(t: ElementType, count: int) -> np.ndarray:
    """Small whole numbers, whose products and sums every type has exactly."""
    low = 0 if t.is_unsigned or t.name == "f8e8m0fnu" else -1
    return np.random.default_rng(5).integers(low, 2, count).astype(np.float32).astype(t.dtype)


def _narrower(p: Program, t: ElementType, dims: Dims) -> str:
    """Bits of elements twice as wide, one after the other."""
    wide = _twice(t)
    split = p.line(t, (dims[0], dims[1] // 2, 2), f"bitcast-convert({_data(p, wide, (dims[0], dims[1] // 2))})")
    return (
        p.line(t, (dims[0], dims[1] // 2 * 2), f"reshape({split})") if dims[1] % 2 == 0 else _padded(p, t, dims, split)
    )


def _padded(p: Program, t: ElementType, dims: Dims, split: str) -> str:
    flat = p.line(t, (dims[0], dims[1] - 1), f"reshape({split})")
    return p.line(t, dims, f"concatenate({flat}, {_data(p, t, (dims[0], 1))}), dimensions={{1}}")


def _wider(p: Program, t: ElementType, dims: Dims) -> str:
    """Elements made of four narrower ones."""
    if t is types.PRED or t.is_complex or t.bits < 4:
        raise HeronError("HLO000", "no type a quarter as wide")
    narrow = types.by_name(f"u{t.bits // 4}")
    return p.line(t, dims, f"bitcast-convert({_data(p, narrow, (*dims, 4))})")


def _twice(t: ElementType) -> ElementType:
    if t is types.C64:
        return types.C128
    if t is types.C128 or t.bits == 64:
        raise HeronError("HLO000", "no wider type")
    return types.by_name(f"u{2 * t.bits}")


MOVERS: tuple[Mover, ...] = (
    Mover("iota", _iota),
    Mover("constant", _constant),
    Mover("broadcast", _broadcast),
    Mover("reshape", _reshape),
    Mover("transpose", _transpose),
    Mover("slice", _slice),
    Mover("reverse", _reverse),
    Mover("pad", _pad),
    Mover("concatenate", _concatenate),
    Mover("dynamic-slice", _dynamic_slice),
    Mover("dynamic-update-slice", _dynamic_update),
    Mover("gather", _gather),
    Mover("gather batched", _gather_batch),
    Mover("reduce small", _small_reduce),
    Mover("reduce variadic", _argmax),
    Mover("reduce-window", _window),
    Mover("select-and-scatter", _select_and_scatter),
    Mover("dot", _dot),
    Mover("bitcast-convert narrower", _narrower),
    Mover("bitcast-convert wider", _wider),
)


@cache
def _legal(mover: Mover, t: ElementType) -> str | None:
    """ "illegal" where HLO has no such op on the type, the reason where elemental emission refuses it, else None."""
    p = Program()
    try:
        p.output(_label(mover), mover.make(p, t, (6, 8)), t, (6, 8))
        root = p.root()
    except HeronError:
        return "illegal"
    for i in root.called[0].instructions:
        if i.opcode not in ("parameter", "tuple") and not (found := supported(i)):
            return found.reason
    return None


def _label(mover: Mover) -> Op:
    return Op(mover.name, "", 0)


def run_movers(
    hero: Hero, t: ElementType, movers: tuple[Mover, ...] | list[Mover] = MOVERS, every_step: bool = True
) -> list[Outcome]:
    """Each mover in front of a hero, on all targets."""
    outcomes: list[Outcome] = []
    able: list[Mover] = []
    for m in movers:
        why = _legal(m, t)
        if why is None:
            able.append(m)
        elif why != "illegal":
            outcomes += [Outcome(m.name, hero.name, "prologue", t.name, target, "GEN001", why) for target in TARGETS]
    pack = min(hero.pack, 5)
    for start in range(0, len(able), pack):
        p = Program()
        for m in able[start : start + pack]:
            for value, dims in hero.wrap(p, m.make(p, t, hero.dims), t, hero.dims):
                p.output(_label(m), value, t, dims)
        outcomes += execute(p, hero, t, "prologue", every_step)
    return outcomes
