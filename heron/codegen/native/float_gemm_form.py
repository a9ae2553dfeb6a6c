"""The kernels for products of f32, f64, complex and bf16 matrices on this machine, for their code and its callers."""

from __future__ import annotations

from dataclasses import replace

from heron.codegen.llvm.jit import host
from heron.hlo.ir.types import BF16, F32, F64, S8, U8, ElementType
from heron.records import dataclass
from heron.runtime.cpu import matrix_unit

_BYTES = (S8, U8)
#: the feature of a processor whose matrix unit multiplies elements of a type
_UNIT = {BF16: "+amx-bf16"} | dict.fromkeys(_BYTES, "+amx-int8")

#: groups along the summed dimension that are in a panel: 64 KiB at 512 bits
GROUPS = 256

#: what a function is told of a product, in this order, as i64: sizes, distances in elements, and options
FIELDS = (
    "m", "n", "k", "lhs.row", "lhs.k", "lhs.batch", "rhs.k", "rhs.column", "rhs.batch", "out.row", "out.batch",
    "block", "add",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """The product kernel of an element type. ``lanes``: sums in a vector; a tile is ``rows`` by ``vectors``.

    ``is_unit``: the processor's matrix unit multiplies. ``is_complex``: matrices are complex, and `element` is the type
    of their parts; what is said of sizes here is said of parts.
    """

    element: ElementType
    lanes: int
    rows: int
    vectors: int
    is_unit: bool = False
    is_complex: bool = False

    @property
    def name(self) -> str:
        return self.tiles + "_unit" * self.is_unit + "_complex" * self.is_complex

    @property
    def tiles(self) -> str:
        """The beginning of the names of tiles."""
        return f"heron_gemm_{self.element.name}"

    @property
    def step(self) -> int:
        """Elements along the summed dimension in a group."""
        return max(1, 4 // self.element.byte_size)

    @property
    def columns(self) -> int:
        return self.lanes * self.vectors

    @property
    def word(self) -> str:
        """LLVM's type of a group's bits."""
        return "i64" if self.element is F64 else "i32"

    @property
    def word_bytes(self) -> int:
        return 8 if self.element is F64 else 4

    @property
    def sum(self) -> str:
        """LLVM's type of a sum."""
        if self.element in _BYTES:
            return "i32"
        return "double" if self.element is F64 else "float"

    @property
    def stored(self) -> str:
        """LLVM's type of an element's bits."""
        return f"i{self.element.bits}"


def form(element: ElementType) -> Form | None:
    """This machine's kernel for matrices of that type; None if it has no instruction for them."""
    if element.is_complex:
        parts = form(element.component)
        return None if parts is None else replace(parts, is_complex=True)
    features = set(host().features.split(","))
    wide = {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl"} <= features
    unit = _UNIT.get(element)
    if unit is not None and wide and {"+amx-tile", unit} <= features and matrix_unit.is_permitted():
        return Form(element, 16, 32, 4, is_unit=True)
    if element is BF16:
        return Form(element, 16, 6, 4) if wide and "+avx512bf16" in features else None
    if element not in (F32, F64) or not {"+avx2", "+fma"} <= features:
        return None
    lanes = (64 if wide else 32) // element.byte_size
    return Form(element, lanes, 6, 4 if wide else 2)
