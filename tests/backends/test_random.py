"""Random numbers compiled: the evaluator's numbers on every target, other ones at every call, XLA's state."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import heron
from heron.compiling import compile
from heron.evaluator import evaluate, evaluate_devices
from heron.hlo.ir.module import Module
from heron.hlo.meaning.draws import FIRST_STATE
from heron.options import Options
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from tests import xla_cpu

TARGETS = ("cpu", "sim:sm_90")
#: type, dimensions, the two parameters, distribution
DRAWS = [
    ("f32", "1000", "-1", "3", "uniform"),
    ("f64", "10,7", "0", "1", "uniform"),
    ("bf16", "65", "0", "1", "uniform"),
    ("f16", "", "2", "4", "uniform"),
    ("s32", "101", "-5", "6", "uniform"),
    ("s64", "9", "-4000000000", "4000000000", "uniform"),
    ("u8", "33", "250", "255", "uniform"),
    ("s4", "33", "-8", "7", "uniform"),
    ("s32", "5", "4", "4", "uniform"),
    ("pred", "6", "false", "true", "uniform"),
    ("f32", "0", "0", "1", "uniform"),
    ("f32", "20,50", "5", "2", "normal"),
    ("f64", "40", "0", "1", "normal"),
    ("bf16", "64", "1", "1", "normal"),
]


def drawing(head: str = "", draws: list[tuple[str, ...]] = DRAWS) -> Module:
    lines, shapes = [], []
    for n, (t, dims, a, b, distribution) in enumerate(draws):
        lines += [f"a{n} = {t}[] constant({a})", f"b{n} = {t}[] constant({b})"]
        lines.append(f"r{n} = {t}[{dims}] rng(a{n}, b{n}), distribution=rng_{distribution}")
        shapes.append(f"{t}[{dims}]")
    root = f"ROOT t = ({', '.join(shapes)}) tuple({', '.join(f'r{n}' for n in range(len(draws)))})"
    return heron.parse(f"HloModule m{head}\nENTRY main {{\n" + "\n".join([*lines, root]) + "\n}")


def assert_same(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for (t, *_, distribution), ours, theirs in zip(DRAWS, found, wanted, strict=True):
        if distribution == "normal":  # logarithm and cosine are rounded otherwise
            bound = {"f64": 1e-13, "f32": 1e-5, "bf16": 0.04}[t]
            np.testing.assert_allclose(ours.astype(float), theirs.astype(float), rtol=bound, atol=bound)
        else:
            np.testing.assert_array_equal(ours, theirs)


@pytest.fixture(scope="module")
def wanted() -> list[np.ndarray]:
    return evaluate_devices(drawing(), [[]])[0]


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_are_the_evaluators(target: str, wanted: list[np.ndarray]) -> None:
    program = compile(drawing(), target, options=Options(sim_check="all"))
    assert_same(program.run([]), wanted)
    again = program.run([])  # the state went on
    assert not np.array_equal(again[0], wanted[0]) and not np.array_equal(again[4], wanted[4])


def test_no_pass_changes_what_is_drawn() -> None:
    compile(drawing(draws=[DRAWS[0], DRAWS[4], DRAWS[11]]), "cpu", options=Options(check="values"))


@pytest.mark.parametrize("head", ["", ", replica_count=2, num_partitions=2"])
def test_the_expansion_means_the_same_on_every_device(head: str) -> None:
    module = drawing(head)
    before = evaluate_devices(module, [[]])
    assert PassContext().run_pass(get("rng-expander"), module)
    assert not PassContext().run_pass(get("rng-expander"), module)
    after = evaluate_devices(module, [[]])
    for device, (old, new) in enumerate(zip(before, after, strict=True)):
        assert_same(new, old)
        assert device == 0 or not np.array_equal(new[0], after[0][0])


def test_distributions() -> None:
    body = "a = f32[] constant(-1) b = f32[] constant(3) i = s32[] constant(-3) j = s32[] constant(4) "
    body += "u = f32[40000] rng(a, b), distribution=rng_uniform n = f32[40000] rng(a, b), distribution=rng_normal "
    body += "k = s32[40000] rng(i, j), distribution=rng_uniform "
    body += "ROOT t = (f32[40000], f32[40000], s32[40000]) tuple(u, n, k)"
    uniform, normal, whole = compile(heron.parse(f"HloModule m\nENTRY main {{ {body} }}"), "cpu").run([])
    # of 40,000 numbers the mean of a distribution of deviation 1 has deviation 0.005: these are six of them or more
    assert uniform.min() >= -1 and uniform.max() < 3
    assert abs(uniform.mean() - 1) < 0.04 and abs(uniform.var() - 16 / 12) < 0.05
    assert abs(normal.mean() + 1) < 0.1 and abs(normal.std() - 3) < 0.07
    assert abs((normal < 2).mean() - 0.8413) < 0.012  # one deviation above the mean
    counts = np.bincount(whole + 3, minlength=7)
    assert len(counts) == 7 and np.abs(counts - 40000 / 7).max() < 6 * 70


STATE = "HloModule m\nENTRY main {\n  ROOT r = u64[2] rng-get-and-update-state(), delta=7\n}\n"


@pytest.mark.parametrize("target", TARGETS)
def test_state_goes_on_from_call_to_call(target: str) -> None:
    program = compile(heron.parse(STATE), target)
    assert [program.run([])[0].tolist() for _ in range(3)] == [[FIRST_STATE + 7 * n, 0] for n in range(3)]


def test_state_carries_into_its_upper_word() -> None:
    step = (1 << 63) - 1
    text = STATE.replace("delta=7", f"delta={step}")
    for target in TARGETS:
        program = compile(heron.parse(text), target)
        found = [program.run([])[0].tolist() for _ in range(4)]
        states = [FIRST_STATE + step * n for n in range(4)]
        assert found == [[s % (1 << 64), s >> 64] for s in states]


@pytest.mark.parametrize("target", TARGETS)
def test_threads_share_one_state(target: str) -> None:
    program = compile(heron.parse(STATE), target)
    with ThreadPoolExecutor(4) as pool:
        found = [f.result()[0].tolist() for f in [pool.submit(program.run, []) for _ in range(40)]]
    assert sorted(found) == [[FIRST_STATE + 7 * n, 0] for n in range(40)]


def test_state_is_xlas() -> None:
    assert evaluate(heron.parse(STATE))[0].tolist() == xla_cpu.run(STATE)[0].tolist()


def test_draws_in_a_loop_differ() -> None:
    text = """HloModule m
body {
  p = (s32[], f32[4,3]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  x = f32[4,3] get-tuple-element(p), index=1
  a = f32[] constant(0)
  b = f32[] constant(1)
  d = f32[1,3] rng(a, b), distribution=rng_uniform
  zero = s32[] constant(0)
  y = f32[4,3] dynamic-update-slice(x, d, n, zero)
  one = s32[] constant(1)
  m = s32[] add(n, one)
  ROOT t = (s32[], f32[4,3]) tuple(m, y)
}
condition {
  p = (s32[], f32[4,3]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  four = s32[] constant(4)
  ROOT r = pred[] compare(n, four), direction=LT
}
ENTRY main {
  zero = s32[] constant(0)
  a = f32[] constant(0)
  x = f32[4,3] broadcast(a), dimensions={}
  t = (s32[], f32[4,3]) tuple(zero, x)
  w = (s32[], f32[4,3]) while(t), condition=condition, body=body
  ROOT r = f32[4,3] get-tuple-element(w), index=1
}
"""
    (wanted,) = evaluate(heron.parse(text))
    assert len(np.unique(wanted)) == 12
    for target in TARGETS:
        np.testing.assert_array_equal(compile(heron.parse(text), target).run([])[0], wanted)
