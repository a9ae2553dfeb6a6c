"""One pass alone on a module, and all that may be wrong then.

A pass must not end in an error of Python, must leave a module that verifies and gives the values it gave, must tell
whether it changed anything, and run again must find nothing left to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heron.errors import HeronError
from heron.evaluator import evaluate_devices, flatten
from heron.evaluator.host import Host
from heron.hlo.ir.module import Module
from heron.hlo.verifier import VerifierOptions, problems, verify
from heron.passes.framework import registry
from heron.passes.framework.base import Pass
from heron.passes.framework.checks import difference
from heron.passes.framework.context import PassContext
from heron.passes.framework.pipeline import Pipeline

#: options that make a pass another one
VARIANTS = (
    ("algebraic-simplifier", {"is_layout_sensitive": True}),
    ("bf16-propagation", {"dots": True}),
    ("convolution-group-converter", {"batch_only": True}),
    ("cse", {"layout_sensitive": True}),
    ("element-type-converter", {"eliminate": "f16", "replace_with": "f64"}),
    ("memory-scheduler", {"order": "list"}),
    ("operand-upcaster", {"one_type": False}),
    ("operand-upcaster", {"one_type": False, "rounds": False}),
    ("reduction-splitter", {"least": 1}),
    ("splitk-rewriter", {"tile": 1, "least": 2}),
    ("sub-byte-normalization", {"packed": True}),
    ("tree-reduction-rewriter", {"parts": 3, "least": 4}),
    ("variadic-op-splitter", {"most": 2}),
    ("gather-expander", {"mode": "simple"}),
    ("scatter-expander", {"mode": "indeterminate"}),
)
#: pipelines that take any program
PIPELINES = ("simplify", "cpu", "gpu")
#: passes that compute the same by another formula or in another type
ROUNDS = frozenset(
    "batchnorm-expander bf16-conversion-folding bf16-mixed-precision-removal bf16-normalization bf16-propagation "
    "cholesky-expander eigh-expander element-type-converter float-normalization logistic-expander operand-upcaster "
    "qr-expander ragged-dot-rewriter result-caster scaled-dot-rewriter simplify-fp-conversions "
    "triangular-solve-expander cpu gpu".split()
)
#: passes that weigh what they do by what is there, or take one step of several: run again they may do more
GREEDY = frozenset(
    "copy-insertion horizontal-fusion instruction-fusion multi-output-fusion priority-fusion reshape-mover".split()
)
#: passes that keep layouts valid once they are assigned, as does the layout-sensitive form of a pass that has one
KEEP_LAYOUTS = frozenset(
    "copy-insertion dce flatten-call-graph fusion-wrapper instruction-fusion layout-assignment layout-normalization "
    "memory-scheduler move-copy-to-users multi-output-fusion priority-fusion reduction-layout-normalizer "
    "reshape-decomposer sanitize-constant-names trivial-scheduler".split()
)
#: errors by which a pass says that a program is none for it: sizes known at run time only, inside a fusion
REFUSALS = frozenset({"PASS020"})
#: passes that say of themselves that an infinity or NaN may show where there was a number
FINITE = frozenset({"convolution-group-converter"})
#: ops whose result depends on the order in which numbers are added
ADDS = frozenset(
    "reduce dot reduce-window convolution scatter select-and-scatter ragged-dot scaled-dot cholesky triangular-solve "
    "batch-norm-training batch-norm-inference batch-norm-grad fft all-reduce reduce-scatter scan".split()
)


@dataclass(frozen=True)
class Outcome:
    """What came of one pass on one module: whether it changed something, and what is wrong (nothing when empty)."""

    changed: bool
    problem: str = ""


def passes(names: Sequence[str] = ()) -> list[Pass]:
    """Every registered pass, those of `VARIANTS` and `PIPELINES`; or those among them with one of `names`."""
    found = [registry.get(c.name) for c in registry.all_passes()]
    found += [registry.get(name, **options) for name, options in VARIANTS]
    found += map(registry.pipeline, PIPELINES)
    return [p for p in found if not names or p.name in names]


def label(step: Pass) -> str:
    """A pass with its options, a pipeline by its name."""
    return step.name if isinstance(step, Pipeline) else str(step)


class Subject:
    """A module with inputs for each device, and the values it gives.

    Where sums are rounded, differences up to ``floor`` count as none: gradients that are 0 but for rounding have no
    digits to keep.
    """

    def __init__(self, module: Module, inputs: Sequence[Sequence[np.ndarray]], floor: float = 0.0) -> None:
        self.module, self.inputs, self.floor = module, inputs, floor
        self.values = self._run(module)
        self.has_edges = any(i.control_predecessors for i in module.instructions())
        self.adds = any(i.opcode in ADDS and _rounds(i.shape.leaves()) for i in module.instructions())

    def _run(self, module: Module) -> list[np.ndarray]:
        """The outputs of every device, and what each hands to its host, in order."""
        hosts = [Host() for _ in range(module.replica_count * module.num_partitions)]
        outputs = evaluate_devices(module, self.inputs, hosts=hosts)
        return [a for part in (*outputs, *(flatten(tuple(h.outfeed)) for h in hosts)) for a in part]

    def under(self, step: Pass) -> Outcome:
        """What comes of running `step` on a copy of the module."""
        return self.after(step, self.module.clone(), self.module)

    def after(self, step: Pass, module: Module, before: Module) -> Outcome:
        """What comes of running `step` on `module`, which is as `before` and has this subject's values."""
        try:
            changed = PassContext().run_pass(step, module)
        except Exception as error:
            if isinstance(error, HeronError) and error.code in REFUSALS:
                return Outcome(False)
            return Outcome(False, f"{type(error).__name__}: {_first_line(error)}")
        if changed == (_state(before) == _state(module)):
            told = "tells of a change, there is none" if changed else "does not tell that it changed something"
            return Outcome(changed, told)
        if not changed:
            return Outcome(False)
        try:
            layouts = _keeps_layouts(step) and _is_laid_out(before)
            verify(module, VerifierOptions(scheduled=module.is_scheduled, layout_sensitive=layouts))
            problem = self.compare(module, step.name in ROUNDS, step.name in FINITE)
            if not problem and self._settles(step) and PassContext().run_pass(step, module):
                problem = "a second run changed something again"
        except Exception as error:
            problem = f"afterwards {type(error).__name__}: {_first_line(error)}"
        return Outcome(True, problem)

    def _settles(self, step: Pass) -> bool:
        # what control edges hold in its place is free once they went with what they led to
        return step.name not in GREEDY and step.name not in PIPELINES and not self.has_edges

    def compare(self, module: Module, rounds: bool = False, finite: bool = False) -> str:
        """How the values of `module` differ from the subject's; empty when they do not.

        ``rounds``: values may be rounded otherwise; ``finite``: what is no number now is not looked at.
        """
        values = self._run(module)
        if len(values) != len(self.values):
            return f"{len(values)} outputs, there were {len(self.values)}"
        for n, (old, new) in enumerate(zip(self.values, values, strict=True)):
            if finite and new.dtype.kind in "fc" and old.shape == new.shape:
                new = np.where(np.isfinite(new), new, old)
            words = difference(old, new) if rounds or self.adds else not_same(old, new)
            if words and not (self.adds and self._is_noise(old, new)):
                return f"output {n}: {words}"
        return ""

    def _is_noise(self, old: np.ndarray, new: np.ndarray) -> bool:
        if not self.floor or old.dtype.kind not in "fc" or old.shape != new.shape:
            return False
        return np.allclose(old, new, rtol=0, atol=self.floor, equal_nan=True)


def _is_laid_out(module: Module) -> bool:
    return next(problems(module, VerifierOptions(layout_sensitive=True)), None) is None


def _keeps_layouts(step: Pass) -> bool:
    sensitive = getattr(step, "is_layout_sensitive", False) or getattr(step, "layout_sensitive", False)
    return sensitive or step.name in KEEP_LAYOUTS


def _state(module: Module) -> object:
    """All a pass may change, whatever order instructions stand in."""
    schedule = module.schedule and {c.name: [i.name for i in order] for c, order in module.schedule.items()}
    return sorted(map(str, module.instructions())), module.entry_layout, str(module.header), schedule


def _rounds(leaves: object) -> bool:
    return any(s.is_array and (s.element_type.is_float or s.element_type.is_complex) for _, s in leaves)  # type: ignore[attr-defined]


def not_same(old: np.ndarray, new: np.ndarray) -> str | None:
    """Where two arrays differ in a bit, NaNs alike."""
    if old.dtype != new.dtype or old.shape != new.shape:
        return f"it was {old.dtype}{list(old.shape)} and is {new.dtype}{list(new.shape)}"
    same = np.asarray(old == new)
    if old.dtype.kind in "fcV":
        with np.errstate(all="ignore"):
            a, b = (x if x.dtype.kind == "c" else x.astype(np.float64) for x in (old, new))
        same = _same_part(a.real, b.real) & _same_part(a.imag, b.imag)
    if same.all():
        return None
    at = tuple(int(k) for k in np.argwhere(~same)[0])
    return f"{int((~same).sum())} of {old.size} elements differ; at {list(at)}: {old[at]!r} became {new[at]!r}"


def _same_part(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)


def _first_line(error: Exception) -> str:
    if isinstance(error, HeronError):
        return f"{error.code} {error.what}; {error.why or ''} at {str(error.where)[:300]}"
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error} ({frame.filename.rpartition('heron/')[2]}:{frame.lineno})"
