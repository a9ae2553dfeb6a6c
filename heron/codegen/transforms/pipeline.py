"""The transforms of a kernel in order: from tensors and indexing maps to what the LLVM translation takes.

Read top to bottom; a step's name is what traces, dumps and `heron opt` call it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from heron.codegen.transforms import (
    cse,
    expand_small_floats,
    inline_calls,
    lower_gpu,
    lower_indexing,
    lower_math_cpu,
    lower_math_gpu,
    lower_tensors,
    lower_xla_gpu_loops,
    simplify_arith,
)
from heron.codegen.transforms.options import Target, TransformOptions
from heron.errors import HeronError

Transform: TypeAlias = Callable[[ModuleOp, TransformOptions], None]
Step: TypeAlias = tuple[str, Transform]

_INLINE: tuple[Step, ...] = (
    ("inline-calls", inline_calls.run),
    ("simplify-arith", simplify_arith.run),
    ("cse", cse.run),
)
_TO_SCALARS: tuple[Step, ...] = (
    ("lower-xla-gpu-loops", lower_xla_gpu_loops.run),
    ("lower-tensors", lower_tensors.run),  # before lower-indexing: indices are composed symbolically
    ("lower-indexing", lower_indexing.run),
    ("expand-small-floats", expand_small_floats.run),
)
_GPU: tuple[Step, ...] = (
    ("lower-gpu", lower_gpu.run),  # before inline-calls: shuffles call combiners
    *_INLINE,
    *_TO_SCALARS,
    ("lower-math-gpu", lower_math_gpu.run),
)

PIPELINES: dict[Target, tuple[Step, ...]] = {
    "cpu": (*_INLINE, *_TO_SCALARS, ("lower-math-cpu", lower_math_cpu.run)),
    "gpu": _GPU,
    "sim": _GPU,  # the simulator binds libdevice's names to the host's maths library
}


def run(
    module: ModuleOp,
    options: TransformOptions | None = None,
    steps: Iterable[Step] | None = None,
    observe: Callable[[str, ModuleOp], None] | None = None,
) -> ModuleOp:
    """Runs the target's pipeline (or `steps`) on the module in place and returns it.

    Args:
        observe: called with each step's name and the module after it (dumps, traces).

    Raises:
        HeronError: GEN128 when `options.verify` is set and a step leaves an invalid module.
    """
    options = options or TransformOptions()
    for name, transform in PIPELINES[options.target] if steps is None else steps:
        transform(module, options)
        if options.verify:
            _verify(module, name)
        if observe is not None:
            observe(name, module)
    return module


def _verify(module: ModuleOp, name: str) -> None:
    try:
        module.verify()
    except VerifyException as error:
        raise HeronError("GEN128", f"transform {name} left an invalid module", why=str(error)) from error
