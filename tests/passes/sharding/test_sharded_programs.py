"""Real sharded programs: read, written and imported, with XLA's values on every device."""

from __future__ import annotations

import pytest

from heron.evaluator import evaluate_devices
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.context import PassContext
from heron.passes.sharding.constant_splitter import ConstantSplitter
from heron.passes.sharding.sharding_importer import ShardingImporter
from tests.sharded_programs import NAMES, Program


@pytest.mark.parametrize("form", ["stablehlo", "hlo"])
@pytest.mark.parametrize("name", NAMES)
def test_read_written_and_imported(name: str, form: str) -> None:
    program = Program(name)
    module = program.module(form)
    verify(module)
    assert str(parse(str(module))) == str(module)

    source, before = module, str(module)
    module = module.clone()
    ShardingImporter().run(module, PassContext())
    verify(module)
    assert str(source) == before
    assert module.num_partitions == program.devices
    text = str(module)
    ordered = str(parse(text))
    assert str(parse(ordered)) == ordered and "xla.sdy.sharding=" not in text
    assert not ShardingImporter().run(module, PassContext()) and str(module) == text

    ConstantSplitter().run(module, PassContext())
    verify(module)
    for results in evaluate_devices(module, [program.inputs()] * program.devices)[:: max(1, program.devices - 1)]:
        program.check(results)
