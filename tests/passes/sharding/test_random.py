"""Some of the random programs that `python -m tests.passes.sharding` runs by thousands."""

import pytest

from heron.hlo.text import parse
from tests.passes.sharding.cases import FAMILIES, case
from tests.passes.sharding.devices import agree, agree_compiled, agree_open, inputs_of

COUNT = 12


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_partitioned_is_global(name: str) -> None:
    for seed in range(COUNT):
        _, text = case(seed, [name])
        module = parse(text)
        agree(module, inputs_of(module, seed))


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_compiled_is_global(name: str) -> None:
    for seed in range(COUNT // 3):
        _, text = case(1000 + seed, [name])
        module = parse(text)
        agree_compiled(module, inputs_of(module, seed))


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_with_open_results_is_global(name: str) -> None:
    for seed in range(COUNT // 3):
        _, text = case(2000 + seed, [name])
        module = parse(text)
        agree_open(module, inputs_of(module, seed))
