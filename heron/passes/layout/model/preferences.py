"""Layout preferences of targets, one value each: ops that work in any order, library calls that accept any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.hlo.facts import having
from heron.hlo.ir.op import Trait
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.targets import Target


@dataclass(frozen=True, slots=True)
class Preferences:
    """Ops in no list take and give row-major arrays, but for those with rules of their own (`relations`).

    ``one_order``: done in any order of dimensions, one for operands and result. ``any_order``: library calls that read
    their operands in any order, and give row-major results. ``turned_products``: whether a product may give its
    matrices transposed. ``line``: bytes that memory gives at a time.
    """

    one_order: frozenset[str]
    any_order: frozenset[str]
    turned_products: bool
    line: int


_PLAIN = having(Trait.ANY_ORDER)
#: the code of transforms wants row-major lines; LAPACK's wrappers copy each matrix anyway; BLAS swaps its operands
CPU = Preferences(_PLAIN, frozenset({"custom-call"}), turned_products=True, line=64)
#: cuFFT has strides between elements and between lines; cuSOLVER's matrices are copied; cuBLAS swaps its operands
GPU = Preferences(_PLAIN | {"fft"}, frozenset({"custom-call"}), turned_products=True, line=32)


def preferences(target: Target | None) -> Preferences:
    """The preferences of a target; the CPU's by default."""
    return GPU if target is not None and target.is_gpu else CPU
