"""collective-permute between slices of buffers: what is sent is part of an input, and lands in part of an output.

A device's n-th pair as source sends its n-th slice of each input, from its own offsets; its n-th pair as target lands
at its own n-th offsets in each output. XLA leaves this form to its backends (neither its CPU nor its GPU has it): this
is what ``dynamic-update-slice(output, collective-permute(dynamic-slice(input)))`` gives on each device.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.errors import HeronError

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation, Members
    from heron.hlo.ir.instruction import Instruction

Offsets = list[tuple[int, ...]]


def permute(
    ev: Evaluation,
    i: Instruction,
    members: Members,
    pairs: list[tuple[int, int]],
    operands: tuple[Any, ...],
) -> Any:
    """The outputs after the exchange. ``pairs``: (source, target) devices. Raises EVAL004, EVAL008."""
    inputs, outputs = _buffers(operands[0]), _buffers(operands[1])
    sent_from, lands_at = (_offsets(operands[n], isinstance(operands[0], tuple)) for n in (2, 3))
    sizes = _sizes(i, sent_from)
    parts = [
        [_part(x, at, s) for at, s in zip(*ns, strict=True)] for x, *ns in zip(inputs, sent_from, sizes, strict=True)
    ]
    brought = ev.exchange(i, members, parts, list)
    results = [x.copy() for x in outputs]
    as_source, as_target = Counter[int](), Counter[int]()
    for source, target in pairs:
        n, m = as_source[source], as_target[target]
        as_source[source] += 1
        as_target[target] += 1
        if target != ev.device.number:
            continue
        for result, slices, places in zip(results, brought[members.index(source)], lands_at, strict=True):
            if n >= len(slices) or m >= len(places):
                what = f"'{i.opcode}' has {len(slices)} slices"
                raise HeronError("EVAL004", what, why=f"device {source} sends its slice {n} to {target}")
            _part(result, places[m], slices[n].shape)[...] = slices[n]
    return tuple(results) if isinstance(operands[1], tuple) else results[0]


def _buffers(value: Any) -> tuple[np.ndarray, ...]:
    return value if isinstance(value, tuple) else (value,)


def _offsets(value: Any, is_tuple: bool) -> list[Offsets]:
    """For each buffer, the offsets of each slice."""
    found: list[Offsets] = []
    for at in value if is_tuple else (value,):
        several = at if at and isinstance(at[0], tuple) else (at,)
        found.append([tuple(int(n) for n in one) for one in several])
    return found


def _sizes(i: Instruction, offsets: list[Offsets]) -> list[list[tuple[int, ...]]]:
    """For each buffer, the sizes of each slice."""
    count = sum(map(len, offsets))
    slice_sizes: Any = i.attrs.get("slice_sizes")  # lists, unlike those of gather
    if len(slice_sizes) != count:
        raise HeronError("EVAL004", f"'{i.opcode}' has {len(slice_sizes)} slice_sizes for {count} offsets")
    supply = iter(slice_sizes)
    return [[tuple(next(supply)) for _ in several] for several in offsets]


def _part(x: np.ndarray, at: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    """A slice, moved inside as dynamic-slice does. Raises EVAL008 when there is no room for it."""
    if len(sizes) != x.ndim or any(size > have for size, have in zip(sizes, x.shape, strict=True)):
        raise HeronError("EVAL008", f"slice_sizes {list(sizes)} do not fit a buffer of {list(x.shape)}")
    starts = [min(max(n, 0), have - size) for n, have, size in zip(at, x.shape, sizes, strict=True)]
    return x[tuple(slice(n, n + size) for n, size in zip(starts, sizes, strict=True))]
