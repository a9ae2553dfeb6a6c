"""Runs kernels of single fusions on the host and compares them with the evaluator: the harness of all emitter tests."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from functools import cache

import ml_dtypes  # noqa: F401  (NumPy learns bfloat16 and friends)
import numpy as np

from heron import targets
from heron.analysis.indexing.hlo_maps import memory_order, memory_sizes
from heron.codegen.emit import emit_fusion
from heron.codegen.kernel import Kernel
from heron.codegen.llvm.jit import Jit
from heron.codegen.llvm.translate import KernelAbi, to_llvm
from heron.codegen.sim.kernel import compile_kernel
from heron.codegen.transforms import pipeline
from heron.codegen.transforms.options import TransformOptions
from heron.evaluator import Evaluator
from heron.hlo import text
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module

_names = itertools.count()


@cache
def jit(level: int = 1) -> Jit:
    return Jit(level=level)


#: of so many kernels one is verified after each step: verifying all of them took half the time of these tests
_SHARE = 4


def lower(kernel: Kernel, target: str = "cpu", every_step: bool = True) -> str:
    """LLVM text of a kernel, its module verified before the first and after the last step; with `every_step` after each
    where its number of ops is a multiple of `_SHARE`."""
    kind = "cpu" if target == "cpu" else "sim" if target.startswith("sim:") else "gpu"
    kernel.module.verify()
    every_step = every_step and sum(1 for _ in kernel.module.walk()) % _SHARE == 0
    pipeline.run(kernel.module, TransformOptions(target=kind, verify=every_step))
    if not every_step:
        kernel.module.verify()
    abi = KernelAbi(target=kind, block=kernel.launch.block, grid=kernel.launch.grid)
    if kind == "cpu":
        abi = KernelAbi()
    return to_llvm(kernel.module, kernels={kernel.name: abi})


def run_cpu(
    kernel: Kernel, inputs: Sequence[np.ndarray], parts: int = 1, level: int = 1, every_step: bool = True
) -> list[np.ndarray]:
    """The outputs of a CPU kernel; its work items are done in `parts` ranges."""
    code = jit(level).add(lower(kernel, every_step=every_step), kernel.name)
    arrays = buffers(kernel, inputs)
    types = [ctypes.c_void_p] * len(arrays) + [ctypes.c_int64] * 2
    function = ctypes.CFUNCTYPE(None, *types)(code.addresses[kernel.name])
    bounds = np.linspace(0, kernel.launch.work_items, parts + 1).astype(int)
    for lo, hi in itertools.pairwise(bounds):
        function(*[a.ctypes.data for a in arrays], int(lo), int(hi))
    return outputs(kernel, arrays)


def run_sim(
    kernel: Kernel, inputs: Sequence[np.ndarray], check: bool = True, every_step: bool = True
) -> list[np.ndarray]:
    """The outputs of a GPU kernel on the simulator, bounds and races checked unless told otherwise."""
    arrays = buffers(kernel, inputs)
    text = lower(kernel, "sim:sm_90", every_step)
    launcher = compile_kernel(text, kernel.name, kernel.launch.grid, kernel.launch.block, checks="all" if check else "")
    launcher([(a.ctypes.data, a.nbytes) for a in arrays])
    return outputs(kernel, arrays)


def outputs(kernel: Kernel, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The output arrays, their dimensions back in the order of the shape."""
    pairs = [(a, arg) for a, arg in zip(arrays, kernel.args, strict=True) if arg.kind == "out"]
    seen = [(a.reshape(memory_sizes(arg.shape)), arg.shape) for a, arg in pairs]  # an alias may be a view
    return [np.transpose(a, np.argsort(memory_order(shape))) for a, shape in seen]


def buffers(kernel: Kernel, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One array an argument, in memory order: copies of inputs, outputs full of rubbish, aliases shared."""
    arrays: list[np.ndarray] = []
    for arg in kernel.args:
        dtype = arg.shape.element_type.dtype
        if arg.kind == "in":
            assert inputs[arg.index].shape == arg.shape.dims, (inputs[arg.index].shape, arg.shape)
            order = memory_order(arg.shape)
            arrays.append(np.array(np.transpose(inputs[arg.index], order), dtype=dtype, order="C", copy=True))
        elif arg.alias is not None:
            arrays.append(arrays[arg.alias])
        else:
            fresh = np.empty(memory_sizes(arg.shape), dtype)
            fresh.reshape(-1).view(np.uint8)[...] = 1 if dtype == np.bool_ else 0xCD
            arrays.append(fresh)
    return arrays


def run_instruction(i: Instruction, inputs: Sequence[np.ndarray], parts: int = 1, level: int = 1) -> list[np.ndarray]:
    """Emit and run one instruction as a CPU kernel."""
    kernel = emit_fusion(i, f"kernel_{next(_names)}", targets.get("cpu"))
    return run_cpu(kernel, inputs, parts, level)


def run_instruction_sim(i: Instruction, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Emit one instruction as a GPU kernel and run it on the simulator."""
    return run_sim(emit_fusion(i, f"kernel_{next(_names)}", targets.get("sim:sm_90")), inputs)


def emit_and_run(
    i: Instruction, inputs: Sequence[np.ndarray], target: str, every_step: bool = True
) -> tuple[list[np.ndarray], str]:
    """The outputs of one instruction as a kernel of `target` (the simulated GPU with checks), and its emitter."""
    kernel = emit_fusion(i, f"kernel_{next(_names)}", targets.get(target))
    if target == "cpu":
        return run_cpu(kernel, inputs, parts=2, every_step=every_step), kernel.emitter
    got = run_sim(kernel, inputs, every_step=every_step)
    return got, kernel.emitter


def evaluate(i: Instruction, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The evaluator's outputs of one instruction on those kernel inputs."""
    if i.opcode == "fusion":
        return _leaves(Evaluator().run_instruction(i, list(inputs)))
    by_operand = dict(zip(dict.fromkeys(i.operands), inputs, strict=True))  # a kernel takes an operand once
    values = [by_operand[o] for o in i.operands]
    return _leaves(Evaluator().run_instruction(i, values))


def _leaves(value: object) -> list[np.ndarray]:
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in _leaves(part)]
    return [np.asarray(value)]


def root_fusion(source: str | Module) -> Instruction:
    """The root of a module's entry."""
    module = text.parse(source) if isinstance(source, str) else source
    return module.entry.root


def check(
    source: str,
    inputs: Sequence[np.ndarray],
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    parts: int = 1,
    level: int = 1,
    gpu: bool = False,
) -> list[np.ndarray]:
    """Kernel of the entry's root against the evaluator. Exact unless tolerances are given. Returns the outputs."""
    root = root_fusion(source)
    got = run_instruction_sim(root, inputs) if gpu else run_instruction(root, inputs, parts, level)
    want = evaluate(root, inputs)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        compare(g, w, rtol, atol)
    return got


def compare(got: np.ndarray, want: np.ndarray, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Equal values (NaN equals NaN, zeros by sign only when exact) or close ones."""
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, want.dtype, got.shape, want.shape)
    if got.dtype.kind in "biu" or got.dtype.name in ("int4", "uint4", "int2", "uint2"):
        np.testing.assert_array_equal(got.astype(np.int64), want.astype(np.int64))
        return
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    if not rtol and not atol:
        for x, y in ((a.real, b.real), (a.imag, b.imag)):
            zero = (x == 0) & (y == 0)
            np.testing.assert_array_equal(np.signbit(x[zero]), np.signbit(y[zero]), "the signs of zeros")
