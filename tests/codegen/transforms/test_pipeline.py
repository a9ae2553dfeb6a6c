"""The pipeline as a whole: its steps have names, are observed, and are checked when asked."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from heron.codegen.ir.dialects.context import parse_kernel
from heron.codegen.transforms import pipeline
from heron.codegen.transforms.options import TransformOptions
from heron.errors import HeronError

KERNEL = """
func.func @k(%o: tensor<4xf32>, %lo: index, %hi: index) -> tensor<4xf32> attributes {xla_gpu.entry} {
  %c = arith.constant 1.0 : f32
  %r = tensor.insert %c into %o[%lo] : tensor<4xf32>
  func.return %r : tensor<4xf32>
}"""


def test_names_are_unique_and_observed() -> None:
    for target, steps in pipeline.PIPELINES.items():
        seen: list[str] = []

        def observe(name: str, module: ModuleOp, seen: list[str] = seen) -> None:
            seen.append(name)

        pipeline.run(parse_kernel(KERNEL), TransformOptions(target), observe=observe)
        assert seen == [name for name, _ in steps]
        assert len(set(seen)) == len(seen)


def test_steps_can_be_chosen() -> None:
    steps = [s for s in pipeline.PIPELINES["cpu"] if s[0] == "lower-tensors"]
    assert "llvm.store" in str(pipeline.run(parse_kernel(KERNEL), steps=steps))


def test_an_invalid_module_names_the_step() -> None:
    def break_it(module: ModuleOp, options: TransformOptions) -> None:
        del next(iter(module.ops)).properties["sym_name"]

    with pytest.raises(HeronError, match="GEN128.*breaker"):
        pipeline.run(parse_kernel(KERNEL), TransformOptions(verify=True), [("breaker", break_it)])
