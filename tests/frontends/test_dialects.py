"""Every operation of the three dialects imports and means what XLA:CPU says, or is refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import HeronError
from heron.frontends.stablehlo.block import RETURNS
from heron.frontends.stablehlo.importer import parse

pytest.importorskip("jaxlib")

from tests.frontends.dialects.check import differences, operations, texts

ROOT = Path(__file__).parents[1]
#: imported only: several devices, the host, or ops XLA:CPU has no code for
IMPORTED = sorted((ROOT / "lit" / "stablehlo").glob("*.mlir"))

F = "tensor<4xf32>"
#: operation: a line that has it, and the code it is refused with
REFUSED = {
    "chlo._asin_acos_kernel": (f'"chlo._asin_acos_kernel"(%a) : ({F}) -> {F}', "SHLO005"),
    "sdy.all_gather": (f'sdy.all_gather [{{"x"}}] %a out_sharding=<@m, [{{}}]> : {F}', "SHLO005"),
    "sdy.all_reduce": (f'sdy.all_reduce {{"x"}} %a out_sharding=<@m, [{{}}]> : {F}', "SHLO005"),
    "sdy.all_slice": (f'sdy.all_slice [{{"x"}}] %a out_sharding=<@m, [{{"x"}}]> : {F}', "SHLO005"),
    "sdy.all_to_all": (f'sdy.all_to_all [{{"x"}}: 0->0] %a out_sharding=<@m, [{{"x"}}]> : {F}', "SHLO005"),
    "sdy.collective_permute": (f'sdy.collective_permute %a out_sharding=<@m, [{{"x"}}]> : {F}', "SHLO005"),
    "sdy.reduce_scatter": (f'sdy.reduce_scatter [{{"x"}}] %a out_sharding=<@m, [{{"x"}}]> : {F}', "SHLO005"),
    "sdy.replicated_to_unreduced": (f'"sdy.replicated_to_unreduced"(%a) : ({F}) -> {F}', "SHLO005"),
    "sdy.sharded_to_unreduced": (f'"sdy.sharded_to_unreduced"(%a) : ({F}) -> {F}', "SHLO005"),
    "sdy.func_data_flow_edge": (f"sdy.func_data_flow_edge %a : {F}", "SHLO005"),
}


@pytest.mark.parametrize("name", texts())
def test_values(name: str) -> None:
    wrong = differences(texts()[name])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("op", REFUSED)
def test_refusals_are_located_and_documented(op: str) -> None:
    line, code = REFUSED[op]
    with pytest.raises(HeronError, match=code) as caught:
        parse(f"func.func @main(%a: {F}) -> {F} {{\n  %r = {line}\n  return %r : {F}\n}}")
    assert caught.value.where.line == 2 and caught.value.why
    assert f"`{op.removeprefix('stablehlo.')}`" in (ROOT.parent / "docs" / "use" / "frontends.md").read_text()


def test_no_operation_is_missing() -> None:
    from jaxlib.mlir.dialects import _chlo_ops_gen, _sdy_ops_gen, _stablehlo_ops_gen

    dialects = (_stablehlo_ops_gen, _chlo_ops_gen, _sdy_ops_gen)
    every = {v.OPERATION_NAME for d in dialects for v in vars(d).values() if hasattr(v, "OPERATION_NAME")}
    compared = set().union(*(operations(text) for text in texts().values()))
    imported = set().union(*(operations(path.read_text()) for path in IMPORTED))
    assert len(every) > 180
    assert every - compared - imported - REFUSED.keys() - RETURNS - {"sdy.mesh"} == set()
    assert not REFUSED.keys() & (compared | imported)
