"""Propagation beside Shardy's own tests, where `SHARDY_CHECKOUT` names a checkout of openxla/shardy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.analysis.sharding.shardy import outcomes, sections, table

CHECKOUT = os.environ.get("SHARDY_CHECKOUT", "")
_BASIC = "expects the basic strategy, which leaves a conflict alone"
_EDGE = "gives an edge of the data flow a sharding of its own, which no program for heron has"
#: functions with another outcome → why
DIFFERENT = {
    "multi_axes_some_axes_incompatible": _BASIC,
    "multi_axes_all_axes_incompatible": _BASIC,
    "case_multiple_dim_most_compatible": _BASIC,
    "empty_mesh_replaced_closed_dim_respected": "a value of another, empty mesh is free here",
    "sub_axes_cannot_coexist": "parts of 2 and of 3 of one axis are axes of another mesh here",
    "maximal_mesh_not_replaced": "a value on one device by number has no sharding by axes",
    "case_closed_sharding": _EDGE,
    "case_propagate_from_data_flow_edge_op_result": _EDGE,
    "manual_computation_update_out_sharding_edge": _EDGE,
    "defer_backwards_propagation_for_op_with_multi_use_operand": "instructions stand in another order",
    "result_lower_priority_than_arg": "a result's sharding counts for the op that is the root",
    "add_extra_sharding_constraint_for_incompatible_shardings_with_sharding_constraint": "constraints are applied first",
}

TEXT = """
sdy.mesh @m = <["a"=2, "b"=2]>

// CHECK-LABEL: func @f(
// CHECK-SAME:      %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {?}]>},
// CHECK-SAME:      %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}, {"b"}]>})
// CHECK-SAME:  -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}, {?}]>}) {
func.func @f(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK-NEXT: stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a", ?}, {?}]>]>}
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


def test_the_reader_finds_what_differs(tmp_path: Path) -> None:
    from tests.analysis.sharding.shardy import run

    ((name, module, own),) = sections(TEXT)
    found = run("text", name, module, own)
    assert not found.refused and found.compared == 4
    assert found.different == ["""%arg1: expected (("'a'",), ("'b'",)), found (("'a'",), ())"""]


@pytest.mark.skipif(not CHECKOUT, reason="SHARDY_CHECKOUT is not set")
def test_shardys_tests() -> None:
    found = outcomes(Path(CHECKOUT))
    assert {o.name for o in found if o.different} <= set(DIFFERENT), table(found)
    assert sum(not o.refused and not o.different for o in found) >= 250, table(found)
