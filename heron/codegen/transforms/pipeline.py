"""The transforms of a kernel in order: from tensors and indexing maps to what the LLVM translation takes.

Read top to bottom; a step's name is what traces, dumps and `heron codegen` call it, and that of its file.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from heron.codegen.transforms import (
    convert_pure_calls,
    cse,
    erase_dead_functions,
    expand_float_ops,
    fence_masks,
    flatten_tensors,
    inliner,
    lower_gpu,
    lower_math_cpu,
    lower_math_gpu,
    lower_tensors,
    lower_xla_gpu_to_scf,
    merge_pointers_to_same_slice,
    narrow_index,
    optimize_loops,
    peel_loops,
    pipeline_loads,
    propagate_slice_indices,
    simplify_affine,
    simplify_arith,
    vectorize_loads_stores,
)
from heron.codegen.transforms.options import Target, TransformOptions
from heron.errors import HeronError

Transform: TypeAlias = Callable[[ModuleOp, TransformOptions], None]
Step: TypeAlias = tuple[str, Transform]


def _steps(*files: ModuleType) -> tuple[Step, ...]:
    return tuple((f.__name__.rpartition(".")[2].replace("_", "-"), f.run) for f in files)


_TO_FLAT = _steps(
    inliner,
    simplify_arith,
    cse,
    convert_pure_calls,
    peel_loops,
    lower_xla_gpu_to_scf,
    flatten_tensors,
)
_TO_POINTERS = _steps(
    lower_tensors,  # before simplify-affine: an index's expression tells the alignment of its address
    merge_pointers_to_same_slice,
    narrow_index,  # before simplify-affine: a map tells the ranges of its expressions
    simplify_affine,
)
_GPU = (
    *_steps(lower_gpu),  # before the inliner: shuffles call combiners
    *_TO_FLAT,
    *_steps(vectorize_loads_stores, optimize_loops),
    *_TO_POINTERS,
    *_steps(lower_math_gpu),
)

PIPELINES: dict[Target, tuple[Step, ...]] = {
    "cpu": (*_TO_FLAT, *_TO_POINTERS, *_steps(fence_masks, lower_math_cpu)),
    "gpu": _GPU,
    "sim": _GPU,  # the simulator binds libdevice's names to the host's maths library
}
#: on request: the first three change no emitted kernel, the last gains too little (docs/reference/emitters.md)
_FOR_TEXT = _steps(erase_dead_functions, propagate_slice_indices, expand_float_ops, pipeline_loads)
#: every step by name, in the order a pipeline runs them
STEPS: dict[str, Transform] = dict(step for steps in (_GPU, PIPELINES["cpu"], _FOR_TEXT) for step in steps)


def find(name: str) -> Step:
    """The step of that name. Raises GEN113 with what may have been meant."""
    found = STEPS.get(name)
    if found is None:
        near = difflib.get_close_matches(name, STEPS, 1)
        hint = f"did you mean '{near[0]}'?" if near else f"steps are {', '.join(STEPS)}"
        raise HeronError("GEN113", f"unknown codegen step '{name}'", hint=hint)
    return name, found


def summary(name: str) -> str:
    """The first sentence of what the step's file says of it."""
    text = sys.modules[find(name)[1].__module__].__doc__ or ""
    return " ".join(text.partition("\n\n")[0].split())


def show(record: Iterable[tuple[str, str]]) -> str:
    """Module texts, each under the name of the step it is after; of a step that changed nothing only the name."""
    parts: list[str] = []
    before = None
    for name, text in record:
        parts.append(f"// ----- {name}" + (": no change" if text == before else f"\n{text}"))
        before = text
    return "\n".join(parts)


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
