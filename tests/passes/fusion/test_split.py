"""Sums of block products in parts: values, the decision, and what a lock file may say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heron import lockfile, targets
from heron.analysis.blocks.config import BlockConfig, config_of
from heron.backends.compiler import Compilation
from heron.compiling import compile
from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.ir.fingerprint import fingerprint
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.options import Options
from heron.trace import Trace

SM, SIM = targets.get("sm_90"), targets.get("sim:sm_90")


def product(k: int, kind: str = "bf16", rows: int = 48) -> str:
    """Bytes times floats or bytes, with a bias behind; few results, a sum of `k`."""
    total = "s32" if kind == "s8" else kind
    convert = "" if kind == "s8" else f"c = {kind}[{rows},{k}] convert(x)\n"
    return f"""
HloModule long
ENTRY e {{
  x = s8[{rows},{k}] parameter(0)
  w = {kind}[{k},40] parameter(1)
  b = {total}[40] parameter(2)
  {convert}
  d = {total}[{rows},40] dot({"x" if kind == "s8" else "c"}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  bb = {total}[{rows},40] broadcast(b), dimensions={{1}}
  s = {total}[{rows},40] add(d, bb)
  ROOT n = {total}[{rows},40] negate(s)
}}
"""


def run(text: str, options: Options, trace: Trace | None = None) -> tuple[np.ndarray, np.ndarray]:
    """What the simulated GPU gives, and the evaluator."""
    module = parse(text)
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-2, 3, p.shape.dims).astype(p.shape.element_type.dtype) for p in module.entry.parameters]
    got = compile(parse(text), SIM, options, trace or Trace())(*inputs)
    (wanted,) = evaluate(module, *inputs)
    return np.asarray(got).astype(np.float64), np.asarray(wanted).astype(np.float64)


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_values(kind: str) -> None:
    """A product of parts and their sum: two kernels. Sums of small whole numbers are the same in any order."""
    trace = Trace()
    got, wanted = run(product(4096, kind), Options(sim_check="all"), trace)
    assert [k.emitter for k in trace.kernels] == ["block", "loop"]
    np.testing.assert_array_equal(got, wanted)


def fused(text: str, options: Options, trace: Trace | None = None) -> Module:
    return Compilation(parse(text), SM, options, trace or Trace()).passes("fused")


@pytest.mark.parametrize(("k", "rows"), [(1000, 48), (96, 48), (4096, 8192)])
def test_what_stays_whole(k: int, rows: int) -> None:
    """A sum with no equal parts, a short one, and one of many tiles."""
    made = fused(product(k, rows=rows), Options(triton="on"))
    assert all(i.shape.rank == 2 for i in made.instructions() if config_of(i) is not None)


def lock(path: Path, text: str, choice: str) -> Options:
    """A lock file with that choice for the only fragment of a program."""
    whole = Compilation(parse(text), SIM, Options(), Trace()).passes("hlo")
    (made,) = (i for i in whole.instructions() if config_of(i) is not None)
    found = lockfile.Lock()
    found.add(lockfile.Choice(SIM.machine, lockfile.digest(fingerprint(made.calls)), made.name, choice, 1.0))
    found.write(path)
    return Options(lock=str(path), frozen=True)


def test_the_lock_file_splits(tmp_path: Path) -> None:
    """Also a fusion with something behind its product: that is done where the parts are added."""
    text = product(512)
    config = BlockConfig((1, 16, 16), 32, split=2)
    trace = Trace()
    got, wanted = run(text, lock(tmp_path / "heron.lock", text, str(config)), trace)
    np.testing.assert_array_equal(got, wanted)
    assert [k.emitter for k in trace.kernels] == ["block", "loop"]


@pytest.mark.parametrize("choice", [BlockConfig((16, 16), split=2), BlockConfig((1, 16, 16), split=1024)])
def test_a_split_that_cannot_be(tmp_path: Path, choice: BlockConfig) -> None:
    """Tiles without a place for the parts; more parts than the sum has elements."""
    text = product(512)
    with pytest.raises(HeronError, match="TUNE003"):
        run(text, lock(tmp_path / "heron.lock", text, str(choice)))


def test_configs_are_read_as_written() -> None:
    for config in (BlockConfig((1, 64, 64), split=4), BlockConfig((128, 128), 64, 4, 3, tma=True, specialized=True)):
        assert BlockConfig.parse(str(config)) == config
