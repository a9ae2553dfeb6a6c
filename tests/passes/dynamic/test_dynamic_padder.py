"""Programs of bounded sizes give the same with fixed ones, whatever stands beyond the sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from heron.errors import HeronError
from heron.evaluator import Evaluator
from heron.evaluator.calls import table
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.dynamic.fixed_sizes import fixed_sizes
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from heron.passes.pipelines import simplify
from heron.passes.rewriting.building import is_static
from tests.evaluator.test_dynamic import AGREED, HIDDEN, P, Q, module_text
from tests.passes.dynamic.programs import PROGRAMS, SIZES, inputs, text

RNG = np.random.default_rng(1)


@pytest.fixture(autouse=True)
def _nothing_in_the_padding(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inputs are filled up with NaN: a result that looks at it shows that."""

    def pad(i: Instruction, x: np.ndarray) -> tuple[np.ndarray, ...]:
        whole = np.full(i.shape.at((0,)).dims, -77 if x.dtype.kind in "iu" else np.nan).astype(x.dtype)
        whole[tuple(slice(0, n) for n in x.shape)] = x
        return whole, *(np.array(n, np.int32) for n in x.shape)

    monkeypatch.setitem(table._FUNCTIONS, "PadToStatic", lambda _, *given: pad(*given))
    yield


def padded(module: Module) -> Module:
    module = module.clone()
    for name in ("call-inliner", "batchnorm-expander", "topk-decomposer"):
        PassContext().run_pass(registry.get(name), module)
    assert PassContext().run_pass(registry.get("dynamic-padder"), module)
    verify(module)
    assert not PassContext().run_pass(registry.get("dynamic-padder"), module), "a second run changed something again"
    edge = {"parameter", "get-tuple-element", "custom-call", "tuple"}
    assert all(is_static(i) or (i.opcode in edge and i.parent is module.entry) for i in module.instructions())
    return module


def flat(value: Any) -> list[np.ndarray]:
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [value]


def assert_same(module: Module, *inputs: np.ndarray) -> None:
    wanted, found = Evaluator(module).run(*inputs), Evaluator(padded(module)).run(*inputs)
    for n, (old, new) in enumerate(zip(flat(wanted), flat(found), strict=True)):
        np.testing.assert_allclose(new, old, rtol=1e-6, err_msg=f"output {n}", strict=True)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_every_op(n: int) -> None:
    p = P.copy()
    p[n:] = np.nan
    mixed = {"mixed", "after", "gathered_few", "scattered_few", "chosen"}  # read p itself, beyond n
    lines = "\n".join(line for line in AGREED.strip().splitlines() if line.split(" = ")[0] not in mixed)
    assert_same(parse(module_text(lines, HIDDEN)), p, np.array(n, np.int32), Q)
    assert_same(parse(module_text(AGREED, HIDDEN)), P, np.array(n, np.int32), Q)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")  # of NumPy, of no rows
@pytest.mark.parametrize("name", PROGRAMS)
def test_inputs_of_any_size(name: str) -> None:
    module = parse(text(PROGRAMS[name]))
    verify(module)
    fixed = padded(module)
    for sizes in SIZES:
        arrays = inputs(*sizes)
        if (wanted := meant(module, arrays)) is None:
            with pytest.raises(HeronError, match="RUN004"):
                Evaluator(fixed).run(*arrays)
            continue
        for n, (old, new) in enumerate(zip(wanted, flat(Evaluator(fixed).run(*arrays)), strict=True)):
            np.testing.assert_allclose(new, old, rtol=1e-6, atol=1e-6, err_msg=f"output {n} at {sizes}", strict=True)


def meant(module: Module, arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """What a program gives; None where its sizes do not fit."""
    try:
        return flat(Evaluator(module).run(*arrays))
    except HeronError:
        return None


@pytest.mark.parametrize("name", PROGRAMS)
def test_simplified_first(name: str) -> None:
    """What simplifying passes make of dynamic programs is right, and padded all the same."""
    module = parse(text(PROGRAMS[name]))
    simple = module.clone()
    for pipeline in (simplify(), fixed_sizes()):
        pipeline.run(simple, PassContext())
    arrays = inputs(4, 2)
    for old, new in zip(meant(module, arrays) or (), flat(Evaluator(simple).run(*arrays)), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-6, atol=1e-6, strict=True)


LOOP = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
more { s = (s32[], f32[<=8]) parameter(0) k = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3) ROOT c = pred[] compare(k, n), direction=LT }
grow { s = (s32[], f32[<=8]) parameter(0) k = s32[] get-tuple-element(s), index=0
  x = f32[<=8] get-tuple-element(s), index=1 one = s32[] constant(1) kk = s32[] add(k, one)
  n = s32[] get-dimension-size(x), dimensions={0} nn = s32[] add(n, one)
  eight = s32[] constant(8) y = f32[8] set-dimension-size(x, eight), dimensions={0}
  z = f32[<=8] set-dimension-size(y, nn), dimensions={0} w = f32[<=8] cosine(z)
  ROOT t = (s32[], f32[<=8]) tuple(kk, w) }
ENTRY e { x = f32[<=8] parameter(0) k = s32[] constant(0) s = (s32[], f32[<=8]) tuple(k, x)
  l = (s32[], f32[<=8]) while(s), condition=more, body=grow
  ROOT r = f32[<=8] get-tuple-element(l), index=1 }"""


def test_a_loop_that_grows() -> None:
    module = parse(LOOP)
    for n in (0, 2, 5):
        assert_same(module, RNG.normal(size=n).astype(np.float32))


def test_dynamic_inside_fixed_loop() -> None:
    module = parse("""HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
more { s = (s32[], f32[8]) parameter(0) k = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3) ROOT c = pred[] compare(k, n), direction=LT }
step { s = (s32[], f32[8]) parameter(0) k = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1 one = s32[] constant(1) kk = s32[] add(k, one)
  d = f32[<=8] set-dimension-size(x, kk), dimensions={0} z = f32[] constant(0)
  r = f32[] reduce(d, z), dimensions={0}, to_apply=add
  y = f32[8] broadcast(r), dimensions={} w = f32[8] add(x, y) ROOT t = (s32[], f32[8]) tuple(kk, w) }
ENTRY e { x = f32[8] parameter(0) k = s32[] constant(0) s = (s32[], f32[8]) tuple(k, x)
  l = (s32[], f32[8]) while(s), condition=more, body=step ROOT r = f32[8] get-tuple-element(l), index=1 }""")
    assert_same(module, RNG.normal(size=8).astype(np.float32))


def test_what_has_no_rule_is_refused() -> None:
    module = parse("""HloModule m
ENTRY e { x = f32[<=8] parameter(0) ROOT r = f32[<=8] custom-call(x), custom_call_target="mine" }""")
    with pytest.raises(HeronError, match="'mine'") as caught:
        PassContext().run_pass(registry.get("dynamic-padder"), module)
    assert caught.value.code == "PASS020" and "custom-call" in str(caught.value.where)


def test_static_programs_stay() -> None:
    module = parse("HloModule m\nENTRY e { x = f32[8] parameter(0) ROOT r = f32[8] negate(x) }")
    assert not PassContext().run_pass(registry.get("dynamic-padder"), module)
