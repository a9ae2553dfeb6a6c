"""Scans of one pass on the simulated GPU: values, and that results do not depend on which block is faster."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from heron import Options, targets
from heron.analysis.fusion.scan_plan import FIRST_FLAG, GROUP, ScanPlan, single_pass
from heron.codegen.emitters.scan import gpu_single_pass
from heron.codegen.kernel import Kernel
from heron.codegen.llvm.nvptx import to_ptx
from heron.codegen.sim.kernel import compile_kernel
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.text import parse
from tests.codegen.run_kernel import lower

RNG = np.random.default_rng(11)
SIM = targets.get("sim:sm_90")
_names = itertools.count()


def program(shape: tuple[int, ...], type_: str, op: str, init: str, *, reverse: bool = False, shift: int = 0) -> str:
    """A scan of squares along the last dimension."""
    dims, n, rank = ",".join(map(str, shape)), shape[-1], len(shape)
    pads = (n - 1 + shift, -shift)
    low, high = pads[::-1] if reverse else pads
    size = "x".join(["1"] * (rank - 1) + [str(n)])
    pad = "x".join(["0_0"] * (rank - 1) + [f"{low}_{high}"])
    return f"""HloModule m
f {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) ROOT r = {type_}[] {op}(a, b) }}
ENTRY e {{ x = {type_}[{dims}] parameter(0) z = {type_}[] constant({init}) y = {type_}[{dims}] multiply(x, x)
  ROOT s = {type_}[{dims}] reduce-window(y, z), window={{size={size} pad={pad}}}, to_apply=f }}"""


def check(source: str, inputs: list[np.ndarray]) -> None:
    exe = compile(parse(source), target="sim:sm_90", options=Options(sim_check="all"))
    assert {k.emitter for k in exe.kernels} == {"scan"}
    got = exe.run(inputs)
    for g, w in zip(got, evaluate(parse(source), *inputs), strict=True):
        assert np.asarray(g).tobytes() == w.tobytes()


@pytest.mark.parametrize(
    ("shape", "type_", "op", "init", "how"),
    [
        ((9000,), "f32", "add", "0", {}),
        ((2, 5003), "s32", "add", "5", {}),
        ((140000,), "s8", "maximum", "-128", {}),
        ((9001,), "s32", "add", "3", {"reverse": True, "shift": 1}),
        ((9000,), "s64", "add", "0", {"shift": 1}),
        ((5001,), "bf16", "maximum", "-inf", {"reverse": True}),
    ],
)
def test_values(shape: tuple[int, ...], type_: str, op: str, init: str, how: dict[str, int]) -> None:
    """Small whole numbers: floats are exact."""
    source = program(shape, type_, op, init, **how)  # type: ignore[arg-type]
    dtype = parse(source).entry.parameters[0].shape.element_type.dtype
    check(source, [RNG.integers(-3, 4, shape).astype(dtype)])


def test_two_scans_of_one_program() -> None:
    """What the second one reads has a name with a dot."""
    first = program((9000,), "f32", "add", "0")
    twice = (
        first.replace("ROOT s =", "s =").removesuffix("}")
        + """
  w = f32[9000] add(x, y)
  q = f32[9000] reduce-window(w, z), window={size=9000 pad=8999_0}, to_apply=f
  ROOT t = (f32[9000], f32[9000]) tuple(s, q) }"""
    )
    exe = compile(parse(twice), target="sim:sm_90")
    assert {k.emitter for k in exe.kernels} == {"scan"}
    x = RNG.integers(-3, 4, 9000).astype(np.float32)
    for g, w in zip(exe.run([x]), evaluate(parse(twice), x), strict=True):
        assert np.array_equal(g, w)


def test_several_arrays() -> None:
    """A running maximum and where it was."""
    n = 5000
    check(
        f"""HloModule m
f {{ a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GE v = f32[] select(g, a, b) w = s32[] select(g, i, j)
  ROOT r = (f32[], s32[]) tuple(v, w) }}
ENTRY e {{ x = f32[{n}] parameter(0) i = s32[{n}] iota(), iota_dimension=0
  low = f32[] constant(-inf) zero = s32[] constant(0)
  s = (f32[{n}], s32[{n}]) reduce-window(x, i, low, zero), window={{size={n} pad={n - 1}_0}}, to_apply=f
  v = f32[{n}] get-tuple-element(s), index=0
  ROOT w = s32[{n}] get-tuple-element(s), index=1 }}""",
        [RNG.permutation(n).astype(np.float32)],
    )


def test_two_in_a_program() -> None:
    """The parameters of the second have names with a dot and a number, which the form of a call may not hold."""
    window = "window={size=5000 pad=4999_0}, to_apply=f"
    source = f"""HloModule m
f {{ a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }}
ENTRY e {{ x = s32[5000] parameter(0) z = s32[] constant(0) y = s32[5000] negate(x)
  s = s32[5000] reduce-window(y, z), {window} t = s32[5000] multiply(s, x)
  ROOT u = s32[5000] reduce-window(t, z), {window} }}"""
    check(source, [RNG.integers(-3, 4, 5000).astype(np.int32)])


# -- blocks that are at different points -------------------------------------------------------------------------------

N = 220_000
SOURCE = program((N,), "f64", "add", "0")


def kernel_and_plan(target: targets.Target = SIM) -> tuple[Kernel, ScanPlan]:
    body = parse(SOURCE).entry
    plan, why = single_pass(body.root)
    assert plan is not None, why
    return gpu_single_pass.emit(body, plan, f"scan_{next(_names)}", target), plan


def run(kernel: Kernel, arrays: list[np.ndarray], *, backwards: bool = False, blocks: int | None = None) -> None:
    grid = kernel.launch.grid if blocks is None else (blocks, 1, 1)
    made = compile_kernel(
        lower(kernel, "sim:sm_90"), kernel.name, grid, kernel.launch.block, checks="races,bounds", backwards=backwards
    )
    made([(a.ctypes.data, a.nbytes) for a in arrays])


def test_same_bits_whoever_is_first() -> None:
    """The last block runs by itself, as if the others had come just so far: what it stores has the same bits."""
    x, whole = RNG.standard_normal(N), np.zeros(N)
    kernel, plan = kernel_and_plan()
    assert plan.groups == 4
    flags, known = np.zeros(plan.flags, np.uint32), np.zeros(plan.results * plan.words, np.uint32)
    run(kernel, [x, whole, flags, known], backwards=True)
    np.testing.assert_allclose(whole, np.cumsum(x * x), rtol=1e-12)
    assert flags[0] == plan.tiles
    last, groups = plan.tiles - 1, FIRST_FLAG + plan.tiles
    for states in ([2, 2, 2], [2, 1, 1], [2, 2, 1], [2, 1, 2]):
        before = np.zeros_like(flags)
        before[0], before[FIRST_FLAG : FIRST_FLAG + last] = last, 1
        before[groups : groups + 3] = states
        partial = known.copy()
        own = 2 * last
        partial[own : own + 2] = 0
        out = np.full(N, -1.0)
        run(kernel_and_plan()[0], [x, out, before, partial], blocks=1)
        assert (out[: last * plan.tile] == -1).all()
        assert out[last * plan.tile :].tobytes() == whole[last * plan.tile :].tobytes()
        assert before[FIRST_FLAG + last] == 1 and (partial[own : own + 2] == known[own : own + 2]).all()


@pytest.mark.parametrize("states", [[2, 2, 2], [2, 1, 1], [2, 2, 1], [2, 1, 2]])
def test_groups_are_joined_from_the_left(states: list[int]) -> None:
    """Totals whose sum depends on the order: 1 + half an ulp is 1, but not after more than half of one."""
    kernel, plan = kernel_and_plan()
    last, groups = plan.tiles - 1, FIRST_FLAG + plan.tiles
    totals = np.array([1.0, 2.0**-53, 1.5 * 2.0**-53])
    assert (totals[0] + totals[1]) + totals[2] != (totals[0] + totals[2]) + totals[1]
    flags, known = np.zeros(plan.flags, np.uint32), np.zeros(plan.results, np.float64)
    flags[0], flags[FIRST_FLAG : FIRST_FLAG + last], flags[groups : groups + 3] = last, 1, states
    known[plan.tiles : plan.tiles + 3] = totals
    known[plan.tiles + plan.groups :][:3] = np.cumsum(totals)
    out = np.full(N, -1.0)
    run(kernel, [np.zeros(N), out, flags, known.view(np.uint32)], blocks=1)
    assert (out[last * plan.tile :] == np.cumsum(totals)[-1]).all()


def test_code() -> None:
    """A flag is released after its words, and acquired before them; neighbours are read and written at once."""
    body = parse(program((1 << 20,), "f32", "add", "0")).entry
    plan, _ = single_pass(body.root)
    assert plan is not None
    code = to_ptx(lower(gpu_single_pass.emit(body, plan, "code", targets.get("sm_90")), "sm_90"))
    assert "st.release.gpu" in code and "ld.acquire.gpu" in code and "vote.sync.ballot" in code
    assert code.count("ld.global.nc.v4") == plan.elements // 4 and "st.global.v4" in code
    assert plan.tiles == 256 and plan.groups == 256 // GROUP


def test_refusals() -> None:
    """What other kernels do."""

    def why(source: str) -> str:
        return single_pass(parse(source).entry.root)[1]

    assert "blocks need not share" in why(program((300, 9000), "f32", "add", "0"))
    assert "blocks need not share" in why(program((2000,), "f32", "add", "0"))
    assert "complex" in why(program((9000,), "c64", "add", "(0, 0)"))
    columns = "window={size=9000x1 pad=8999_0x0_0}"
    turned = program((2, 9000), "f32", "add", "0").replace("2,9000", "9000,2")
    assert "last dimension" in why(turned.replace("window={size=1x9000 pad=0_0x8999_0}", columns))
