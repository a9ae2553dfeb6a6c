"""What goes into which kernel, and why not."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron import targets
from heron.evaluator import evaluate
from heron.hlo.facts import root_parts
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from heron.trace import Decision
from tests.buffers.compiled import FUSED, assert_survives, kernels, run_passes
from tests.support import counting_loop


def fuse(text: str, *more: str) -> tuple[Module, list[Decision]]:
    module = parse(text)
    ctx = run_passes(module, ("instruction-fusion", *more))
    return module, [d for d in ctx.trace.decisions if d.rule == "instruction-fusion"]


PLUS = "plus {\n  pa = f32[] parameter(0)\n  pb = f32[] parameter(1)\n  ROOT pc = f32[] add(pa, pb)\n}\n"


def entry(body: str, calls: str = PLUS) -> str:
    return f"HloModule m\n\n{calls}\nENTRY main {{\n{body}\n}}\n"


SOFTMAX = """
  x = f32[512,1024]{1,0} parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[512]{0} reduce(x, low), dimensions={1}, to_apply=max
  mb = f32[512,1024]{1,0} broadcast(m), dimensions={0}
  s = f32[512,1024]{1,0} subtract(x, mb)
  e = f32[512,1024]{1,0} exponential(s)
  t = f32[512]{0} reduce(e, zero), dimensions={1}, to_apply=plus
  tb = f32[512,1024]{1,0} broadcast(t), dimensions={0}
  ROOT r = f32[512,1024]{1,0} divide(e, tb)"""
MAX = "max {\n  ma = f32[] parameter(0)\n  mb1 = f32[] parameter(1)\n  ROOT mc = f32[] maximum(ma, mb1)\n}\n"


def test_softmax_is_three_kernels() -> None:
    module, _, _ = assert_survives(entry(SOFTMAX, PLUS + "\n" + MAX), FUSED)
    assert kernels(module) == 3
    assert sum(i.opcode == "fusion" and i.kind == "kInput" for i in module.entry.instructions) == 2


def test_elementwise_chain_with_several_readers_is_one_kernel() -> None:
    text = entry("""
  x = f32[4096]{0} parameter(0)
  a = f32[4096]{0} sine(x)
  b = f32[4096]{0} multiply(a, a)
  c = f32[4096]{0} add(a, b)
  h = f32[] constant(0.5)
  hb = f32[4096]{0} broadcast(h), dimensions={}
  ROOT d = f32[4096]{0} multiply(c, hb)""")
    module, told = fuse(text)
    assert kernels(module) == 1 and len(module.entry.root.called[0].parameters) == 1
    assert all(told) and all(d.cost_after <= d.cost_before for d in told if d.cost_before is not None)
    assert_survives(text, FUSED)


def test_costly_work_is_not_done_again_for_every_reader_of_a_broadcast() -> None:
    text = entry("""
  x = f32[256]{0} parameter(0)
  p = f32[256]{0} power(x, x)
  b = f32[4096,256]{1,0} broadcast(p), dimensions={1}
  ROOT d = f32[4096,256]{1,0} negate(b)""")
    module, told = fuse(text)
    refused = next(d for d in told if not d and d.subject == "p")
    assert refused.reason == "most of it would be computed over and over"
    assert any(i.opcode == "power" for i in module.entry.instructions)
    _, told = fuse(text.replace("4096", "48"))
    refused = next(d for d in told if not d and d.subject == "p")
    assert "48 times per element" in refused.reason
    assert refused.cost_after is not None and refused.cost_before is not None
    assert refused.cost_after > refused.cost_before
    module, _ = fuse(text.replace("4096", "2").replace("power", "multiply"))
    assert not any(i.opcode == "multiply" for i in module.entry.instructions)


def test_what_an_output_needs_stays_and_generators_are_made_where_needed() -> None:
    text = entry("""
  x = f32[4096]{0} parameter(0)
  z = f32[] constant(1)
  ones = f32[4096]{0} broadcast(z), dimensions={}
  a = f32[4096]{0} add(x, ones)
  ROOT t = (f32[4096]{0}, f32[4096]{0}) tuple(a, ones)""")
    module, told = fuse(text)
    fusion = next(i for i in module.entry.instructions if i.opcode == "fusion" and len(i.operands) == 1)
    assert any(i.opcode == "broadcast" for i in fusion.called[0].instructions)
    assert any("cheaper to compute than to read" in d.reason for d in told)


def test_no_fusion_into_libraries_and_out_of_reductions() -> None:
    text = entry("""
  x = f32[64,64]{1,0} parameter(0)
  a = f32[64,64]{1,0} sine(x)
  d = f32[64,64]{1,0} dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  r = f32[64]{0} reduce(d, zero), dimensions={1}, to_apply=plus
  ROOT n = f32[64]{0} negate(r)""")
    module, told = fuse(text)
    assert "'d' (dot) needs it in memory" in [d.reason for d in told]
    assert [i.opcode for i in module.entry.instructions if i.opcode in ("reduce", "dot", "sine", "negate")]
    assert_survives(text, FUSED)


def test_updates_stay_in_place() -> None:
    """What is computed from the elements an update overwrites must be done before."""
    text = entry("""
  x = f32[64]{0} parameter(0)
  k = s32[] parameter(1)
  s = f32[64]{0} sine(x)
  p = f32[8]{0} slice(s), slice={[3:11]}
  q = f32[8]{0} exponential(p)
  u = f32[8]{0} slice(x), slice={[0:8]}
  w = f32[8]{0} add(q, u)
  ROOT d = f32[64]{0} dynamic-update-slice(s, w, k)""")
    module, told = fuse(text, "fusion-wrapper")
    assert "it is computed from what the kernel overwrites" in [d.reason for d in told]
    roots = {i.fused_root.opcode for i in module.entry.instructions if i.opcode == "fusion"}
    assert roots == {"sine", "add", "dynamic-update-slice"}
    assert not any(i.opcode == "copy" for i in assert_survives(text, FUSED)[0].instructions())


@pytest.mark.parametrize("read", ["gather", "slice"])
def test_a_small_product_of_overwritten_elements_is_computed_before(read: str) -> None:
    """Kernels may compute small products, so what a product reads counts as read by the kernel, too."""
    how = {
        "gather": """gather(x, k), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={1,2},
    operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,4,2}""",
        "slice": "slice(x), slice={[0:2],[0:4],[1:3]}",
    }
    text = entry(f"""
  x = f32[2,4,4]{{2,1,0}} parameter(0)
  y = f32[2,2,2]{{2,1,0}} parameter(1)
  k = s32[2,2]{{1,0}} constant({{{{0,1}},{{0,1}}}})
  j = s32[2,2]{{1,0}} parameter(2)
  g = f32[2,4,2]{{2,1,0}} {how[read]}
  d = f32[2,4,2]{{2,1,0}} dot(g, y), lhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_batch_dims={{0}},
    rhs_contracting_dims={{1}}
  ROOT s = f32[2,4,4]{{2,1,0}} scatter(x, j, d), update_window_dims={{1,2}}, inserted_window_dims={{}},
    scatter_dims_to_operand_dims={{1,2}}, input_batching_dims={{0}}, scatter_indices_batching_dims={{0}},
    index_vector_dim=1, to_apply=plus""")
    module = parse(text)
    x, y = np.arange(32, dtype=np.float32).reshape(2, 4, 4), np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    j = np.array([[0, 2], [0, 1]], np.int32)
    (wanted,) = evaluate(module, x, y, j)
    for target in ("cpu", "sim:sm_90"):
        np.testing.assert_array_equal(heron.compile(module, target=target)(x, y, j), wanted)


def _read_by_a_gather_too(pieces: int) -> str:
    """A concatenation that the kernel's elements are computed from, at their own index and at another."""
    size = 8 * pieces
    parts = "\n".join(f"  a{n} = f32[8,64]{{1,0}} slice(x), slice={{[{n}:{n + 8}], [0:64]}}" for n in range(pieces))
    joined = f"f32[{size},64]{{1,0}}"
    return entry(f"""
  x = f32[{size},64]{{1,0}} parameter(0)
  at = s32[{size},1]{{1,0}} parameter(1)
{parts}
  c = {joined} concatenate({", ".join(f"a{n}" for n in range(pieces))}), dimensions={{0}}
  g = {joined} gather(c, at), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,64}}
  ROOT r = {joined} add(c, g)""")


@pytest.mark.parametrize("pieces", [2, 9])
def test_many_pieces_are_not_told_apart_in_the_loop_of_every_piece(pieces: int) -> None:
    text = _read_by_a_gather_too(pieces)
    module, told = fuse(text)
    assert kernels(module) == (1 if pieces == 2 else 2)
    assert any("told apart" in d.reason for d in told) == (pieces > 2)
    assert_survives(text, FUSED)


@pytest.mark.parametrize("row", [1, 2, 4, 6, 8, 12, 24])
@pytest.mark.parametrize("opcode, ahead", [("exponential", True), ("negate", False)])
def test_functions_of_updates_that_go_one_by_one_are_computed_ahead(row: int, opcode: str, ahead: bool) -> None:
    assert _is_ahead_of_updates(row, opcode) == ahead


@pytest.mark.parametrize("row", [16, 64, 128, 208])
def test_functions_of_updates_whose_rows_are_vectors_are_fused(row: int) -> None:
    assert not _is_ahead_of_updates(row, "exponential")


def _is_ahead_of_updates(row: int, opcode: str) -> bool:
    """Whether a kernel computes an op on rows before another one adds them to those of an array."""
    text = entry(f"""
  y = f32[500,{row}]{{1,0}} parameter(0)
  at = s32[20000,1]{{1,0}} parameter(1)
  x = f32[20000,1,{row}]{{2,1,0}} parameter(2)
  e = f32[20000,1,{row}]{{2,1,0}} {opcode}(x)
  ROOT r = f32[500,{row}]{{1,0}} scatter(y, at, e), update_window_dims={{1,2}}, inserted_window_dims={{}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=plus""")
    return any(i.opcode == opcode for i in fuse(text)[0].entry.instructions)


def _sums_along(dims: tuple[int, int], d: int, ops: str) -> str:
    """Sums of what `ops` make of ``x`` up to each element along a dimension."""
    n, shape = dims[d], f"f32[{dims[0]},{dims[1]}]{{1,0}}"
    size, pad = ("x".join(f"{a}" if k == d else b for k in (0, 1)) for a, b in ((n, "1"), (f"{n - 1}_0", "0_0")))
    return entry(f"""
  x = {shape} parameter(0)
  zero = f32[] constant(0)
{ops.replace("SHAPE", shape)}
  ROOT r = {shape} reduce-window(e, zero), window={{size={size} pad={pad}}}, to_apply=plus""")


def _scans_alone(module: Module) -> bool:
    """Whether the kernel of the only scan computes nothing else."""
    scan = next(i for i in module.instructions() if i.opcode == "reduce-window")
    assert scan.parent is not None
    return {o.opcode for o in scan.parent.instructions} <= {"parameter", "constant", "reduce-window", "fusion"}


EXP, NEGATE = "  e = SHAPE exponential(x)", "  e = SHAPE negate(x)"


@pytest.mark.parametrize(
    "dims, d, ops, ahead",
    [
        ((300, 80), 1, EXP, True),
        ((300, 80), 1, NEGATE, False),
        ((4000, 8), 0, EXP, True),
        ((4000, 50), 0, EXP, True),
        ((4000, 8), 0, NEGATE, False),
        ((80, 4096), 0, EXP, False),
    ],
)
def test_functions_that_scans_would_compute_outside_of_vectors_are_computed_ahead(
    dims: tuple[int, int], d: int, ops: str, ahead: bool
) -> None:
    text = _sums_along(dims, d, ops)
    assert _scans_alone(fuse(text)[0]) == ahead
    assert_survives(text, FUSED)


@pytest.mark.parametrize("dims, ahead", [((300, 80), True), ((80, 4096), False)])
def test_long_functions_of_short_ops_are_computed_ahead_in_one(dims: tuple[int, int], ahead: bool) -> None:
    links = "\n".join(
        f"  a{n} = SHAPE multiply({f'e{n - 1}' if n else 'x'}, x)\n  e{n} = SHAPE add(a{n}, x)" for n in range(12)
    )
    text = _sums_along(dims, 0 if dims[0] < dims[1] else 1, f"{links}\n  e = SHAPE negate(e11)")
    module, told = fuse(text)
    assert kernels(module) == 1 + ahead and _scans_alone(module) == ahead
    assert any("would go one by one" in d.reason for d in told) == ahead
    assert_survives(text, FUSED)


@pytest.mark.parametrize("window", ["1x2x2x1 stride=1x2x2x1", "1x1x4x1 stride=1x1x4x1"])
@pytest.mark.parametrize("channels", [3, 16])
@pytest.mark.parametrize("functions, ahead", [("erf tanh sine", True), ("exponential", False), ("negate", False)])
def test_functions_too_long_for_each_element_of_a_window_are_computed_ahead(
    window: str, channels: int, functions: str, ahead: bool
) -> None:
    """Written out for all four elements they would be a loop over the window, which is none of vectors."""
    size, stride = (word.split("=")[-1] for word in window.split())
    result = "x".join(str(n // int(k)) for n, k in zip((2, 16, 16, channels), stride.split("x"), strict=True))
    shape, names = f"f32[2,16,16,{channels}]", functions.split()
    links = "\n".join(f"  f{n + 1} = {shape} {name}(f{n})" for n, name in enumerate(names))
    text = entry(f"""
  f0 = {shape} parameter(0)
  zero = f32[] constant(0)
{links}
  e = {shape} multiply(f{len(names)}, f0)
  ROOT r = f32[{result.replace("x", ",")}] reduce-window(e, zero), window={{size={size} stride={stride}}}, to_apply=plus""")  # noqa: E501
    assert _scans_alone(fuse(text)[0]) == ahead
    assert_survives(text, FUSED)


@pytest.mark.parametrize(("n", "ahead"), [(6, True), (64, False)])
def test_a_small_array_that_two_small_kernels_read_is_computed_once(n: int, ahead: bool) -> None:
    """It stays in the first cache: its work weighs more there than its bytes."""
    text = entry(
        f"""
  x = f32[{n},{n}] parameter(0)
  t = f32[{n},{n}] tanh(x)
  a = f32[{n},{n}] add(t, x)
  b = f32[{n},{n}] transpose(a), dimensions={{1,0}}
  zero = f32[] constant(0)
  s = f32[{n}] reduce(a, zero), dimensions={{1}}, to_apply=plus
  ROOT o = (f32[{n},{n}], f32[{n}]) tuple(b, s)""",
        PLUS,
    )
    module, told = fuse(text)
    assert any(not d and d.subject == "a" and "2 times per element" in d.reason for d in told) == ahead
    assert_survives(text, FUSED)


@pytest.mark.parametrize(("rows", "ahead"), [(20, True), (500, False)])
def test_elements_in_the_first_cache_are_not_computed_for_each_place_that_reads_them(rows: int, ahead: bool) -> None:
    """A kernel that computes differences of neighbours would have each four times."""
    parts = {
        "a": f"[0:{rows - 1}], [0:63]", "b": f"[1:{rows}], [0:63]", "c": f"[0:{rows - 1}], [1:64]",
        "d": f"[1:{rows}], [1:64]",
    }  # fmt: skip
    slices = "".join(
        f"""
  {name} = f32[{rows - 1},63] slice(t), slice={{{part}}}"""
        for name, part in parts.items()
    )
    text = entry(f"""
  x = f32[{rows},64] parameter(0)
  y = f32[{rows},64] multiply(x, x)
  z = f32[{rows},64] divide(y, x)
  t = f32[{rows},64] add(z, y){slices}
  ab = f32[{rows - 1},63] subtract(a, b)
  cd = f32[{rows - 1},63] subtract(c, d)
  ROOT r = f32[{rows - 1},63] multiply(ab, cd)""")
    _, told = fuse(text)
    assert any(not d and d.subject == "t" and "times per element" in d.reason for d in told) == ahead
    assert_survives(text, FUSED)


@pytest.mark.parametrize(("taken", "ahead"), [(2, False), (12, True)])
def test_a_few_elements_are_not_computed_once_for_each_time_that_a_gather_chooses_them(taken: int, ahead: bool) -> None:
    text = entry(f"""
  x = f32[3,4] parameter(0)
  rows = s32[{taken},1] parameter(1)
  t = f32[3,4] tanh(x)
  ROOT g = f32[{taken},4] gather(t, rows), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}},
    index_vector_dim=1, slice_sizes={{1,4}}""")
    _, told = fuse(text)
    assert any(not d and d.subject == "t" and "4 times per element" in d.reason for d in told) == ahead
    assert_survives(text, FUSED)


def test_a_function_is_not_computed_in_a_loop_that_chooses_pieces() -> None:
    """A gather of a concatenation has a branch for each element: the index, a function's, would go one by one."""
    text = entry(
        """
  x = f32[16,16] parameter(0)
  y = f32[16,16] parameter(1)
  pieces = f32[32,16] concatenate(x, y), dimensions={0}
  angle = f32[16,16] atan2(x, y)
  scale = f32[] constant(9)
  scales = f32[16,16] broadcast(scale), dimensions={}
  at = f32[16,16] multiply(angle, scales)
  row = s32[16,16] convert(at)
  g = f32[16,16,1,1] gather(pieces, index), offset_dims={2,3}, collapsed_slice_dims={}, start_index_map={0,1},
    index_vector_dim=2, slice_sizes={1,1}
  ROOT r = f32[16,16] reshape(g)""".replace(
            "  g = f32",
            """  column = s32[16,16] iota(), iota_dimension=1
  row1 = s32[16,16,1] reshape(row)
  column1 = s32[16,16,1] reshape(column)
  index = s32[16,16,2] concatenate(row1, column1), dimensions={2}
  g = f32""",
        )
    )
    _, told = fuse(text)
    assert any(not d and d.reason == "would go one by one" for d in told)
    assert_survives(text, FUSED)


@pytest.mark.parametrize(("t", "steps", "ahead"), [("u32", 180, True), ("u32", 40, False), ("u64", 180, True)])
@pytest.mark.parametrize("shared", [False, True])
def test_a_long_chain_that_two_kernels_read_is_computed_once(t: str, steps: int, ahead: bool, shared: bool) -> None:
    """As the bits of a random number are: op by op they seem to cost less than an array. What a third reader has in
    memory anyhow counts for none of them."""
    lines = [f"x = {t}[300,40] parameter(0)", f"y = {t}[300] parameter(1)", f"c0 = {t}[300,40] add(x, x)"]
    for k in range(steps):
        op = ("multiply", "xor", "add")[k % 3]
        lines.append(f"c{k + 1} = {t}[300,40] {op}(c{k}, x)")
    last = f"c{steps}"
    lines += [
        f"z = {t}[] constant(0)", f"s = {t}[300] reduce({last}, z), dimensions={{1}}, to_apply=plus",
        f"w = {t}[300] multiply(s, y)", f"b = {t}[300,40] broadcast(w), dimensions={{0}}",
        f"m = {t}[300,40] multiply({last}, b)",
    ]  # fmt: skip
    outputs = ["m", "w", *([f"c{steps - 1}"] if shared else [])]
    shapes = [f"{t}[300,40]", f"{t}[300]", *([f"{t}[300,40]"] if shared else [])]
    lines.append(f"ROOT o = ({', '.join(shapes)}) tuple({', '.join(outputs)})")
    module, decisions = fuse(entry("\n  ".join(lines), PLUS.replace("f32", t)))
    told = [d.reason for d in decisions if not d and d.subject == last]
    assert any("2 times per element" in reason for reason in told) == (ahead and not shared)
    arrays = [
        np.arange(12_000, dtype=np.uint32).reshape(300, 40).astype(f"uint{t[1:]}"),
        np.arange(300).astype(f"uint{t[1:]}"),
    ]
    for got, want in zip(heron.compile(module).run(arrays), evaluate(module, *arrays), strict=True):
        np.testing.assert_array_equal(got, want)


def test_limits() -> None:
    parameters = "\n".join(f"  p{n} = f32[8]{{0}} parameter({n})" for n in range(50))
    sums = "\n".join(
        f"  {'ROOT ' if n == 49 else ''}s{n} = f32[8]{{0}} add({'p0' if n == 1 else f's{n - 1}'}, p{n})"
        for n in range(1, 50)
    )
    module, told = fuse(entry(parameters + "\n" + sums))
    widest = max(len(i.operands) for i in module.entry.instructions if i.opcode == "fusion")
    assert kernels(module) == 2 and widest <= 32
    assert any("more than 32 inputs" in d.reason for d in told)


def test_loop_bodies_and_branches_are_fused_too() -> None:
    text = counting_loop(5, 64)
    module, assignment, _ = assert_survives(text, FUSED)
    assert kernels(module) == 4  # counter, vector, condition; what the state begins with
    assert assignment.temp_bytes <= 64, "the state is updated where it lies"


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_machines_weigh_differently_but_agree_on_values(target: str) -> None:
    from heron.passes.fusion.instruction_fusion import InstructionFusion

    module = parse(entry(SOFTMAX, PLUS + "\n" + MAX))
    assert InstructionFusion(target).run(module, PassContext())


def test_no_pair_is_left_undecided() -> None:
    _, told = fuse(entry(SOFTMAX, PLUS + "\n" + MAX))
    assert {"e", "s", "mb", "tb"} <= {d.subject for d in told}


def test_masks_are_made_where_they_are_needed() -> None:
    """A mask of positions takes a few operations and no memory, however often it is made; sines of them do not."""
    text = """
  x = f32[16,64,64]{{2,1,0}} parameter(0)
  i = s32[64,64]{{1,0}} iota(), iota_dimension=0
  j = s32[64,64]{{1,0}} iota(), iota_dimension=1
  {mask}
  b = pred[16,64,64]{{2,1,0}} broadcast(m), dimensions={{1,2}}
  z = f32[] constant(0)
  zb = f32[16,64,64]{{2,1,0}} broadcast(z), dimensions={{}}
  ROOT r = f32[16,64,64]{{2,1,0}} select(b, x, zb)"""
    plain = entry(text.format(mask="m = pred[64,64]{1,0} compare(i, j), direction=GE"))
    module, told = fuse(plain)
    assert kernels(module) == 1
    assert any(d.ok and d.reason.endswith("it reads no memory") for d in told)
    assert_survives(plain, FUSED)
    costly = """f = f32[64,64]{1,0} convert(i)
  g = f32[64,64]{1,0} convert(j)
  s = f32[64,64]{1,0} sine(f)
  m = pred[64,64]{1,0} compare(s, g), direction=GE"""
    module, told = fuse(entry(text.format(mask=costly)))
    assert kernels(module) == 2


def test_numbers_are_no_arrays_where_kernels_are_full() -> None:
    """A kernel that may have no more code reads a number, not an array that is full of it."""
    lines = ["x = f32[1000] parameter(0)", "s = f32[40] parameter(1)"]
    for k in range(40):
        lines += [
            f"n{k} = f32[1] slice(s), slice={{[{k}:{k + 1}]}}",
            f"m{k} = f32[] reshape(n{k})",
            f"b{k} = f32[1000] broadcast(m{k}), dimensions={{}}",
        ]
    for chain in "yz":
        total = "x"
        for k in range(40):
            lines += [
                f"p{chain}{k} = f32[1000] multiply(b{k if chain == 'y' else 39 - k}, {total})",
                f"{chain}{k} = f32[1000] sine(p{chain}{k})",
            ]
            total = f"{chain}{k}"
    lines.append("ROOT r = (f32[1000], f32[1000]) tuple(y39, z39)")
    text = "HloModule m\nENTRY e {\n" + "\n".join(lines) + " }"
    module, _, _ = assert_survives(text, FUSED)
    kernels = [i for i in module.entry.instructions if i.opcode == "fusion"]
    stored = [o.opcode for i in kernels for o in root_parts(i.calls)]
    assert stored.count("sine") > 2, "two kernels would have too much code"
    assert "broadcast" not in stored


def _corners(second: str, root: str = "ROOT r = f32[4096] add(a, b)") -> str:
    """Two corners of a bilinear sample, whose rows cost a remainder and are read by both gathers."""
    return entry(f"""
  image = f32[64,64] parameter(0)
  y = f32[4096] parameter(1)
  x = s32[4096] parameter(2)
  size = f32[] constant(64)
  sizes = f32[4096] broadcast(size), dimensions={{}}
  s = f32[4096] sine(y)
  m = f32[4096] multiply(s, sizes)
  row = s32[4096] convert(m)
  one = s32[] constant(1)
  ones = s32[4096] broadcast(one), dimensions={{}}
  next = s32[4096] add(x, ones)
  rows = s32[4096,1] reshape(row)
  left = s32[4096,1] reshape(x)
  right = s32[4096,1] reshape(next)
  first = s32[4096,2] concatenate(rows, left), dimensions={{1}}
  then = s32[4096,2] concatenate({second}, right), dimensions={{1}}
  a = f32[4096] gather(image, first), offset_dims={{}}, collapsed_slice_dims={{0,1}}, start_index_map={{0,1}}, index_vector_dim=1, slice_sizes={{1,1}}
  b = f32[4096] gather(image, then), offset_dims={{}}, collapsed_slice_dims={{0,1}}, start_index_map={{0,1}}, index_vector_dim=1, slice_sizes={{1,1}}
  {root}""")


def test_an_index_that_gathers_share_is_computed_once() -> None:
    text = _corners("rows")
    module, _ = fuse(text)
    assert kernels(module) == 1
    assert_survives(text, FUSED)


def test_an_index_read_at_two_places_is_stored() -> None:
    text = _corners("back").replace("  first =", "  back = s32[4096,1] reverse(rows), dimensions={0}\n  first =")
    module, told = fuse(text)
    assert kernels(module) == 2
    assert any(not d.ok and "2 times per element" in d.reason for d in told)


def test_a_long_index_that_several_kernels_read_is_stored() -> None:
    both = "r = f32[4096] add(a, b)\n  p = f32[4096] multiply(a, b)\n  ROOT t = (f32[4096], f32[4096]) tuple(r, p)"
    text = _corners("rows", both)
    module, told = fuse(text)
    assert kernels(module) == 3
    assert any(d.reason == "2 kernels would have its code" for d in told)
    assert_survives(text, FUSED)


def test_a_full_kernel_reads_parts_of_a_parameter_itself() -> None:
    lines = ["x = f32[1000] parameter(0)", "whole = f32[2000] parameter(1)"]
    total = "x"
    for k in range(40):
        lines += [
            f"part{k} = f32[1000] slice(whole), slice={{[{k}:{1000 + k}]}}",
            f"m{k} = f32[1000] multiply(part{k}, {total})",
            f"s{k} = f32[1000] sine(m{k})",
        ]
        total = f"s{k}"
    lines.append(f"ROOT r = f32[1000] negate({total})")
    text = "HloModule m\nENTRY e {\n" + "\n".join(lines) + " }"
    module, _, _ = assert_survives(text, FUSED)
    stored = [o.opcode for i in module.entry.instructions if i.opcode == "fusion" for o in root_parts(i.calls)]
    assert stored.count("sine") > 0, "one kernel would have too much code"
    assert "slice" not in stored


def _doubled(levels: int, width: int, by_turns: bool) -> str:
    """Rows twice as long with each level: halves one after the other, or elements by turns."""
    lines = [f"  x0 = f32[50,{width}]{{1,0}} parameter(0)"]
    for n in range(levels):
        w, into = width << n, "ROOT r" if n == levels - 1 else f"x{n + 1}"
        lines += [f"  a{n} = f32[50,{w}]{{1,0}} multiply(x{n}, x{n})", f"  b{n} = f32[50,{w}]{{1,0}} negate(x{n})"]
        if not by_turns:
            lines.append(f"  {into} = f32[50,{2 * w}]{{1,0}} concatenate(a{n}, b{n}), dimensions={{1}}")
            continue
        lines += [f"  u{n} = f32[50,{w},1]{{2,1,0}} reshape(a{n})", f"  v{n} = f32[50,{w},1]{{2,1,0}} reshape(b{n})"]
        lines.append(f"  c{n} = f32[50,{w},2]{{2,1,0}} concatenate(u{n}, v{n}), dimensions={{2}}")
        lines.append(f"  {into} = f32[50,{2 * w}]{{1,0}} reshape(c{n})")
    return entry("\n".join(lines), "")


@pytest.mark.parametrize(
    ("levels", "width", "by_turns", "count"),
    [(2, 100, False, 1), (3, 100, False, 2), (4, 100, False, 2), (2, 100, True, 2), (3, 100, True, 3), (4, 2, True, 1)],
)
def test_few_concatenations_stand_inside_of_others(levels: int, width: int, by_turns: bool, count: int) -> None:
    """A kernel's loops are cut where one joins, and along rows where another does; short rows are written out."""
    module, decisions = fuse(_doubled(levels, width, by_turns))
    assert kernels(module) == count
    assert any("inside of other concatenations" in d.reason for d in decisions) == (count > 1)
    x = np.linspace(-1, 1, 50 * width, dtype=np.float32).reshape(50, width)
    found = heron.compile(parse(_doubled(levels, width, by_turns)), "cpu").run([x])[0]
    np.testing.assert_array_equal(found, evaluate(parse(_doubled(levels, width, by_turns)), x)[0])


def _turned(dims: tuple[int, int, int], op: str) -> str:
    a, b, c = dims
    return entry(
        f"  x = f32[{a},{b},{c}]{{2,1,0}} parameter(0)\n  f = f32[{a},{b},{c}]{{2,1,0}} {op}(x)\n"
        f"  t = f32[{a},{c},{b}]{{2,1,0}} transpose(f), dimensions={{0,2,1}}\n"
        f"  n = f32[{a},{c},{b}]{{2,1,0}} negate(t)\n  ROOT r = f32[{a},{c},{b}]{{2,1,0}} {op}(n)",
        "",
    )


@pytest.mark.parametrize(
    ("dims", "op", "machine", "count"),
    [
        ((500, 4, 7), "tanh", "x86-64-v3", 3), ((500, 4, 7), "tanh", "x86-64-v4", 1),
        ((500, 4, 7), "abs", "x86-64-v3", 1), ((5, 4, 7), "tanh", "x86-64-v3", 1), ((5, 100, 40), "tanh", "x86-64-v3", 1),
    ],
)  # fmt: skip
def test_functions_stay_apart_from_short_rows_that_are_turned(
    dims: tuple[int, int, int], op: str, machine: str, count: int
) -> None:
    """Without masks they would go one by one, before the transpose and behind it; with them, not."""
    module = parse(_turned(dims, op))
    ctx = PassContext(target=targets.get(machine))
    ctx.run_pass(registry.get("instruction-fusion"), module)
    ctx.run_pass(registry.get("dce"), module)
    assert sum(i.opcode != "parameter" for i in module.entry.instructions) == count
    x = np.linspace(-2, 2, int(np.prod(dims)), dtype=np.float32).reshape(dims)
    want = evaluate(parse(_turned(dims, op)), x)[0]
    np.testing.assert_allclose(evaluate(module, x)[0], want, rtol=0)
    np.testing.assert_allclose(heron.compile(parse(_turned(dims, op)), "cpu").run([x])[0], want, rtol=1e-6)


def _transposed(times: int) -> str:
    """A row of transposes of reshaped arrays, from v0 on."""
    return "".join(
        f"m{n} = f32[4,6] reshape(v{n}) t{n} = f32[6,4] transpose(m{n}), dimensions={{1,0}} "
        f"v{n + 1} = f32[24] reshape(t{n})\n"
        for n in range(times)
    )


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("given", [False, True])
def test_views_that_take_dimensions_apart_are_cut(target: str, given: bool) -> None:
    """The index of an element would be twice as long behind each of them."""
    body = f"v0 = f32[24] parameter(0) {_transposed(30)} ROOT r = f32[24] sine(v30)"
    main = "x = f32[24] parameter(0) ROOT f = f32[24] fusion(x), kind=kLoop, calls=body"
    text = f"HloModule m body {{ {body} }} ENTRY e {{ {main} }}" if given else f"HloModule m ENTRY e {{ {body} }}"
    x = np.arange(24, dtype=np.float32)
    found = heron.compile(text, target=target).run([x])
    np.testing.assert_allclose(found[0], evaluate(parse(text), x)[0], rtol=1e-6)
