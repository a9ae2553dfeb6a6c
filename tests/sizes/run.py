"""Running cases: the evaluator's values against those of every target."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import ml_dtypes
import numpy as np

import heron
from heron.errors import HeronError
from heron.hlo.ir import types
from heron.hlo.verifier import verify
from tests import guarded
from tests.sizes.case import Case

TARGETS = ("cpu", "sim:sm_90")
#: the CPU, with memory around every buffer that must not be touched
GUARDED = "cpu:guarded"
#: the simulator takes about a microsecond for each element a thread touches
_SIM_WORK = 40_000


@dataclass(frozen=True)
class Outcome:
    """How a case went on a target: `ok`, `differs`, `refused` (a HeronError), `fails` (another exception, a lost process)."""

    target: str
    found: str
    detail: str = ""


def run(case: Case, targets: tuple[str, ...] = TARGETS) -> list[Outcome]:
    """What `targets` make of the case."""
    try:
        module = heron.parse(case.text)
        verify(module)
        inputs = case.inputs(np.random.default_rng(zlib.crc32(case.name.encode())))
        with np.errstate(all="ignore"):
            wanted = _flat(heron.evaluate(module, *inputs))
    except Exception as error:
        return [_failed("evaluator", error)]
    return [
        _on(target, module, inputs, wanted, case)
        for target in targets
        if not target.startswith("sim") or case.work <= _SIM_WORK
    ]


def _on(target: str, module: heron.Module, inputs: list[np.ndarray], wanted: list[np.ndarray], case: Case) -> Outcome:
    before = [a.copy() for a in inputs]
    try:
        if target == GUARDED:
            found = guarded.run(module, [np.asarray(a) for a in inputs])
        else:
            found = _flat(heron.compile(module, target)(*inputs))
    except Exception as error:
        return _failed(target, error)
    for n, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        words = difference(ours, theirs, case.error)
        if words:
            return Outcome(target, "differs", f"output {n}: {words}")
    if any(not _same(a, b).all() for a, b in zip(inputs, before, strict=True)):
        return Outcome(target, "differs", "an argument was written")
    return Outcome(target, "ok")


def _failed(target: str, error: Exception) -> Outcome:
    found = "refused" if isinstance(error, HeronError) else "fails"
    return Outcome(target, found, f"{type(error).__name__}: {str(error).splitlines()[0]}")


def _flat(value: object) -> list[np.ndarray]:
    if isinstance(value, (tuple, list)):
        return [a for part in value for a in _flat(part)]
    return [np.asarray(value)]


def difference(ours: np.ndarray, theirs: np.ndarray, error: float) -> str:
    """Where two results are further apart than `error` units (see `Case.error`), in words; '' where nowhere."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{list(ours.shape)} instead of {theirs.dtype}{list(theirs.shape)}"
    wrong = ~_same(ours, theirs)
    kind = types.of_dtype(theirs.dtype)
    if error and (kind.is_float or kind.is_complex):
        wide = np.complex128 if kind.is_complex else np.float64
        a, b = ours.astype(wide), theirs.astype(wide)
        finite = np.abs(b[np.isfinite(b)])
        unit = float(ml_dtypes.finfo((kind.component if kind.is_complex else kind).dtype).eps) * (
            finite.max() if finite.size else 0
        )
        with np.errstate(all="ignore"):
            wrong &= ~(np.abs(a - b) <= error * unit)
    at = np.argwhere(wrong)
    if not len(at):
        return ""
    where = tuple(int(x) for x in at[0])
    return f"{len(at)} of {theirs.size}, first at {where}: {ours[where]} instead of {theirs[where]}"


def _same(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Equal values; NaN equals NaN."""
    with np.errstate(all="ignore"):
        return np.asarray((ours == theirs) | ((ours != ours) & (theirs != theirs)))
