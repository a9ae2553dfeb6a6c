"""The command that runs StableHLO's own tests, on a checkout of a few programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frontends.stablehlo_suite.__main__ import outcome
from tests.frontends.stablehlo_suite.programs import cases

CONSTANT = """func.func @right() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %1 = stablehlo.add %0, %0 : tensor<2xi32>
  check.expect_eq_const %1, dense<[2, 4]> : tensor<2xi32>
  func.return
}
// -----
func.func @wrong() {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  check.expect_almost_eq_const %0, dense<[1.0, 2.5]> : tensor<2xf32>
  func.return
}
// -----
func.func @close() {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  check.expect_eq_const %0, dense<[1.0, 2.00001]> : tensor<2xf32>
  func.return
}
// -----
func.func @refused() {
  %0 = stablehlo.constant dense<1> : tensor<2xi32>
  %1 = stablehlo.nothing %0 : tensor<2xi32>
  check.expect_eq_const %1, dense<1> : tensor<2xi32>
  func.return
}
// -----
func.func @left_out() {
  func.return
}
"""
PARALLEL = """module @m {
  func.func @sum(%a: tensor<i64>) -> tensor<i64> {
    %r = "stablehlo.all_reduce"(%a) ({
      ^bb0(%x: tensor<i64>, %y: tensor<i64>):
        %z = stablehlo.add %x, %y : tensor<i64>
        stablehlo.return %z : tensor<i64>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<i64>) -> tensor<i64>
    return %r : tensor<i64>
  }
  func.func @main() {
    %a = stablehlo.constant dense<1> : tensor<i64>
    %b = stablehlo.constant dense<5> : tensor<i64>
    %r:2 = "interpreter.run_parallel"(%a, %b) {programs=[[@sum], [@sum]]} :
      (tensor<i64>, tensor<i64>) -> (tensor<i64>, tensor<i64>)
    check.expect_eq_const %r#1, dense<6> : tensor<i64>
    func.return
  }
}
"""
TESTDATA = """module @jit_main {
  func.func public @main() -> tensor<2xf32> {
    %0 = call @inputs() : () -> tensor<2xf32>
    %1 = stablehlo.constant dense<[-1.0, -2.0]> : tensor<2xf32>
    %2 = stablehlo.negate %0 : tensor<2xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
    return %2 : tensor<2xf32>
  }
  func.func private @inputs() -> tensor<2xf32> {
    %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""
DYNAMIC = """module @m {
  func.func public @main(%n: tensor<i64>, %x: tensor<?x4xf32> {mhlo.sharding = ""}) -> tensor<?x4xf32> {
    %0 = stablehlo.negate %x : tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
}
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder, text in (
        ("tests/interpret", CONSTANT),
        ("tests/interpret/chlo", PARALLEL),
        ("testdata", TESTDATA),
        ("testdata/dynamic", DYNAMIC),
    ):
        path = tmp_path / "stablehlo" / folder / "program.mlir"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_outcomes(checkout: Path) -> None:
    pytest.importorskip("jax")
    found = {case.name: outcome(case, "eval") for case in cases(checkout)}
    names = [f"tests/interpret/program#{n}" for n in range(5)]
    assert [found[n].kind for n in names] == ["right", "wrong", "close", "refused", "left out"]
    assert "SHLO002" in found[names[3]].why
    assert found["tests/interpret/chlo/program"].kind == "right"
    assert found["tests/interpret/chlo/program"].folder == "tests/interpret"
    assert found["testdata/program"].kind == found["testdata/dynamic/program"].kind == "right"


def test_compiled(checkout: Path) -> None:
    (case,) = [c for c in cases(checkout) if c.name == "testdata/program"]
    assert outcome(case, "cpu").kind == "right"
