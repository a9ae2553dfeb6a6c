"""The transforms of a kernel in order: from tensors and indexing maps to what the LLVM translation takes.

Read top to bottom; a step's name is what traces, dumps and `heron codegen` call it, and that of its file.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from heron.codegen.transforms.options import Target, TransformOptions
from heron.errors import HeronError
from heron.records import dataclass

Transform: TypeAlias = Callable[[ModuleOp, TransformOptions], None]
Step: TypeAlias = tuple[str, Transform]


@dataclass(frozen=True, slots=True)
class _Late:
    """The transform in a file, which is loaded when it first runs: a CPU's kernels never need those of a GPU's."""

    file: str

    def __call__(self, module: ModuleOp, options: TransformOptions) -> None:
        import_module(self.file).run(module, options)


def _file(name: str) -> str:
    return f"{__package__}.{name.replace('-', '_')}"


def _steps(*names: str) -> tuple[Step, ...]:
    return tuple((name, _Late(_file(name))) for name in names)


_TO_FLAT = _steps(
    "inliner",
    "simplify-arith",
    "cse",
    "convert-pure-calls",
    "peel-loops",
    "lower-xla-gpu-to-scf",
    "split-loops",
    "stage-rows",
    "flatten-tensors",
)
_TO_POINTERS = _steps(
    "lower-tensors",  # before simplify-affine: an index's expression tells the alignment of its address
    "merge-pointers-to-same-slice",
    "narrow-index",  # before simplify-affine: a map tells the ranges of its expressions
    "simplify-affine",
)
_GPU = (
    *_steps("lower-gpu"),  # before the inliner: shuffles call combiners
    *_TO_FLAT,
    *_steps("vectorize-loads-stores", "optimize-loops"),
    *_TO_POINTERS,
    *_steps("lower-math-gpu"),
)

PIPELINES: dict[Target, tuple[Step, ...]] = {
    "cpu": (
        *_TO_FLAT,
        *_steps("join-rows"),  # behind flatten-tensors: an index is one expression
        *_steps("divide-by-constants"),  # before lower-tensors: indices, which are no data, are of another type still
        *_TO_POINTERS,
        *_steps("ask-for-gathers", "fence-masks", "overlap-vectors", "lower-math-cpu"),
    ),
    "gpu": _GPU,
    "sim": _GPU,  # the simulator binds libdevice's names to the host's maths library
}
#: on request: the first three change no emitted kernel, the last gains too little (docs/reference/emitters.md)
_FOR_TEXT = _steps("erase-dead-functions", "propagate-slice-indices", "expand-float-ops", "pipeline-loads")
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
    text = import_module(_file(find(name)[0])).__doc__ or ""
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
