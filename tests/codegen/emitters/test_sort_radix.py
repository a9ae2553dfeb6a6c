"""Radix sorts on the simulated GPU: values, orders of blocks, and what tiles know of each other."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

import heron
from heron import HeronError, Options, targets
from heron.analysis.cost.kernel import kernel_cost
from heron.analysis.cost.program import program_cost
from heron.analysis.fusion.radix_plan import FIRST_BIN, RADIX, THREADS, RadixPlan, plan_of
from heron.analysis.fusion.sort_keys import keys_of
from heron.codegen.emitters.control_words import emit_clear
from heron.codegen.emitters.sort import gpu_radix, gpu_radix_pass
from heron.codegen.kernel import Kernel
from heron.codegen.llvm.nvptx import to_ptx
from heron.codegen.sim.kernel import compile_kernel
from heron.hlo.text import parse
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from heron.runtime.sim.launcher import SimKernel
from tests.codegen.run_kernel import evaluate, lower, root_fusion

RNG = np.random.default_rng(7)
SIM = targets.get("sim:sm_90")
_names = itertools.count()


def program(shape: tuple[int, ...], type_: str, direction: str = "LT") -> str:
    dims, total = ",".join(map(str, shape)), ", type=TOTALORDER" if type_[0] in "fb" else ""
    return f"""HloModule m
before {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) i = s16[] parameter(2) j = s16[] parameter(3)
  ROOT r = pred[] compare(a, b), direction={direction}{total} }}
ENTRY e {{ x = {type_}[{dims}] parameter(0) i = s16[{dims}] parameter(1)
  ROOT s = ({type_}[{dims}], s16[{dims}]) sort(x, i), dimensions={{{len(shape) - 1}}}, is_stable=true, to_apply=before }}"""


def sort_of(source: str) -> gpu_radix.RadixSort:
    sort = next(i for i in parse(source).instructions() if i.opcode == "sort")
    keys = keys_of(sort.to_apply)
    assert keys is not None
    shapes = tuple(o.shape for o in sort.operands)
    digits = sum(k.bits // 8 for k in keys)
    return gpu_radix.RadixSort(
        shapes, sort.to_apply, keys, plan_of(shapes[0].dims, [s.element_type.byte_size for s in shapes], digits)
    )


def made(kernel: Kernel, backwards: bool = False, blocks: int | None = None) -> SimKernel:
    grid = kernel.launch.grid if blocks is None else (blocks, 1, 1)
    text = lower(kernel, "sim:sm_90")
    return compile_kernel(text, kernel.name, grid, kernel.launch.block, checks="all", backwards=backwards)


def call(kernel: SimKernel, arrays: list[np.ndarray]) -> None:
    kernel([(a.ctypes.data, a.nbytes) for a in arrays])


def check(source: str, inputs: list[np.ndarray], backwards: bool = False, made_there: tuple[int, ...] = ()) -> None:
    """All kernels, one after another, against the evaluator: bits, since the sort is stable."""
    sort, name = sort_of(source), f"radix_{next(_names)}"
    first = dataclasses.replace(sort, made=made_there)
    want = evaluate(root_fusion(source), inputs)
    control = np.full(sort.plan.words, 0xCDCDCDCD, np.uint32)
    call(made(emit_clear(sort.plan.words, "sort", f"{name}_clear", SIM)), [control])
    assert not control.any()
    now = [np.ascontiguousarray(a) for n, a in enumerate(inputs) if n not in made_there]
    call(made(gpu_radix.emit_count(first, f"{name}_count", SIM), backwards), [*now, control])
    moving = made(gpu_radix_pass.emit_pass(sort, f"{name}_pass", SIM), backwards=backwards)
    for n in range(sort.plan.digits):
        moved = [np.full(a.shape, 77, a.dtype) for a in inputs]
        kernel = (
            moving if n or not made_there else made(gpu_radix_pass.emit_pass(first, f"{name}_first", SIM), backwards)
        )
        call(kernel, [*now, *moved, control])
        now = moved
    for got, expected in zip(now, want, strict=True):
        assert got.tobytes() == expected.tobytes()


def keys(shape: tuple[int, ...], type_: str) -> list[np.ndarray]:
    """All bits of the type, many equal ones; and positions, as far as 16 bits tell them."""
    dtype = parse(program((1,), type_)).entry.parameters[0].shape.element_type.dtype
    few = RNG.integers(0, 256, (300, np.dtype(dtype).itemsize), np.uint8).view(dtype).reshape(-1)
    x = RNG.choice(few, shape) if np.dtype(dtype) != np.bool_ else RNG.integers(0, 2, shape).astype(bool)
    positions = np.broadcast_to(np.arange(shape[-1]).astype(np.int16), shape)
    return [x, positions]


@pytest.mark.parametrize(
    ("shape", "type_", "direction"),
    [
        ((9000,), "s8", "LT"),
        ((9000,), "pred", "GT"),
        ((2, 5000), "bf16", "GT"),
        ((2, 2, 4096), "u16", "LT"),
        ((3, 300), "f32", "LT"),
        ((4097,), "f32", "GT"),
        ((1, 2), "s64", "LT"),
    ],
)
def test_values(shape: tuple[int, ...], type_: str, direction: str) -> None:
    check(program(shape, type_, direction), keys(shape, type_))


@pytest.mark.parametrize("type_", ["u8", "f32"])
def test_positions_are_made(type_: str) -> None:
    """By the first pass, of one byte or of several; the second row begins again."""
    check(program((2, 5000), type_), keys((2, 5000), type_), made_there=(1,))


def test_argsort_reads_no_positions() -> None:
    """From a program to values: no kernel writes them before, and its text can be read again."""
    source = """HloModule m
before { a = u16[] parameter(0) b = u16[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e { x = u16[2,5000] parameter(0) i = s32[2,5000] iota(), iota_dimension=1
  s = (u16[2,5000], s32[2,5000]) sort(x, i), dimensions={1}, is_stable=true, to_apply=before
  ROOT r = s32[2,5000] get-tuple-element(s), index=1 }"""
    module = parse(source)
    assert registry.get("sort-rewriter", always=True).run(module, PassContext(target=targets.get("sm_90")))
    module = parse(str(module))
    x = RNG.integers(0, 300, (2, 5000)).astype(np.uint16)
    wanted = np.argsort(x, axis=1, kind="stable")
    (found,) = heron.evaluate(module, x)
    np.testing.assert_array_equal(found, wanted)
    executable = heron.compile(module, target="sim:sm_90")
    np.testing.assert_array_equal(executable(x), wanted)
    kernels = [k.name for k in executable.kernels]
    assert len(kernels) == 4 and not any("iota" in k for k in kernels)  # clear, count, first pass, second pass


@pytest.mark.parametrize("bad", ["7", "x", "0,0"])
def test_a_call_with_other_positions_is_an_error(bad: str) -> None:
    source = (
        program((9,), "u8")
        .replace("s16", "s32")
        .replace("i = s32[9] parameter(1)", "i = s32[9] iota(), iota_dimension=0")
    )
    module = parse(source)
    registry.get("sort-rewriter", always=True).run(module, PassContext(target=targets.get("sm_90")))
    (call,) = [i for i in module.instructions() if i.opcode == "custom-call"]
    numbers = ", ".join(f'"{n}"' for n in bad.split(","))
    call.extras["backend_config"] = f'{{"positions": [{numbers}]}}'
    with pytest.raises(HeronError, match="HLO170"):
        heron.compile(module, target="sim:sm_90")


def test_positions_that_are_none() -> None:
    """Those along another dimension are read; of an array alone there is nothing to sort by but itself."""
    for text, operands in (
        ("i = s32[3,4096] iota(), iota_dimension=0", 2),
        ("i = s32[3,4096] iota(), iota_dimension=1", 1),
    ):
        source = f"""HloModule m
before {{ a = u8[] parameter(0) b = u8[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }}
ENTRY e {{ x = u8[3,4096] parameter(0) {text}
  ROOT s = (u8[3,4096], s32[3,4096]) sort(x, i), dimensions={{1}}, is_stable=true, to_apply=before }}"""
        module = parse(source)
        registry.get("sort-rewriter", always=True).run(module, PassContext(target=targets.get("sm_90")))
        (call,) = [i for i in module.instructions() if i.opcode == "custom-call"]
        assert len(call.operands) == operands


def test_blocks_in_any_order() -> None:
    """Tiles are taken by ticket: the last block may come first."""
    check(program((2, 9000), "u16"), keys((2, 9000), "u16"), backwards=True)


def test_all_equal() -> None:
    """One value has all counts; with values of 255 what is past the end of a row counts as equal."""
    for value in (0, 255):
        x, positions = keys((1, 4500), "u8")
        check(program((1, 4500), "u8"), [np.full_like(x, value), positions])


def test_several_keys() -> None:
    """A comparator that asks a second key where the first is equal."""
    source = """HloModule m
before { a = u8[] parameter(0) b = u8[] parameter(1) i = s8[] parameter(2) j = s8[] parameter(3)
  first = pred[] compare(a, b), direction=LT
  same = pred[] compare(a, b), direction=EQ
  second = pred[] compare(i, j), direction=GT
  ROOT r = pred[] select(same, second, first) }
ENTRY e { x = u8[4500] parameter(0) i = s8[4500] parameter(1)
  ROOT s = (u8[4500], s8[4500]) sort(x, i), dimensions={0}, is_stable=true, to_apply=before }"""
    sort = sort_of(source)
    assert [(k.bits, k.descending) for k in sort.keys] == [(8, False), (8, True)]
    check(source, [RNG.integers(0, 9, 4500).astype(np.uint8), RNG.integers(-128, 128, 4500).astype(np.int8)])


@pytest.mark.parametrize("known", ["nearest", "first", "mixed"])
def test_tiles_that_do_not_know_all(known: str) -> None:
    """A tile adds up what the tiles before say of themselves, back to one that says it knows of all before itself.

    Only the last tile's block runs, as if the others had come just so far.
    """
    source, length = program((20000,), "u8"), 20000
    sort = sort_of(source)
    plan = sort.plan
    x, positions = keys((length,), "u8")
    counts = np.array([np.bincount(x[n : n + plan.tile], minlength=RADIX) for n in range(0, length, plan.tile)])
    last = plan.tiles - 1
    complete = {"nearest": {last - 1}, "first": {0}, "mixed": {0, last - 2}}[known]
    control = np.zeros(plan.words, np.uint32)
    control[0] = last  # the ticket
    control[FIRST_BIN : FIRST_BIN + RADIX] = counts.sum(0)
    for tile in range(last):
        flag, count = (2, counts[: tile + 1].sum(0)) if tile in complete else (1, counts[tile])
        at = plan.first_state + tile * RADIX
        control[at : at + RADIX] = (flag << plan.count_bits) | count
    out = [np.full_like(x, 0), np.full(length, -1, np.int16)]
    kernel = made(gpu_radix_pass.emit_pass(sort, f"last_{known}", SIM), blocks=1)
    call(kernel, [x, np.ascontiguousarray(positions), *out, control])
    order = np.argsort(x, kind="stable")
    mine = order >= last * plan.tile
    assert (out[1][mine] == positions[order[mine]]).all() and (out[1][~mine] == -1).all()
    assert (control[plan.first_state + last * RADIX :][:RADIX] >> plan.count_bits == 2).all()


def test_code() -> None:
    """Words that blocks speak by are read and written at once, past the caches of a core; nothing else waits."""
    kernel = gpu_radix_pass.emit_pass(sort_of(program((20000,), "f32")), "code", targets.get("sm_90"))
    assert kernel.launch.block == (THREADS, 1, 1)
    code = to_ptx(lower(kernel, "sm_90"))
    assert "ld.relaxed.gpu" in code and "st.relaxed.gpu" in code and "match.any.sync.b32" in code
    assert "atom.global.add.u32" in code and "atom.shared.add.u32" in code


def test_plan() -> None:
    """Memory by type and length; what no plan can do is told."""
    assert RadixPlan(1, 1 << 22, (4,), 4).moved < 10.5 * (1 << 24)
    assert RadixPlan(1, 1 << 20, (8, 8), 8).items == 8
    assert "shared memory" in RadixPlan(1, 1 << 20, (16,) * 20, 4).refusal()
    assert "bits count" in RadixPlan(1, 1 << 29, (4,), 4).refusal()
    assert not RadixPlan(1, 1 << 26, (4, 4), 4).refusal()


def test_whole_program_and_its_cost() -> None:
    """From the sort to its kernels: the decision, three kernels for six steps, bytes as the plan says."""
    module = parse(program((1, 1 << 20), "f32"))
    exe = heron.compile(parse(program((1, 1 << 20), "f32")), target="sm_90")
    assert len(exe.kernels) == 3
    (decision,) = [d for d in exe.trace.decisions if d.object == "radix sort"]
    assert decision.ok and decision.cost_after < decision.cost_before
    registry.get("sort-rewriter").run(module, PassContext(Options(), target=targets.get("sm_90")))
    call = next(i for i in module.instructions() if i.opcode == "custom-call")
    plan, target = sort_of(program((1, 1 << 20), "f32")).plan, targets.get("sm_90")
    assert kernel_cost(call).moved == plan.moved
    (step,) = program_cost(module, target).steps
    assert step.seconds == plan.seconds(target)
