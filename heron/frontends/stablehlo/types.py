"""MLIR types as HLO shapes."""

from __future__ import annotations

import re

from heron.errors import HeronError
from heron.frontends.stablehlo import quantization as quantized
from heron.frontends.stablehlo.quantization import shaped
from heron.hlo.ir import layout as layouts
from heron.hlo.ir import shape as shapes
from heron.hlo.ir import types
from heron.hlo.ir.shape import UNBOUNDED, Shape
from heron.hlo.ir.types import ElementType

_ELEMENT: dict[str, ElementType] = {
    "i1": types.PRED,
    **{f"i{n}": types.by_name(f"s{n}") for n in (2, 4, 8, 16, 32, 64)},
    **{f"ui{n}": types.by_name(f"u{n}") for n in (2, 4, 8, 16, 32, 64)},
    **{t.name.replace("e", "E").replace("m", "M"): t for t in types.ALL if re.match(r"f\d+e", t.name)},
    **{name: types.by_name(name) for name in ("f16", "bf16", "f32", "f64")},
    "complex<f32>": types.C64,
    "complex<f64>": types.C128,
    "index": types.S64,
}
for _name in list(_ELEMENT):  # FN, FNUZ, B11FNUZ and FNU are capital letters in MLIR
    if (_suffix := re.fullmatch(r"(f\d+E\d+M\d+)(\w+)", _name)) is not None:
        _ELEMENT[_suffix[1] + _suffix[2].upper()] = _ELEMENT.pop(_name)

_TENSOR = re.compile(
    r"tensor<((?:(?:\d{1,19}|\?)x)*)(!quant\.\w*<(?:[^<>]|<[^<>]*>)*>|[^,\s]+)(?:\s*,\s*(.*))?>", re.DOTALL
)
_BOUNDS = re.compile(r"#(?:stablehlo|mhlo)\.(?:bounds|type_extensions)<(?:bounds\s*=\s*\[)?([\d,\s?]*)\]?>")


def element_type(name: str) -> ElementType:
    """The element type of an MLIR name. Raises SHLO005 for types HLO lacks."""
    found = _ELEMENT.get(name)
    if found is None:
        hint = "one of " + ", ".join(_ELEMENT)
        raise HeronError("SHLO005", f"the element type '{name[:40]}' is not supported", hint=hint)
    return found


def tensor(text: str) -> Shape:
    """The shape of ``tensor<2x?xf32, #stablehlo.bounds<?, 8>>``, with the default layout.

    A size that is neither known nor bounded is `UNBOUNDED`; the importer finds it from those of the arguments.
    Raises SHLO001 (no tensor type), SHLO005 (element type), SHLO011 (a size beyond 63 bits).
    """
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise HeronError(
            "SHLO001", f"'{text[:60]}' is not a tensor type", hint="a tensor type looks like tensor<2x3xf32>"
        )
    sizes, name, encoding = match.groups()
    if name[0] == "*":
        raise HeronError("SHLO005", f"{text[:60]} has no rank", hint="the number of dimensions must be known")
    words = sizes.split("x")[:-1]
    bounds = _bounds(encoding or "", len(words)) if "?" in words else []
    dims = tuple([bounds[n] if word == "?" else int(word) for n, word in enumerate(words)])
    if any(d >= 2**62 for d in dims):
        raise HeronError("SHLO011", "a dimension does not fit in 63 bits")
    dynamic = tuple([word == "?" for word in words])
    if name.startswith("!quant."):
        return shaped(quantized.parse(name), dims, layouts.default(len(dims)), dynamic)
    if not bounds:
        return shapes.row_major(element_type(name), *dims)
    return shapes.array(element_type(name), dims, layouts.default(len(dims)), dynamic)


def _bounds(encoding: str, rank: int) -> list[int]:
    """The bound of each dimension, `UNBOUNDED` where there is none."""
    match = _BOUNDS.fullmatch(encoding.strip())
    words = match[1].replace(" ", "").split(",") if match else []
    found = [int(w) if w.isdigit() and len(w) < 19 else UNBOUNDED for w in words]
    return found if len(found) == rank else [UNBOUNDED] * rank
