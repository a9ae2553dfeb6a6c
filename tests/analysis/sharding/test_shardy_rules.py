"""The table of rules against Shardy's own tests.

`SHARDY_RULES` names a copy of ``op_sharding_rule_registry.mlir`` of the Shardy project; without it the
test is skipped. Each function of the file is read through the frontend, and the rule of the op under the CHECK line is
compared. `DIFFERENT` says why a rule differs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from heron.analysis.sharding.rule import parse
from heron.analysis.sharding.rules import rule_of
from heron.errors import HeronError
from heron.frontends.loading import load
from heron.hlo.ir.instruction import Instruction

FILE = os.environ.get("SHARDY_RULES", "")
_UNKNOWN = "nothing in heron computes the call"
_SCALARS = "the frontend repeats the scalar operands"
_EXPANDED = "the frontend reshapes the operand before it repeats it"
_OWN = "factors of one shape alone are whole: their parts are no parts of the other shape"
_ROWS = "the file lacks the computation that the call names"
#: function → why the rule is another one
DIFFERENT = {
    "all_to_all_different_dimensions": "the frontend writes an all-to-all of one dimension between reshapes",
    "all_to_all_same_dimension": "the frontend writes one all-to-all an operand",
    "broadcast_in_dim_size_zero_dim": "an array without elements becomes a constant",
    "broadcast_in_dim_input_dim_expanded": _EXPANDED,
    "broadcast_in_dim_all_dim_types_in_one": _EXPANDED,
    "clamp_scalar_min_max": _SCALARS,
    "reshape_swap_dims_no_common_divisor": _OWN,
    "reshape_swap_dims_with_common_divisor": _OWN,
    "reshape_swap_with_dim_before_and_in_between": _OWN,
    "reshape_swap_and_merge": _OWN,
    "reshape_split_and_swap": _OWN,
    "reshape_split_swap_and_merge": _OWN,
    "select_scalar_pred": _SCALARS,
    "custom_call_compact_wy_helper": _UNKNOWN,
    "custom_call_x64_combine": _UNKNOWN,
    "custom_call_x64_combine_used_by_rng_bit_generator": _UNKNOWN,
    "custom_call_x64_split_high": _UNKNOWN,
    "custom_call_x64_split_low": _UNKNOWN,
    "custom_call_xla_megascale_provide_metadata": _UNKNOWN,
    "custom_call_erf": _UNKNOWN,
    "dynamic_update_slice_constant_indices": "the update is whole, at fixed places as well",
    "custom_call_eigh": "matrices are whole: Shardy passes their dimensions through and gathers them later",
    "custom_call_approx_topk": _ROWS,
    "custom_call_partial_reduce": _ROWS,
    "custom_call_partial_reduce_string_backend_config": _ROWS,
}


def functions() -> dict[str, str]:
    """The functions of the file by name."""
    text = Path(FILE).read_text(encoding="utf-8")
    parts = re.split(r"(?m)^// CHECK-LABEL:[^\n]*\n", text)[1:]
    return {re.search(r"@(\w+)", part)[1]: part[: part.rindex("}\n") + 2] for part in parts}  # type: ignore[index]


def expected(function: str) -> str | None:
    """The rule that the file expects."""
    found = re.search(r"// CHECK:.*?op_sharding_rule<(.*?)(?:>\}?|)\s*$", function, re.MULTILINE)
    return found[1] if found else None


def rules(function: str) -> list[str]:
    """The rules of all ops of the function that have one."""
    module = load(re.sub(r"(?m)^\s*// CHECK.*$", "", function), verify=False)
    found: list[Instruction] = list(module.entry.instructions)
    return [str(r) for r in map(rule_of, found) if r is not None]


@pytest.mark.skipif(not FILE, reason="SHARDY_RULES is not set")
def test_rules_are_those_of_shardy():
    unlike: dict[str, str] = {}
    for name, function in functions().items():
        want = expected(function)
        try:
            have = rules(function)
        except HeronError as e:
            have = [e.code]
        if have if want is None else str(parse(want)) not in have:
            unlike[name] = f"{want} expected, {have} found"
    new = {name: text for name, text in unlike.items() if name not in DIFFERENT}
    assert not new
    assert set(unlike) == set(DIFFERENT), "rules of these functions are Shardy's now: take them out of DIFFERENT"
