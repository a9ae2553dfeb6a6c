"""Make dimensions smaller, everywhere at once: all sizes that are multiples of one size shrink in proportion.

Sizes of one program belong together: 768 is 12 heads of 64, and a product of both is a reshape. Divided by the same
number they still are. Shapes that an op's rule infers are inferred again; a program that then does not fit is no
candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heron.hlo.ir import shape as shapes
from heron.hlo.ir.attributes import AttrKind
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.window import WindowDim
from heron.reduce.draft import Draft
from heron.reduce.edits.kind import Kind

Resize = Callable[[int], int]


def _atoms(module: Module) -> list[str]:
    sizes = {d for i in module.instructions() for _, s in i.shape.leaves() for d in s.dims}
    return [f"{d}/{new}" for d in sorted(sizes, reverse=True) for new in sorted({1, 2, (d + 1) // 2}) if new < d]


def _shrink(draft: Draft, atoms: Sequence[str]) -> bool:
    old, new = map(int, atoms[0].split("/"))

    def resize(d: int) -> int:
        return d // old * new if d % old == 0 else d

    for p, arrays in draft.inputs.items():
        leaves = [s for _, s in _resized(p.shape, resize).leaves() if s.is_array]
        draft.inputs[p] = [_part(x, s.dims) for x, s in zip(arrays, leaves, strict=True)]
    for c in draft.module.post_order():
        for i in c.post_order():
            _change(i, resize)
    return True


def _change(i: Instruction, resize: Resize) -> None:
    i.attrs = {name: _attribute(i, name, value, resize) for name, value in i.attrs.items()}
    stated = _resized(i.shape, resize)
    i.shape = stated  # which ops whose shape is part of the program check and give back
    found = i.op.shape(i, *[o.shape for o in i.operands])
    i.shape = stated if found.bare is stated.bare else found
    i.mark_changed()


def _attribute(i: Instruction, name: str, value: Any, resize: Resize) -> Any:
    declared = i.op.attributes.get(name)
    if value is None or declared is None:
        return value
    if declared.kind is AttrKind.INTS and name.endswith("sizes"):
        return tuple(map(resize, value))
    if declared.kind is AttrKind.SLICES:
        return tuple((resize(a), resize(b), step) for a, b, step in value)
    if declared.kind is AttrKind.WINDOW:
        return tuple(_window(w, resize) for w in value)
    if declared.kind is AttrKind.LITERAL and not value.shape.is_tuple:
        smaller = _resized(value.shape, resize)
        return Literal(smaller, _part(value.array, smaller.dims))
    return value


def _window(w: WindowDim, resize: Resize) -> WindowDim:
    """A window over a whole dimension stays one, with the padding of a running sum."""
    size = resize(w.size)
    low, high = (size - 1 if pad == w.size - 1 else pad for pad in (w.pad_low, w.pad_high))
    return replace(w, size=size, pad_low=low, pad_high=high)


def _resized(s: Shape, resize: Resize) -> Shape:
    if s.is_tuple:
        return shapes.tuple_([_resized(part, resize) for part in s.tuple_shapes or ()])
    return shapes.array(s.element_type, tuple(map(resize, s.dims)), s.layout, s.dynamic) if s.is_array else s


def _part(array: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    return np.ascontiguousarray(array[tuple(map(slice, dims))]).reshape(dims)


SHAPES = Kind("shapes", _atoms, _shrink, together=1)
