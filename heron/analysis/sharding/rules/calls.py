"""Custom calls: the user's own rule where there is one, else what the call's declaration says."""

from __future__ import annotations

from dataclasses import replace

from heron.analysis.sharding.rule import FactorKind, OpRule, parse
from heron.analysis.sharding.rules.builder import RuleBuilder
from heron.analysis.sharding.rules.elementwise import same_dims
from heron.analysis.sharding.rules.registry import rule
from heron.analysis.sharding.rules.rows import whole_matrices, whole_rows
from heron.hlo.calls import declared, form, markers
from heron.hlo.ir.instruction import Instruction

#: calls of matrices, the last two dimensions of the first operand, that passes write out
MATRICES = frozenset({"Cholesky", "Eigh", "Qr", "QrDecompositionBlock", "ProductOfElementaryHouseholderReflectors"})
#: calls that look for the largest elements of rows
ROWS = frozenset({"ApproxTopK", "PartialReduce", "TopK", "mhlo.topk"})
#: the frontend attribute that holds the user's rule, as Shardy writes it
ATTRIBUTE = "xla.sdy.sharding_rule"


@rule("custom-call")
def custom_call(i: Instruction) -> OpRule | None:
    """None for a call that says nothing of its dimensions: its arrays are whole.

    Raises HLO027 for a user's rule that is none, or not one of these arrays.
    """
    text = i.extras.get("frontend_attributes", {}).get(ATTRIBUTE)
    if text is not None:
        return _lone_whole(parse(text).need_fit(i))
    if i.custom_call_target in markers.MARKERS:
        return same_dims(i) if markers.is_identity(i) else None
    if i.custom_call_target in ROWS:
        return whole_rows(i)
    if i.custom_call_target in MATRICES:
        return whole_matrices(i)
    call = declared.declaration(i.custom_call_target)
    if call is None:
        return None
    text = call.form_of(i)
    return _by_form(i, form.parse(text)) if text else None


def _lone_whole(found: OpRule) -> OpRule:
    """A user's rule in which dimensions that one array alone has are whole: no call is known to work on their parts."""
    factors = tuple(
        replace(f, kind=FactorKind.NEED_REPLICATION) if len(places) == 1 and f.kind is FactorKind.PASS_THROUGH else f
        for f, places in zip(found.factors, found.places, strict=True)
    )
    return replace(found, factors=factors)


def _by_form(i: Instruction, found: form.Form) -> OpRule | None:
    """Sizes before the others of an operand, ``*b``, count independent problems: they pass through."""
    batch = next((a.dims[0] for a in found.operands if a.dims and a.dims[0][0] == "*"), None)
    if batch is None:
        return None
    b = RuleBuilder.of(i)
    operands, results = found.operands, found.results[: len(b.results)]
    has = [bool(a.dims) and a.dims[0] == batch for a in (*operands, *results)]
    first = has.index(True)
    rank = len(b.operands[first]) - len(operands[first].dims) + 1
    for d in range(rank):
        places = [d if here else None for here in has]
        b.add(b.operands[first][d], places[: len(operands)], places[len(operands) :])
    _matrices(b, operands, results)
    return b.build()


def _matrices(b: RuleBuilder, operands: tuple[form.Array, ...], results: tuple[form.Array, ...]) -> None:
    """The other dimensions must be whole. A result that is stored in an operand has its dimensions."""
    for n, array in enumerate(operands):
        over = [m for m, r in enumerate(results) if r.over == array.name and b.results[m] == b.operands[n]]
        for d in range(_batch_rank(array, len(b.operands[n])), len(b.operands[n])):
            b.add(
                b.operands[n][d],
                [d if m == n else None for m in range(len(operands))],
                [d if m in over else None for m in range(len(results))],
                FactorKind.NEED_REPLICATION,
            )


def _batch_rank(array: form.Array, rank: int) -> int:
    return rank - len(array.dims) + 1 if array.dims and array.dims[0][0] == "*" else 0
