"""The spatial dimensions of a convolution: which output meets which input element, by which window position."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.records import dataclass
from heron.runtime.strided import Loop, Rows, Step, Walk

#: steps of one loop, and pairs of output and window position looked at in one dimension, at most
MAX_STEPS, MAX_PAIRS = 1 << 14, 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A spatial dimension: whether output position o and window position w meet at an input element, at which, and
    the strides of the three arrays in it.
    """

    aligned: np.ndarray  # bool [outputs, window]: they meet unless that is in the padding
    meets: np.ndarray  # bool [outputs, window]
    places: np.ndarray  # s64 [outputs, window]
    out: int
    lhs: int
    rhs: int

    def steps(self, outputs: np.ndarray, window: np.ndarray, counts: Iterable[int]) -> Walk:
        """A step for each meeting of an output with a window position, `counts` times."""
        places = self.places[outputs, window]
        offsets = (outputs * self.out).tolist(), (places * self.lhs).tolist(), (window * self.rhs).tolist()
        return tuple(map(Step, *offsets, counts))

    def sums(self) -> Loop | None:
        """A step for each output position, which sums over the window positions that meet it; None when they are not
        evenly spaced, or too many.
        """
        counts = self.meets.sum(axis=1)
        if len(counts) > MAX_STEPS:
            return None
        outputs, window = np.nonzero(self.meets)
        inside = outputs[1:] == outputs[:-1]
        gaps = np.diff(window)[inside], np.diff(self.places[outputs, window])[inside]
        window_gap, place_gap = (int(gap[0]) if len(gap) else 0 for gap in gaps)
        if any(np.any(gap != first) for gap, first in zip(gaps, (window_gap, place_gap), strict=True)):
            return None
        # from the low end of the left array to the high one
        first = self.meets.argmax(axis=1)
        if place_gap < 0:
            first = self.meets.shape[1] - 1 - self.meets[:, ::-1].argmax(axis=1)
            window_gap, place_gap = -window_gap, -place_gap
        found = self.steps(np.arange(len(counts)), first, counts.tolist())
        walk = tuple(s if s.count else Step(s.out, 0, 0, 0) for s in found)
        return Loop(walk, place_gap * self.lhs, window_gap * self.rhs)

    def rows(self) -> tuple[Rows, ...]:
        """The output positions as rows, by the window positions they may meet (more than one kind if the input is
        dilated); None when there are too many.
        """
        if self.aligned.all():
            return (self._kind(list(range(len(self.aligned)))),) if len(self.aligned) else ()
        kinds: dict[bytes, list[int]] = {}
        for output, aligned in enumerate(self.aligned):
            kinds.setdefault(aligned.tobytes(), []).append(output)
        return tuple(self._kind(outputs) for outputs in kinds.values())

    def along(self) -> tuple[Rows, Loop] | None:
        """The output positions as rows, and the window as one sum that all of them share; None when some position of
        the window meets no input.
        """
        outputs, window = self.meets.shape
        if outputs == 0 or window < 2 or not self.meets.all():
            return None
        gap = int(self.places[0, 1] - self.places[0, 0])
        if np.any(np.diff(self.places, axis=1) != gap):
            return None
        # from the low end of the left array to the high one
        first, turn = (0, 1) if gap >= 0 else (window - 1, -1)
        places = tuple((self.places[:, first] * self.lhs).tolist())
        rows = Rows(tuple([o * self.out for o in range(outputs)]), ((first * self.rhs, places),))
        return rows, Loop((Step(0, 0, 0, window),), abs(gap) * self.lhs, turn * self.rhs)

    def _kind(self, outputs: list[int]) -> Rows:
        window = np.flatnonzero(self.aligned[outputs[0]])
        at = np.ix_(window, np.asarray(outputs))
        lines: list[list[int | None]] = (self.places.T[at] * self.lhs).tolist()
        for w, n in zip(*(found.tolist() for found in np.nonzero(~self.meets.T[at])), strict=True):
            lines[w][n] = None
        steps = zip((window * self.rhs).tolist(), map(tuple, lines), strict=True)
        return Rows(tuple([o * self.out for o in outputs]), tuple(steps))


def axes_of(i: Instruction) -> list[Axis] | None:
    """The spatial dimensions of a convolution; None when one of them is too large to look at."""
    dims, (x, k) = i.dim_labels, (o.shape for o in i.operands)
    out_s, x_s, k_s = strides(i.shape), strides(x), strides(k)
    axes: list[Axis] = []
    spatial = dims.output_spatial, dims.input_spatial, dims.kernel_spatial
    for w, at_out, at_x, at_k in zip(i.window, *spatial, strict=True):
        outputs = i.shape.dims[at_out]
        if outputs * w.size > MAX_PAIRS:
            return None
        turned = np.arange(w.size)[:: -1 if w.reversal else 1]
        dilated = np.arange(outputs)[:, None] * w.stride + turned * w.window_dilation - w.pad_low
        places, off = np.divmod(dilated, w.base_dilation)
        meets = (off == 0) & (places >= 0) & (places < x.dims[at_x])
        axes.append(Axis(off == 0, meets, places, out_s[at_out], x_s[at_x], k_s[at_k]))
    return axes


def strides(s: Shape) -> list[int]:
    """Elements between neighbours in each dimension, row-major."""
    found, step = [0] * s.rank, 1
    for d in reversed(range(s.rank)):
        found[d] = step
        step *= s.dims[d]
    return found
