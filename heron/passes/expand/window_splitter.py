"""window-splitter: long windows become windows of windows."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt, prod

from heron.analysis.fusion.prefix_scan import scan_of
from heron.hlo.facts import combiner, is_combiner
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait, get
from heron.hlo.ir.window import Window, WindowDim
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array
from heron.passes.rewriting.expander import Expander
from heron.passes.simplify.algebraic.reduce_functions import is_neutral
from heron.records import dataclass


@register
@dataclass(frozen=True)
class WindowSplitter(Expander):
    """Combines the elements of long windows in steps: what neighbouring windows share is combined once.

    A window of w elements is one of windows of about the square root of w: 18 steps for an element, not 80. Those of an
    extremum may overlap, so that any length can be cut. Others are cut where a length has factors. A window that is
    longer than one along several dimensions is done along one after the other. Windows that hardly overlap stay.

    larger {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] maximum(a, b)
    }

    low = f32[] constant(-inf)
    ROOT r = f32[900] reduce-window(f32[900] x, low), window={size=80 pad=40_39}, to_apply=larger
    ->
    y = f32[972] reduce-window(x, low), window={size=8 pad=40_39}, to_apply=larger
    ROOT r = f32[900] reduce-window(y, low), window={size=10 rhs_dilate=8}, to_apply=larger
    """

    name = "window-splitter"
    opcodes = frozenset({"reduce-window"})
    #: elements of a window that are combined one after the other
    most: int = 16

    def matches(self, i: Instruction) -> bool:
        if prod(w.size for w in i.window) <= self.most or len(i.operands) != 2 or scan_of(i) is not None:
            return False
        opcode, element = combiner(i.to_apply), i.shape.element_type
        if opcode is None or i.operands[0].shape.element_type is not element:
            return False
        if not _may_overlap(i):
            # what is stored between the steps is rounded
            is_rounded = element.is_float and element.bits < 32
            if is_rounded or not is_combiner(get(opcode)) or not is_neutral(opcode, i.operands[1]):
                return False
        shape, work = i.operands[0].shape.dims, 0
        for window in self._steps(i.window, _may_overlap(i)):
            shape = [w.output_size(n) for w, n in zip(window, shape, strict=True)]
            work += prod(shape) * prod(w.size for w in window)
        return 2 * work < i.shape.num_elements * prod(w.size for w in i.window)

    def expand(self, i: Instruction) -> Instruction:
        assert i.parent is not None
        x, init = i.operands
        for window in self._steps(i.window, _may_overlap(i)):
            dims = [w.output_size(n) for w, n in zip(window, x.shape.dims, strict=True)]
            shape = array(i.shape.element_type, dims)
            x = i.parent.add("reduce-window", [x, init], shape, like=i, window=window, to_apply=i.to_apply)
        return x

    def _steps(self, window: Window, may_overlap: bool) -> list[Window]:
        """The windows that one after the other do what `window` does."""
        long = [d for d, w in enumerate(window) if w.size > 1]
        if prod(w.size for w in window) <= self.most:
            return [window]
        d = long[-1]
        if len(long) > 1:
            pair = _only(window, d, here=True), _only(window, d, here=False)
        else:
            cut = _cut(window[d], may_overlap)
            if cut is None:
                return [window]
            first, second = cut
            ones = (WindowDim(1),) * len(window)
            pair = (*window[:d], first, *window[d + 1 :]), (*ones[:d], second, *ones[d + 1 :])
        return [step for part in pair for step in self._steps(part, may_overlap)]


def _may_overlap(i: Instruction) -> bool:
    """Whether an element may be combined several times."""
    opcode = combiner(i.to_apply)
    return opcode is not None and Trait.IDEMPOTENT in get(opcode).traits


def _cut(w: WindowDim, may_overlap: bool) -> tuple[WindowDim, WindowDim] | None:
    """Two windows, the second over results of the first, that together are `w`; the two that are least long."""
    if w.stride > 1 or w.base_dilation > 1:
        return None
    found: list[tuple[int, int, int]] = []
    for short in range(2, 2 * isqrt(w.size) + 1):
        rest = w.size - short  # the others begin up to here, at equal distances that leave no element out
        for step in range(short, 0 if may_overlap else short - 1, -1):
            if rest % step == 0:
                found.append((short + rest // step + 1, short, step))
                break
    total, short, step = min(found, default=(w.size, 0, 0))
    if 2 * total > w.size:
        return None
    first = replace(w, size=short)
    return first, WindowDim((w.size - short) // step + 1, window_dilation=step * w.window_dilation)


def _only(window: Window, d: int, here: bool) -> Window:
    """The window along dimension `d` alone, or along all others."""
    return tuple(w if (k == d) is here else WindowDim(1) for k, w in enumerate(window))
