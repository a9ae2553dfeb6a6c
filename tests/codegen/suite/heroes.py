"""The heroes: what stands after an op (prologue) or before it (epilogue), and the sizes that make it that hero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from heron.hlo.ir.types import S32, ElementType
from tests.codegen.suite.program import Dims, Program
from tests.codegen.suite.values import tame

#: writes what makes `name` (a value of that type and these dims) the hero's input; returns results
Wrap = Callable[[Program, str, ElementType, Dims], "list[tuple[str, Dims]]"]


@dataclass(frozen=True)
class Hero:
    """``dims``: of the hero's input; ``pack``: outputs that share a kernel; ``after``: whether ops may follow it;
    ``adds``: whether complex values are summed.

    ``emitters``: those that may be chosen for such a fusion on GPU and CPU.
    """

    name: str
    dims: Dims
    wrap: Wrap
    emitters: frozenset[str]
    pack: int = 12
    after: bool = True
    adds: bool = False


def lowest(t: ElementType) -> np.ndarray:
    """The least value of a type; 0 where the hero adds."""
    if not t.is_float:
        return np.zeros(1, t.dtype)
    return np.array([float(ml_dtypes.finfo(t.dtype).min)]).astype(t.dtype)


def combiner(t: ElementType) -> str:
    """An associative op whose result shows every element: sums of integers wrap, those of floats would round."""
    return "xor" if t.kind == "pred" else "maximum" if t.is_float else "add"


def _loop(p: Program, name: str, t: ElementType, dims: Dims) -> list[tuple[str, Dims]]:
    return [(name, dims)]


def _reduce(d: int) -> Wrap:
    def wrap(p: Program, name: str, t: ElementType, dims: Dims) -> list[tuple[str, Dims]]:
        init = p.parameter(t, (), lowest(t))
        to_apply = p.computation("combine", t, combiner(t))
        left = dims[:d] + dims[d + 1 :]
        return [(p.line(t, left, f"reduce({name}, {init}), dimensions={{{d}}}, to_apply={to_apply}"), left)]

    return wrap


def _rows(p: Program, name: str, t: ElementType, dims: Dims) -> list[tuple[str, Dims]]:
    """Each element with the combination of its row."""
    ((whole, left),) = _reduce(1)(p, name, t, dims)
    spread = p.line(t, dims, f"broadcast({whole}), dimensions={{{','.join(map(str, range(len(left))))}}}")
    return [(p.line(t, dims, f"{combiner(t)}({name}, {spread})"), dims)]


def _transpose(p: Program, name: str, t: ElementType, dims: Dims) -> list[tuple[str, Dims]]:
    turned = dims[::-1]
    return [(p.line(t, turned, f"transpose({name}), dimensions={{1,0}}"), turned)]


def _concatenate(p: Program, name: str, t: ElementType, dims: Dims) -> list[tuple[str, Dims]]:
    other = p.parameter(t, (3, dims[1]), tame(t, 3 * dims[1], 9))
    joined = (dims[0] + 3, dims[1])
    return [(p.line(t, joined, f"concatenate({name}, {other}), dimensions={{0}}"), joined)]


def _slices(p: Program, name: str, t: ElementType, dims: Dims) -> list[tuple[str, Dims]]:
    rows, columns = dims
    cut = 3
    first = p.line(t, (cut, columns), f"slice({name}), slice={{[0:{cut}], [0:{columns}]}}")
    second = p.line(t, (rows - cut, columns - 2), f"slice({name}), slice={{[{cut}:{rows}], [1:{columns - 1}]}}")
    return [(first, (cut, columns)), (second, (rows - cut, columns - 2))]


def _update(p: Program, name: str, t: ElementType, dims: Dims) -> list[tuple[str, Dims]]:
    whole = (dims[0] + 4, dims[1] + 5)
    target = p.parameter(t, whole, lowest(t))
    starts = [p.parameter(S32, (), np.array([v], np.int32)) for v in (2, 9)]
    return [(p.line(t, whole, f"dynamic-update-slice({target}, {name}, {', '.join(starts)})"), whole)]


def _scatter(p: Program, name: str, t: ElementType, dims: Dims) -> list[tuple[str, Dims]]:
    whole = (dims[0] + 4, dims[1])
    target = p.parameter(t, whole, lowest(t))
    indices = p.parameter(S32, (dims[0], 1), np.array([11, 3, 5, 0, 1, 40, 8, 7], np.int32))
    where = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
    to_apply = p.computation("combine", t, combiner(t))
    expression = f"scatter({target}, {indices}, {name}), {where}, to_apply={to_apply}"
    return [(p.line(t, whole, expression), whole)]


def _scan(p: Program, name: str, t: ElementType, dims: Dims) -> list[tuple[str, Dims]]:
    init = p.parameter(t, (), lowest(t))
    window = f"window={{size=1x{dims[1]} pad=0_0x{dims[1] - 1}_0}}"
    to_apply = p.computation("combine", t, combiner(t))
    return [(p.line(t, dims, f"reduce-window({name}, {init}), {window}, to_apply={to_apply}"), dims)]


def _names(*names: str) -> frozenset[str]:
    return frozenset(names)


HEROES: tuple[Hero, ...] = (
    Hero("loop", (30, 32), _loop, _names("loop"), after=False),
    Hero("row reduction", (4, 96), _reduce(1), _names("reduce"), pack=8, adds=True),
    Hero("column reduction", (96, 5), _reduce(0), _names("reduce"), pack=8, adds=True),
    Hero("rows", (4, 96), _rows, _names("rows"), pack=6, adds=True),
    Hero("transpose", (48, 48), _transpose, _names("transpose"), pack=6),
    Hero("concatenate", (8, 40), _concatenate, _names("loop", "concatenate")),
    Hero("input slices", (8, 40), _slices, _names("loop", "slices", "input-slices")),
    Hero("update in place", (4, 12), _update, _names("dus"), after=False),
    Hero("scatter", (8, 12), _scatter, _names("scatter"), pack=1, after=False, adds=True),
    Hero("scan", (3, 70), _scan, _names("scan", "loop"), pack=1, adds=True),
)

PLACES = tuple((hero, after) for hero in HEROES for after in ((False, True) if hero.after else (False,)))
