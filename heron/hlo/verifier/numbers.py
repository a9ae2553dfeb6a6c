"""Numbers: comparisons, precisions, algorithms, mixed types, layouts' dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from heron.hlo.facts import having, opcodes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.hlo.verifier.rules import Problem, rule

PRECISIONS = ("default", "high", "highest", "packed_nibble")
#: the algorithms a dot may ask for, by what its operands are rounded to, how often, and what sums are kept in
ALGORITHMS = (
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_any_f8_any_f8_any",
    "dot_any_f8_any_f8_any_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_bf16_bf16_f32_x9",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
    "unset",
)
WITH_PRECISION = having(Trait.PRODUCT)


@rule("HLO160")
def layouts_name_each_dimension(module: Module) -> Iterator[Problem]:
    """A layout names each dimension of its shape once."""
    sound: set[Shape] = set()
    for c in module.computations:
        for i in c._instructions:
            shape = i.shape
            if shape in sound:
                continue
            wrong = next((s for _, s in shape.leaves() if not _is_permutation(s)), None)
            if wrong is None:
                sound.add(shape)
            else:
                assert wrong.layout is not None
                why = f"{wrong.layout} for rank {wrong.rank} in {shape}"
                yield Problem("HLO160", f"the layout of '{i.name}' does not name each dimension once", i, why=why)


def _is_permutation(s: Shape) -> bool:
    return s.layout is None or sorted(s.layout.minor_to_major) == list(range(s.rank))


@rule("HLO161", on=("compare",))
def comparisons_fit_their_type(i: Instruction) -> Iterator[Problem]:
    """The type of a comparison is that of its operands; only floats have a choice: FLOAT or TOTALORDER."""
    stated, t = i.attrs.get("type"), i.operands[0].shape.element_type
    if stated is None:
        return
    if t.is_float:
        allowed = ("FLOAT", "TOTALORDER")
    elif t.is_complex:
        allowed = ("FLOAT",)
    else:
        allowed = ("SIGNED",) if t.is_signed else ("UNSIGNED",)
    if stated not in allowed:
        why = f"for {t} it is {' or '.join(allowed)}"
        yield Problem("HLO161", f"'{i.name}' compares {t} as {stated}", i, why=why)


@rule("HLO162", on=("reduce", "reduce-window", "map"), waived_by="allow_mixed_precision")
def reducers_have_their_operands_types(i: Instruction) -> Iterator[Problem]:
    """A computation applied to elements has the element types of its operands."""
    parameters = i.to_apply.parameters
    for n, (operand, p) in enumerate(zip(i.operands, parameters, strict=False)):
        a, b = operand.shape.element_type, p.shape.element_type
        if a is not b:
            yield Problem("HLO162", f"operand {n} of '{i.name}' is applied in another type", i, why=f"{a} as {b}")


@rule("HLO163", on=WITH_PRECISION)
def precisions_are_known(i: Instruction) -> Iterator[Problem]:
    """operand_precision has one known word for each side of a product."""
    words = i.attrs.get("operand_precision")
    if not words:
        return
    if len(words) != 2 or any(w not in PRECISIONS for w in words):
        why = f"it is {{{','.join(words)}}}"
        yield Problem("HLO163", f"operand_precision of '{i.name}' must be two of {', '.join(PRECISIONS)}", i, why=why)


@rule("HLO164", on=WITH_PRECISION)
def nibbles_are_packed_in_bytes(i: Instruction) -> Iterator[Problem]:
    """packed_nibble is for both sides, which are integers of 8 bits; convolutions then have no groups."""
    words = i.attrs.get("operand_precision") or ()
    if "packed_nibble" not in words:
        return
    if any(w != "packed_nibble" for w in words):
        yield Problem("HLO164", f"'{i.name}' has packed nibbles on one side only", i)
    for n, operand in enumerate(i.operands[:2]):
        t = operand.shape.element_type
        if not t.is_integer or t.bits != 8:
            yield Problem(
                "HLO164", f"'{i.name}' has packed nibbles in operand {n}", i, why=f"which is {t}, not s8 or u8"
            )
    for name in ("feature_group_count", "batch_group_count"):
        if i.attrs.get(name, 1) != 1:
            yield Problem("HLO164", f"'{i.name}' has packed nibbles and {name}={i.attrs[name]}", i)


@rule("HLO165", on=opcodes(lambda op: Trait.PRODUCT in op.traits and "algorithm" in op.attributes))
def algorithms_are_known(i: Instruction) -> Iterator[Problem]:
    """The algorithm of a dot is one that there is."""
    algorithm = i.attrs.get("algorithm")
    if algorithm is not None and algorithm not in ALGORITHMS:
        why = "there are " + ", ".join(ALGORITHMS)
        yield Problem("HLO165", f"'{i.name}' asks for the algorithm {algorithm}, which is unknown", i, why=why)


@rule("HLO166", on=("broadcast",), mode="ordered_broadcasts")
def broadcasts_keep_the_order(i: Instruction) -> Iterator[Problem]:
    """A broadcast does not transpose: its dimensions go up."""
    dims = i.dimensions
    if list(dims) != sorted(dims):
        hint = "put a transpose before the broadcast"
        yield Problem("HLO166", f"'{i.name}' broadcasts and transposes", i, why=f"dimensions={list(dims)}", hint=hint)


@rule("HLO167", on=("scaled-dot",))
def scaled_dots_have_a_scale(i: Instruction) -> Iterator[Problem]:
    """A scaled-dot has a scale that is no scalar; a scaled side has one contracting dimension."""
    if all(o.shape.rank == 0 for o in i.operands[2:]):
        yield Problem("HLO167", f"both scales of '{i.name}' are scalars", i, hint="use dot")
    for side, scale in zip(("lhs", "rhs"), i.operands[2:], strict=True):
        contracting = i.attrs.get(f"{side}_contracting_dims", ())
        if scale.shape.rank and len(contracting) != 1:
            why = f"{side}_contracting_dims has {len(contracting)}"
            yield Problem("HLO167", f"'{i.name}' must contract one dimension to scale its blocks", i, why=why)
