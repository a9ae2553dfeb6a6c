"""Custom calls of matrix products: XLA's text read and written again, values, and what is refused."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

from heron import HeronError
from heron.evaluator import evaluate
from heron.hlo.calls import gemm
from heron.hlo.calls.gemm import GemmConfig
from heron.hlo.ir.module import Module
from heron.hlo.text import parse

#: as XLA:GPU prints it
XLA = (
    '{"operation_queue_id":"0","gemm_backend_config":{"selected_algorithm":"0","alpha_real":0.125,"beta":1,'
    '"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],"rhs_contracting_dimensions":["1"],'
    '"lhs_batch_dimensions":["0"],"rhs_batch_dimensions":["0"]},"alpha_imag":0,"precision_config":'
    '{"operand_precision":["DEFAULT","HIGHEST"],"algorithm":"ALG_UNSET"},"epilogue":"BIAS_GELU","lhs_stride":"65536",'
    '"rhs_stride":"16384","grad_x":false,"grad_y":false,"damax_output":false,"autotune_workspace_size":"4194304",'
    '"scale_mode":0},"force_earliest_schedule":false,"reification_cost":[],"device_type":"DEVICE_TYPE_INVALID"}'
)


def program(config: GemmConfig | str, result: str, *operands: str, target: str = gemm.MATMUL) -> Module:
    names = [f"p{n}" for n in range(len(operands))]
    lines = [f"{name} = {shape} parameter({n})" for n, (name, shape) in enumerate(zip(names, operands, strict=True))]
    call = f'custom-call({", ".join(names)}), custom_call_target="{target}", backend_config={config}'
    return parse("HloModule m\nENTRY main {\n" + "\n".join(lines) + f"\nROOT r = {result} {call}\n}}\n")


def root_config(module: Module) -> GemmConfig:
    return gemm.read(module.entry.root)


def test_xlas_text_is_read_and_written_again() -> None:
    module = program(XLA, "f32[2,8,4]", "f32[2,8,16]", "f32[2,16,4]", "f32[2,8,4]", "f32[4]")
    config = root_config(module)
    assert (config.alpha, config.beta, config.epilogue, config.selected) == (0.125, 1.0, "BIAS_GELU", 0)
    assert str(config) == XLA


def test_values_of_all_parts() -> None:
    rng = np.random.default_rng(1)
    x, y, c, b = (rng.standard_normal(s).astype(np.float32) for s in ((2, 8, 16), (2, 16, 4), (2, 8, 4), (4,)))
    (found,) = evaluate(program(XLA, "f32[2,8,4]", *(f"f32{list(a.shape)}" for a in (x, y, c, b))), x, y, c, b)
    v = 0.125 * np.matmul(x.astype(np.float64), y) + c + b
    wanted = 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_fp8_with_scales_and_the_largest_magnitude() -> None:
    config = GemmConfig((1,), (1,), gives_amax=True)
    x = np.array([[1, 2], [3, 4]], ml_dtypes.float8_e4m3fn)
    y = np.array([[1, 0], [1, -1]], ml_dtypes.float8_e4m3fn)
    scales = np.float32(2), np.float32(0.5), np.float32(4)
    shapes = ("f8e4m3fn[2,2]", "f8e4m3fn[2,2]", "f32[]", "f32[]", "f32[]")
    module = program(config, "(f8e4m3fn[2,2], f32[], s8[64])", *shapes, target=gemm.MATMUL_F8)
    out, amax, workspace = evaluate(module, x, y, *scales)
    np.testing.assert_array_equal(out.astype(np.float32), [[4, -4], [12, -4]])
    assert amax == 3 and workspace.shape == (64,)


def test_what_an_activation_reads_may_be_a_result() -> None:
    config = GemmConfig((1,), (0,), epilogue="GELU_AUX")
    x = np.eye(2, dtype=np.float32)
    out, aux = evaluate(program(config, "(f32[2,2], f32[2,2])", "f32[2,2]", "f32[2,2]"), x, x)
    np.testing.assert_array_equal(aux, x)
    assert out[0, 0] == pytest.approx(0.8411920, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"epilogue": "BIAS_SWISH"}, "HLO171"),
        ({"scale_mode": 3}, "HLO171"),
        ({"grad_x": True}, "HLO171"),
        ({"beta": "much"}, "HLO170"),
        ({"dot_dimension_numbers": {"lhs_contracting_dimensions": 1}}, "HLO170"),
        ({"dot_dimension_numbers": 1}, "HLO170"),
    ],
)
def test_what_is_not_known_is_an_error(change: dict[str, object], code: str) -> None:
    whole = json.loads(XLA)
    whole["gemm_backend_config"].update(change)
    module = program(json.dumps(whole), "f32[2,8,4]", "f32[2,8,16]", "f32[2,16,4]", "f32[2,8,4]", "f32[4]")
    with pytest.raises(HeronError) as error:
        root_config(module)
    assert error.value.code == code


@pytest.mark.parametrize("text", ['"not json"', "{nonsense = 1}"])
def test_a_configuration_that_is_no_json_is_an_error(text: str) -> None:
    with pytest.raises(HeronError) as error:
        root_config(program(text, "f32[2,2]", "f32[2,2]", "f32[2,2]"))
    assert error.value.code == "HLO170"


def test_operands_are_counted() -> None:
    module = program(XLA, "f32[2,8,4]", "f32[2,8,16]", "f32[2,16,4]")
    with pytest.raises(HeronError) as error:
        gemm.parts(module.entry.root, root_config(module))
    assert error.value.code == "HLO171"
