"""The loop emitter: its IR, its choice of loops, threads and vectors, and large random fusions run on both targets."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from heron import targets
from heron.analysis.fusion.fusion import as_fusion
from heron.analysis.fusion.loop_space import Space, output_space
from heron.analysis.fusion.partition import partition
from heron.codegen.emit import emit_fusion
from heron.codegen.emitters.cpu_plan import plan_cpu
from heron.codegen.emitters.loops import plan_gpu
from heron.codegen.kernel import Kernel
from heron.codegen.transforms import pipeline
from heron.codegen.transforms.options import TransformOptions
from heron.errors import HeronError
from heron.hlo.ir import types
from tests.codegen.run_gpu_kernel import ptx
from tests.codegen.run_kernel import check, root_fusion
from tests.codegen.test_elemental_indexing import array, source


def emitted(target: str, shapes: list[str], body: str) -> Kernel:
    kernel = emit_fusion(root_fusion(source(shapes, body)), "k", targets.get(target))
    kernel.module.verify()
    return kernel


GOLDEN = Path(__file__).parent / "golden"
BIAS = (
    ["f32[6,512,64]", "f32[64]"],
    (
        "b = f32[6,512,64] broadcast(p1), dimensions={2}\n a = f32[6,512,64] add(p0, b)\n"
        " ROOT r = f32[6,512,64] multiply(a, a)"
    ),
)


def test_cpu_golden(golden: Callable[[Path, str], None]) -> None:
    kernel = emitted("cpu", *BIAS)
    golden(GOLDEN / "loop_bias_cpu.mlir", f"{kernel.module}\n")
    assert kernel.launch.work_items == 3072 and kernel.emitter == "loop"
    assert [(a.kind, a.index, a.alias) for a in kernel.args] == [("in", 0, None), ("in", 1, None), ("out", 0, None)]


def test_gpu_golden(golden: Callable[[Path, str], None]) -> None:
    kernel = emitted("sm_90", *BIAS)
    golden(GOLDEN / "loop_bias_gpu.mlir", f"{kernel.module}\n")
    assert (kernel.launch.grid, kernel.launch.block) == ((384, 1, 1), (128, 1, 1))


def space_of(shapes: list[str], body: str) -> Space:
    fusion = as_fusion(root_fusion(source(shapes, body)))
    root = fusion.roots[0]
    return output_space(fusion.outputs, root.shape, partition([root]))


SLICE = """d = {0} dynamic-slice(p0, p1, p1, p1), dynamic_slice_sizes={{{1}}}
 ROOT r = {0} negate(d)"""


@pytest.mark.parametrize(
    "shapes, body, runs",
    [
        (["f32[4,5,6]"], "ROOT r = f32[4,5,6] negate(p0)", [[0, 1, 2]]),
        (["f32[120]"], "a = f32[4,5,6] reshape(p0)\n ROOT r = f32[4,5,6] negate(a)", [[0, 1, 2]]),
        (["f32[6]"], "ROOT r = f32[4,5,6] broadcast(p0), dimensions={2}", [[0, 1], [2]]),
        (["f32[4]"], "ROOT r = f32[4,5,6] broadcast(p0), dimensions={0}", [[0], [1, 2]]),
        (["f32[4,6,5]"], "ROOT r = f32[4,5,6] transpose(p0), dimensions={0,2,1}", [[0], [1], [2]]),
        (["f32[6,4,5]"], "ROOT r = f32[4,5,6] transpose(p0), dimensions={1,2,0}", [[0, 1], [2]]),
        (["f32[4,5,9]"], "ROOT r = f32[4,5,6] slice(p0), slice={[0:4],[0:5],[0:6]}", [[0, 1], [2]]),
        ([], "ROOT r = s32[4,5,6] iota(), iota_dimension=1", [[0], [1], [2]]),
        (["f32[4,1,6]"], "ROOT r = f32[4,1,6] negate(p0)", [[0, 1, 2]]),
        # where a slice begins does not matter, but whether it has whole rows
        (["f32[9,5,6]", "s32[]"], SLICE.format("f32[4,5,6]", "4,5,6"), [[0, 1, 2]]),
        (["f32[9,5,6]", "s32[]"], SLICE.format("f32[4,3,6]", "4,3,6"), [[0], [1, 2]]),
        (["f32[9,5,6]", "s32[]"], SLICE.format("f32[4,5,2]", "4,5,2"), [[0, 1], [2]]),
        (["f32[9,6,5]", "s32[]"], SLICE.format("f32[1,6,5]{1,2,0}", "1,6,5"), [[0, 1], [2]]),
    ],
)
def test_contiguous_runs(shapes: list[str], body: str, runs: list[list[int]]) -> None:
    assert [list(run) for run in space_of(shapes, body).runs] == runs
    check(source(shapes, body), [array(s) for s in shapes], parts=3)


@pytest.mark.parametrize(
    "shapes, body, sizes",
    [
        # heads back beside each other: the last dimension is cut where the reshape divides it
        (
            ["f32[4,10,64]"],
            "t = f32[10,4,64] transpose(p0), dimensions={1,0,2}\n ROOT r = f32[10,256] reshape(t)",
            (10, 4, 64),
        ),
        (["f32[64]"], "b = f32[4,64] broadcast(p0), dimensions={1}\n ROOT r = f32[256] reshape(b)", (4, 64)),
        # pieces of 3 are too short for a loop of their own
        (["f32[3]"], "b = f32[64,3] broadcast(p0), dimensions={1}\n ROOT r = f32[192] reshape(b)", (192,)),
        # 6 and 4 do not nest
        (
            ["f32[12]", "f32[18]"],
            "a = f32[12,12] broadcast(p0), dimensions={1}\n b = f32[8,18] broadcast(p1), dimensions={1}\n"
            " c = f32[144] reshape(a)\n d = f32[144] reshape(b)\n ROOT r = f32[144] add(c, d)",
            (144,),
        ),
    ],
)
def test_dimensions_are_cut_where_reads_divide(shapes: list[str], body: str, sizes: tuple[int, ...]) -> None:
    assert space_of(shapes, body).sizes == sizes
    check(source(shapes, body), [array(s) for s in shapes], parts=3)


def test_work_items() -> None:
    assert plan_cpu((1024, 1024), [[0, 1]]).items == 1 << 20  # one long loop over any part of the elements
    assert plan_cpu((1024, 1024), [[0], [1]]).items == 1024
    few = plan_cpu((2, 1 << 20), [[0], [1]])  # too few rows: rows are cut
    assert few.items >= 64 and few.chunk * few.items == 2 << 20
    assert plan_cpu((2, 50), [[0], [1]]).items == 2
    assert plan_cpu((2, 100, 1000), [[0], [1], [2]]).items == 200
    assert plan_cpu((), []).items == 1


def test_threads_and_vectors() -> None:
    h200 = targets.get("sm_90")
    assert plan_gpu(1 << 20, 32, h200).vector == 4
    assert plan_gpu(1 << 20, 64, h200).vector == 2
    assert plan_gpu((1 << 20) + 2, 32, h200).vector == 2
    assert plan_gpu((1 << 20) + 1, 32, h200).vector == 1
    small = plan_gpu(1000, 32, h200)
    assert (small.vector, small.block, small.grid) == (1, 128, 8)
    assert plan_gpu(7, 32, h200).block == 7


def test_more_elements_than_32_bits_count() -> None:
    text = ptx(source(["s8[6442450944]"], "ROOT r = s8[6442450944] negate(p0)"))
    assert "mul.wide.u32" in text or "shl.b64" in text


def test_unsupported_ops_are_refused() -> None:
    body = 'ROOT r = f32[8] custom-call(p0), custom_call_target="nobody"'
    with pytest.raises(HeronError, match="GEN001") as error:
        emitted("cpu", ["f32[8]"], body)
    assert "custom-call" in str(error.value)


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_split_rows(parts: int) -> None:
    """Work items that take parts of rows, done in several ranges."""
    body = "b = f32[2,65536] broadcast(p1), dimensions={1}\n ROOT r = f32[2,65536] add(p0, b)"
    check(source(["f32[2,65536]", "f32[65536]"], body), [array("f32[2,65536]"), array("f32[65536]")], parts=parts)


@pytest.mark.parametrize("n", [12 * 128 * 132, 12 * 128 * 132 + 4, 70001])
def test_vectors_with_and_without_a_bound(n: int) -> None:
    shape = f"f32[{n}]"
    check(source([shape], f"ROOT r = {shape} add(p0, p0)"), [array(shape)], gpu=True)


# -- random fusions ----------------------------------------------------------------------------------------------------

_UNARY = ["negate", "abs", "sine", "exponential", "tanh", "floor"]
_BINARY = ["add", "subtract", "multiply", "maximum"]


def random_body(rng: np.random.Generator, length: int) -> tuple[list[str], str]:
    """A fusion of arrays of 24 elements in several shapes: elementwise ops, moves, pads, slices, reductions."""
    shapes = [(24,), (4, 6), (2, 3, 4), (6, 4)]
    values: list[tuple[str, tuple[int, ...]]] = [("p0", (24,)), ("p1", (4, 6)), ("p2", (2, 3, 4))]
    lines = ["zero = f32[] constant(0)"]

    def add(expression: str, dims: tuple[int, ...], keep: bool = True) -> str:
        name = f"v{len(lines)}"
        lines.append(f"{name} = f32[{','.join(map(str, dims))}] {expression}")
        if keep:
            values.append((name, dims))
        return name

    for _ in range(length):
        name, dims = values[rng.integers(max(0, len(values) - 6), len(values))]
        same = [v for v, d in values if d == dims]
        match rng.integers(8):
            case 0 | 1:
                add(f"{rng.choice(_UNARY[2:3] + _UNARY)}({name})", dims)
            case 2 | 3:
                add(f"{rng.choice(_BINARY)}({name}, {rng.choice(same)})", dims)
            case 4:
                to = shapes[rng.integers(len(shapes))]
                add(f"reshape({name})", to)
            case 5:
                order = rng.permutation(len(dims)).tolist()
                turned = f"transpose({name}), dimensions={{{','.join(map(str, order))}}}"
                turned = add(turned, tuple(dims[d] for d in order), keep=False)
                add(f"reshape({turned})", shapes[rng.integers(len(shapes))])
            case 6:
                d = int(rng.integers(len(dims)))
                kept = tuple(n for k, n in enumerate(dims) if k != d)
                less = add(f"reduce({name}, zero), dimensions={{{d}}}, to_apply=max", kept, keep=False)
                places = ",".join(str(k) for k in range(len(dims)) if k != d)
                add(f"broadcast({less}), dimensions={{{places}}}", dims)
            case _:
                cut = ",".join(f"[{int(n > 1)}:{n}]" for n in dims)
                smaller = tuple(n - int(n > 1) for n in dims)
                less = add(f"slice({name}), slice={{{cut}}}", smaller, keep=False)
                pads = "x".join(f"{int(n > 1)}_0" for n in dims)
                add(f"pad({less}, zero), padding={pads}", dims)
    roots = [v for v in values[-3:]]
    result = ", ".join(f"f32[{','.join(map(str, d))}]" for _, d in roots)
    lines.append(f"ROOT r = ({result}) tuple({', '.join(n for n, _ in roots)})")
    return ["f32[24]", "f32[4,6]", "f32[2,3,4]"], "\n".join(lines)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_random_fusions(seed: int, target: str) -> None:
    shapes, body = random_body(np.random.default_rng(seed), 12)
    inputs = [np.clip(array(s), -2, 2) for s in shapes]
    check(source(shapes, body), inputs, rtol=1e-5, atol=1e-5, parts=2, gpu=target == "gpu")


# -- elements through vectors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [528, 531])
def test_branching_functions_go_through_vectors(rows: int) -> None:
    """Reads and writes of a thread stand together, whatever tanh does in between; with and without a bound."""
    shape = f"[{rows},128]"
    body = (
        f"b = f32{shape} broadcast(p1), dimensions={{1}}\n x = f32{shape} convert(p0)\n a = f32{shape} add(x, b)\n"
        f" t = f32{shape} tanh(a)\n h = bf16{shape} convert(t)\n c = pred{shape} compare(t, x), direction=GT\n"
        f" ROOT r = (bf16{shape}, f32{shape}, pred{shape}) tuple(h, t, c)"
    )
    shapes = [f"bf16{shape}", "f32[128]"]
    kernel = emitted("sim:sm_90", shapes, body)
    text = str(pipeline.run(kernel.module, TransformOptions("sim")))
    assert kernel.notes["vector"] == "4"
    assert len(re.findall(r"llvm.load .* -> vector<4x", text)) == 2 and "llvm.load" not in text[text.index("tanh") :]
    assert len(re.findall(r"llvm.store .* : vector<4x", text)) == text.count("llvm.store") == 3
    check(source(shapes, body), [array(s) for s in shapes], rtol=1e-2, atol=1e-6, gpu=True)


@pytest.mark.parametrize("t", ["pred", "s4", "u8", "s16", "f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64", "c64"])
def test_vectors_of_every_type(t: str) -> None:
    shapes, body = [f"{t}[264,128]"], f"n = {t}[264,128] negate(p0)\n ROOT r = {t}[264,128] add(n, n)"
    body = body if t != "pred" else "ROOT r = pred[264,128] not(p0)"
    values = np.clip(array("f32[264,128]"), -1, 1) * 3
    check(source(shapes, body), [values.astype(getattr(types, t.upper()).dtype)], gpu=True)


@pytest.mark.parametrize(
    "shapes, body, copies",
    [
        (["f32[700]"], "ROOT r = f32[3,700,3] broadcast(p0), dimensions={1}", 1),
        (["f32[700,2]"], "ROOT r = f32[4,700,3,2] broadcast(p0), dimensions={1,3}", 6),
        (["f32[16000,3]"], "ROOT r = f32[2,16000,4,3] broadcast(p0), dimensions={1,3}", 1),
        (["f32[16000,2]"], "ROOT r = f32[2,16000,4,2] broadcast(p0), dimensions={1,3}", 8),
        (["f32[16000,3]"], "ROOT r = f32[16000,2,3,2] broadcast(p0), dimensions={0,2}", 1),
        (["f32[2,3]", "f32[16000,3]"], "a = f32[2,16000,3] broadcast(p0), dimensions={0,2}\n"
         " b = f32[2,16000,3] broadcast(p1), dimensions={1,2}\n ROOT r = f32[2,16000,3] subtract(a, b)", 1),
        (["f32[9000,3,2]"], "ROOT r = f32[3,9000,2] transpose(p0), dimensions={1,0,2}", 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("parts", [1, 3])
def test_rows_of_short_items(shapes: list[str], body: str, copies: int, parts: int) -> None:
    """The place in a row is a loop's variable, no remainder, and short loops in each other are written out.

    Where short rows follow each other that read neighbours, work items are parts of rows: there a remainder is rare.
    """
    kernel = str(emitted("cpu", shapes, body).module)
    by_parts = "transpose" in body
    assert (" mod " in kernel) == by_parts and kernel.count("tensor.insert") == copies
    check(source(shapes, body), [array(s) for s in shapes], parts=parts)


@pytest.mark.parametrize(
    ("shape", "body", "items"),
    [
        # coordinates of points: a row of 4096 of each, of which 512 are near
        ("f64[4096,3]", "ROOT r = f64[3,4096] transpose(p0), dimensions={1,0}", 3 * 8),
        ("f32[64,64,3]", "ROOT r = f32[3,64,64] transpose(p0), dimensions={2,0,1}", 3 * 4),
        # so few are in the cache anyway, and of a prime number there are no equal parts
        ("f64[512,3]", "ROOT r = f64[3,512] transpose(p0), dimensions={1,0}", 3),
        ("f64[4099,3]", "ROOT r = f64[3,4099] transpose(p0), dimensions={1,0}", 3),
        # rows that are read one after the other have no neighbours in common
        ("f64[3,4096]", "ROOT r = f64[3,4096] negate(p0)", 3 * 4096),
    ],
)
def test_neighbours_are_read_while_they_are_in_the_cache(shape: str, body: str, items: int) -> None:
    assert emitted("cpu", [shape], body).launch.work_items == items
    check(source([shape], body), [array(shape).astype(shape[:3].replace("f", "float"))], parts=5)
