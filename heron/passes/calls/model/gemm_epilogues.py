"""Epilogues of matrix products, done inside the call: rules, tried in order until none applies.

cuBLASLt computes ``activation(alpha A B + beta C + bias)`` in f32 and rounds once. For f32 that is what the single ops
give. Narrower types are rounded after every op, and a call leaves these roundings out: such rules are `reassociating`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.calls import gemm
from heron.hlo.calls.gemm import GemmConfig
from heron.hlo.facts import is_stored, is_view
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.shape import scalar as scalar_shape
from heron.hlo.ir.shape import tuple_ as tuple_shape
from heron.hlo.ir.types import BF16, F32, F64
from heron.passes.calls.model import gemm_f8
from heron.passes.calls.model.gelu import find_gelu
from heron.passes.calls.model.gemm import PRODUCTS, WITH_EPILOGUE, call
from heron.passes.rewriting.building import convert, reshape
from heron.passes.rewriting.expander import home
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Product:
    """A call and its result as those see it that use it: reshaped or not."""

    call: Instruction
    value: Instruction
    config: GemmConfig

    @property
    def shape(self) -> Shape:
        return gemm.product(self.call)

    @property
    def is_narrow(self) -> bool:
        """Whether roundings between ops get lost inside the call."""
        return self.shape.element_type.bits < 32

    @property
    def user(self) -> Instruction | None:
        """The only one that uses the value."""
        return next(iter(self.value.users)) if len(self.value.users) == 1 and not self.value.is_root else None


@dataclass(frozen=True, slots=True)
class Fused:
    """The result of a rule on a product: a call with `operands` and `config`, which replaces `instead`.

    ``shape``: of its results, where it has two; the second stands for `second`.
    """

    instead: Instruction
    operands: list[Instruction]
    config: GemmConfig
    shape: Shape | None = None
    second: Instruction | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Why something that follows a product stays outside."""

    what: Instruction
    why: str


Rule = Callable[[Product, Callable[[str], bool]], "Fused | Refused | None"]


def product_of(made: Instruction) -> Product:
    """A call with its result as far as only one reshape after the other uses it."""
    value = made
    while len(value.users) == 1 and not value.is_root and is_view(user := next(iter(value.users))):
        value = user
    return Product(made, value, gemm.read(made))


def scale(p: Product, allows: Callable[[str], bool]) -> Fused | Refused | None:
    """``d * a`` with a number a → alpha. Exact in f32 and f64, and for a power of two in bf16."""
    u, t = p.user, p.shape.element_type
    if u is None or u.opcode != "multiply" or not t.is_float or p.config.beta or p.config.epilogue != "DEFAULT":
        return None
    other = u.operands[1] if u.operands[0] is p.value else u.operands[0]
    by = splat_value(other)
    if by is None or other is p.value or not np.isfinite(factor := float(by)) or factor == 0:
        return None
    is_power = np.frexp(factor)[0] in (0.5, -0.5)
    if t not in (F32, F64) and not (t is BF16 and is_power) and not allows("reassociating"):
        return Refused(u, f"{t} is rounded before it is scaled")
    return Fused(u, p.call.operands, dataclasses.replace(p.config, alpha=p.config.alpha * factor))


def vector_bias(p: Product, allows: Callable[[str], bool]) -> Fused | Refused | None:
    """``d + broadcast(b)`` with a number for each column → a bias vector."""
    u, shape = p.user, p.shape
    if p.call.custom_call_target == gemm.MATMUL_F8 and shape.element_type is F32:
        return None  # beside 8-bit operands biases are narrow
    if u is None or u.opcode != "add" or p.config.epilogue != "DEFAULT" or shape.element_type not in WITH_EPILOGUE:
        return None
    b = u.operands[1] if u.operands[0] is p.value else u.operands[0]
    if b is p.value or b.opcode != "broadcast" or b.operands[0].shape.rank != 1 or _columns(p) != shape.dims[-1]:
        return None
    if b.attrs.get("dimensions") != (u.shape.rank - 1,) or u.shape.dims[-1] != shape.dims[-1]:
        return None
    if p.is_narrow and not allows("reassociating"):
        return Refused(u, f"{shape.element_type} is rounded before the bias is added")
    return Fused(u, [*p.call.operands, b.operands[0]], dataclasses.replace(p.config, epilogue="BIAS"))


def matrix_bias(p: Product, allows: Callable[[str], bool]) -> Fused | Refused | None:
    """``d + c`` with an array in memory → C with beta 1."""
    u, shape = p.user, p.shape
    if u is None or u.opcode != "add" or p.config.beta or not shape.element_type.is_float:
        return None
    if p.config.epilogue not in ("DEFAULT", "BIAS"):
        return None
    c = u.operands[1] if u.operands[0] is p.value else u.operands[0]
    source = c
    while is_view(source):
        source = source.operands[0]
    if c is p.value or not is_stored(source):
        return None
    if (p.is_narrow or p.config.epilogue == "BIAS") and not allows("reassociating"):
        return Refused(u, f"{'the bias is added' if not p.is_narrow else f'{shape.element_type} is rounded'} first")
    operands = [*p.call.operands]
    operands.insert(2, reshape(c, shape.dims))
    return Fused(u, operands, dataclasses.replace(p.config, beta=1.0))


def relu(p: Product, allows: Callable[[str], bool]) -> Fused | Refused | None:
    """``max(d, 0)`` → relu. Nothing says what the library makes of NaN, so it is for finite values only."""
    u = p.user
    if u is None or u.opcode != "maximum" or p.config.epilogue not in ("DEFAULT", "BIAS"):
        return None
    other = u.operands[1] if u.operands[0] is p.value else u.operands[0]
    if other is p.value or not is_splat(other, 0) or p.shape.element_type not in WITH_EPILOGUE:
        return None
    if not allows("finite-only"):
        return Refused(u, "whether the library's relu keeps NaN is not documented")
    return Fused(u, p.call.operands, dataclasses.replace(p.config, epilogue=_followed(p, "RELU")))


def gelu(p: Product, allows: Callable[[str], bool]) -> Fused | Refused | None:
    """``d / 2 (1 + tanh(sqrt(2 / pi) (d + 0.044715 d^3)))`` → gelu; if d is used elsewhere too, it is a result too."""
    t = p.shape.element_type
    if p.config.epilogue not in ("DEFAULT", "BIAS") or t not in WITH_EPILOGUE or p.value.is_root:
        return None
    found = find_gelu(p.value)
    if found is None:
        return None
    if p.is_narrow and not allows("reassociating"):
        return Refused(found.root, f"{t} is rounded after every op of it")
    if not found.used_elsewhere:
        return Fused(found.root, p.call.operands, dataclasses.replace(p.config, epilogue=_followed(p, "GELU")))
    if p.value is not p.call or p.shape.dims[-1] % 8:
        return Refused(found.root, "what it reads is used elsewhere, and cannot be a result beside it")
    config = dataclasses.replace(p.config, epilogue=_followed(p, "GELU_AUX"))
    return Fused(found.root, p.call.operands, config, tuple_shape([p.shape, p.shape]), p.value)


def narrowed(p: Product, allows: Callable[[str], bool]) -> Fused | Refused | None:
    """``convert(d)`` to the type of A and B → a product of that type. Exact: it was summed in f32 all along."""
    u, operand = p.user, p.call.operands[0].shape.element_type
    if u is None or u.opcode != "convert" or p.shape.element_type is not F32 or p.config.beta:
        return None
    t = u.shape.element_type
    if operand is F32 or t not in PRODUCTS.get(operand, ()) or p.config.epilogue != "DEFAULT":
        return None
    return Fused(u, p.call.operands, p.config, p.shape.with_type(t))


def to_8_bits(p: Product, allows: Callable[[str], bool]) -> Fused | Refused | None:
    """``convert(clamp(d * s))`` → an 8-bit result, scaled by s; the largest ``|d|`` is one too where it is asked."""
    if p.call.custom_call_target != gemm.MATMUL_F8 or p.shape.element_type not in PRODUCTS[BF16] or p.config.beta:
        return None
    found = gemm_f8.find_narrowed(p.value) if p.config.epilogue == "DEFAULT" else None
    if found is None:
        return None
    if not allows("reassociating"):
        return Refused(found.root, f"{p.shape.element_type} is rounded before it is scaled and stored")
    operands = [*p.call.operands, gemm_f8.out_factor(p.call, found)]
    shape = p.shape.with_type(found.root.shape.element_type)
    if found.largest is None:
        return Fused(found.root, operands, p.config, shape)
    config = dataclasses.replace(p.config, gives_amax=True)
    return Fused(found.root, operands, config, tuple_shape([shape, scalar_shape(F32)]), found.largest)


RULES: tuple[Rule, ...] = (to_8_bits, scale, vector_bias, matrix_bias, relu, gelu, narrowed)


def apply(p: Product, fused: Fused) -> Instruction:
    """The call with the fused ops; it replaces the old call and those ops."""
    c, old = home(p.call), fused.instead
    new = value = call(p.call, fused.operands, fused.shape or p.shape, fused.config, p.call.custom_call_target)
    if parts := new.shape.tuple_shapes:
        value, kept = [c.add("get-tuple-element", [new], s, like=old, index=n) for n, s in enumerate(parts)]
        assert fused.second is not None
        c.replace(fused.second, convert(kept, fused.second.shape.element_type))
    c.replace(old, reshape(value, old.shape.dims))
    return new


def _followed(p: Product, activation: str) -> str:
    return f"BIAS_{activation}" if p.config.has_bias else activation


def _columns(p: Product) -> int:
    """The product of B's free dimensions."""
    b = p.call.operands[1].shape.dims
    gone = (*p.config.rhs_batch, *p.config.rhs_contracting)
    return int(np.prod([n for d, n in enumerate(b) if d not in gone]))
