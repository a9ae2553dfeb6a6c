"""The attribute values with a little language of their own: slices, padding, windows, dimension labels, aliases."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from heron.hlo.ir.window import ConvDims, Window, WindowDim
from heron.hlo.text.cursor import Cursor

Padding = tuple[tuple[int, int, int], ...]
#: output index, operand or parameter number, its index, and in the module's header the kind of alias
Alias = tuple[tuple[int, ...], int, tuple[int, ...]]

_PAD = re.compile(r"-?\d{1,18}_-?\d{1,18}(_-?\d{1,18})?(x-?\d{1,18}_-?\d{1,18}(_-?\d{1,18})?)*")
_SIZES = re.compile(r"\d{1,18}(x\d{1,18})*")
_LABELS = re.compile(r"([0-9bf?]+)_([0-9io?]+)->([0-9bf?]+)")


# -- slices ----------------------------------------------------------------------------------------------------------
def read_slice(p: Cursor) -> tuple[int, int, int]:
    """``[start:limit]`` or ``[start:limit:stride]``."""
    p.expect("[")
    start = p.integer()
    p.expect(":")
    limit = p.integer()
    stride = p.integer() if p.accept(":") else 1
    p.expect("]")
    return start, limit, stride


def print_slices(slices: Sequence[tuple[int, int, int]]) -> str:
    """All of them with a stride when any has one other than 1."""
    if all(stride == 1 for _, _, stride in slices):
        return "{" + ", ".join(f"[{start}:{limit}]" for start, limit, _ in slices) + "}"
    return "{" + ", ".join(f"[{start}:{limit}:{stride}]" for start, limit, stride in slices) + "}"


# -- padding ---------------------------------------------------------------------------------------------------------
def read_padding(p: Cursor) -> Padding:
    """``low_high`` or ``low_high_interior`` per dimension, joined by ``x``; nothing at all for a scalar."""
    token = p.tokens[p.n]
    if not _PAD.fullmatch(token):
        if token in (",", "}") or p.source.new_line_before(p.n):
            return ()
        p.unexpected("padding", hint="it looks like 0_1x2_3 or 0_1_0x2_3_1: low_high_interior per dimension")
    p.n += 1
    found: list[tuple[int, int, int]] = []
    for part in token.split("x"):
        numbers = [int(n) for n in part.split("_")]
        found.append((numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 0))
    return tuple(found)


def print_padding(padding: Padding) -> str:
    """Interior padding shows in all dimensions when any has some."""
    if any(interior for _, _, interior in padding):
        return "x".join(f"{low}_{high}_{interior}" for low, high, interior in padding)
    return "x".join(f"{low}_{high}" for low, high, _ in padding)


# -- windows ---------------------------------------------------------------------------------------------------------
_WINDOW_FIELDS = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")


def read_window(p: Cursor) -> Window:
    """``{size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}``, most fields optional."""
    if p.tokens[p.n] == "{}":
        p.n += 1
        return ()
    first = p.n
    p.expect("{")
    fields: dict[str, list[int]] = {}
    pads: Padding | None = None
    while not p.accept("}"):
        name = p.word("a window field")
        if name not in _WINDOW_FIELDS or name in fields:
            p.fail("TXT004", f"no window field '{name[:40]}' is expected here", p.n - 1, why=", ".join(_WINDOW_FIELDS))
        p.expect("=")
        if name == "pad":
            pads = read_padding(p)
            if p.tokens[p.n - 1].count("_") != len(pads):
                p.fail("TXT004", "a window has no interior padding", p.n - 1, hint="write pad=0_1x2_3: low_high each")
        else:
            fields[name] = _read_sizes(p)
    rank = len(fields.get("size", ()))
    if any(len(v) != rank for v in fields.values()) or (pads is not None and len(pads) != rank):
        p.fail("TXT004", "the fields of this window differ in rank", first, why=f"size has {rank} dimensions")
    ones, zeros = [1] * rank, [0] * rank
    return tuple(
        WindowDim(size, stride, pad[0], pad[1], base, dilation, bool(reverse))
        for size, stride, pad, base, dilation, reverse in zip(
            fields.get("size", ()),
            fields.get("stride", ones),
            pads or ((0, 0, 0),) * rank,
            fields.get("lhs_dilate", ones),
            fields.get("rhs_dilate", ones),
            fields.get("rhs_reversal", zeros),
            strict=True,
        )
    )


def _read_sizes(p: Cursor) -> list[int]:
    token = p.tokens[p.n]
    if not _SIZES.fullmatch(token):
        p.unexpected("sizes such as 3x3")
    p.n += 1
    return [int(n) for n in token.split("x")]


def print_window(window: Window) -> str:
    """Fields that are not as by default in every dimension."""

    def sizes(get: Callable[[WindowDim], int]) -> str:
        return "x".join(str(get(d)) for d in window)

    if not window:
        return "{}"
    text = "size=" + sizes(lambda d: d.size)
    if any(d.stride != 1 for d in window):
        text += " stride=" + sizes(lambda d: d.stride)
    if any(d.pad_low or d.pad_high for d in window):
        text += " pad=" + "x".join(f"{d.pad_low}_{d.pad_high}" for d in window)
    if any(d.base_dilation != 1 for d in window):
        text += " lhs_dilate=" + sizes(lambda d: d.base_dilation)
    if any(d.window_dilation != 1 for d in window):
        text += " rhs_dilate=" + sizes(lambda d: d.window_dilation)
    if any(d.reversal for d in window):
        text += " rhs_reversal=" + sizes(lambda d: int(d.reversal))
    return "{" + text + "}"


# -- convolution dimensions ------------------------------------------------------------------------------------------
def read_dim_labels(p: Cursor) -> ConvDims:
    """``b01f_01io->b01f``: batch, feature and spatial dimensions of input, kernel and output, ? for others."""
    token = p.tokens[p.n]
    match = _LABELS.fullmatch(token)
    if match is None:
        p.unexpected("dimension labels", hint="they look like b01f_01io->b01f")
    lhs, kernel, out = match.groups()
    spatial = [str(n) for n in range(len(lhs.replace("?", "")) - 2)]
    for labels, letters in ((lhs, "bf"), (kernel, "io"), (out, "bf")):
        if sorted(labels.replace("?", "")) != sorted([*spatial, *letters]):
            p.fail("TXT004", f"'{labels[:40]}' must name each of {letters} and 0 to {len(spatial) - 1} once")
    p.n += 1
    return ConvDims(
        input_batch=lhs.index("b"),
        input_feature=lhs.index("f"),
        input_spatial=tuple(lhs.index(s) for s in spatial),
        kernel_input=kernel.index("i"),
        kernel_output=kernel.index("o"),
        kernel_spatial=tuple(kernel.index(s) for s in spatial),
        output_batch=out.index("b"),
        output_feature=out.index("f"),
        output_spatial=tuple(out.index(s) for s in spatial),
    )


def print_dim_labels(dims: ConvDims) -> str:
    """Back to ``b01f_01io->b01f``."""
    lhs = _labels({dims.input_batch: "b", dims.input_feature: "f"}, dims.input_spatial)
    kernel = _labels({dims.kernel_input: "i", dims.kernel_output: "o"}, dims.kernel_spatial)
    out = _labels({dims.output_batch: "b", dims.output_feature: "f"}, dims.output_spatial)
    return f"{lhs}_{kernel}->{out}"


def _labels(letters: dict[int, str], spatial: tuple[int, ...]) -> str:
    named = {**letters, **{dim: str(n) for n, dim in enumerate(spatial)}}
    return "".join(named.get(n, "?") for n in range(max(named) + 1))  # ? for dimensions the op does not know


# -- pairs and aliases -----------------------------------------------------------------------------------------------
def read_pair(p: Cursor) -> tuple[int, int]:
    """``{0,1}``."""
    found = p.ints()
    if len(found) != 2:
        p.fail("TXT002", f"expected two integers, found {len(found)}", p.n - 1)
    return found[0], found[1]


def read_alias(p: Cursor) -> Alias:
    """``{output index}: (number, {index})``."""
    output = p.ints()
    p.expect(":")
    p.expect("(")
    number = p.integer()
    index = p.ints() if p.accept(",") else ()
    p.expect(")")
    return output, number, index


def print_alias(alias: Alias) -> str:
    """Back to ``{output index}: (number, {index})``."""
    output, number, index = alias
    return f"{print_index(output)}: ({number}, {print_index(index)})"


def print_index(index: tuple[int, ...]) -> str:
    """A shape index."""
    return "{" + ",".join(map(str, index)) + "}"
