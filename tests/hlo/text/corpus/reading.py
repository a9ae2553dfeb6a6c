"""One HLO text through heron: a job is ``{"file", "xla", "run"}``, an answer has one finding for each stage.

A finding is ``{"status": "ok"}``, or another status (``refused``, ``exception``, ``differs``) with ``code``, ``what``,
``why`` and ``where``.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import heron
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.text import PrintOptions, parse, print_module
from heron.hlo.verifier import problems
from tests.child import serve
from tests.hlo.text.corpus.values import array_of, difference, inputs

Finding = dict[str, Any]
OK: Finding = {"status": "ok"}
_ELIDED = PrintOptions(elide_large_constants=True)


def failure(error: Exception) -> Finding:
    """The finding about an error."""
    if isinstance(error, HeronError):
        where = error.where if isinstance(error.where, str | None) else error.where.text
        return {"status": "refused", "code": error.code, "what": error.what, "why": error.why, "where": where}
    last = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {error}"
    return {"status": "exception", "what": what[:300], "where": f"{last.filename}:{last.lineno}", "why": last.line}


def differing(ours: str, theirs: str) -> Finding:
    """The finding about two texts: the first lines that differ."""
    if ours == theirs:
        return OK
    for a, b in zip(ours.splitlines(), theirs.splitlines(), strict=False):
        if a != b:
            return {"status": "differs", "what": "a line", "where": a[:600], "why": b[:600]}
    return {"status": "differs", "what": "the number of lines"}


def read(job: dict[str, Any]) -> dict[str, Finding]:
    """What heron makes of the text, as far as it gets: parse, verify, print, again, and a stage for each target."""
    found: dict[str, Finding] = {}

    def stage(name: str, work: Callable[[], Finding]) -> None:
        try:
            found[name] = work()
        except Exception as error:
            found[name] = failure(error)

    text = Path(job["file"]).read_text(encoding="utf-8", errors="replace")
    module: Module | None = None
    try:
        module = parse(text, elided_as_zero=True)
        found["parse"] = OK
    except Exception as error:
        found["parse"] = failure(error)
    if module is None:
        return found
    stage("verify", lambda: _verified(module))
    if job.get("xla") is not None:
        stage("print", lambda: differing(print_module(module, _ELIDED), job["xla"]))
    stage("again", lambda: _again(module))
    if found["verify"] is OK:
        for target in job.get("run", ()):
            stage(target, lambda target=target: _run(module, target, job))
    return found


def _verified(module: Module) -> Finding:
    for problem in problems(module):
        raise problem.error()
    return OK


def _again(module: Module) -> Finding:
    printed = print_module(parse(print_module(module)))  # one reading puts computations in order
    return differing(print_module(parse(printed)), printed)


def _run(module: Module, target: str, job: dict[str, Any]) -> Finding:
    """Values on `target` against XLA's, or where XLA gave none against the evaluator's."""
    arrays = inputs(module, job["file"])
    if arrays is None:
        return {"status": "skipped", "what": "no inputs of this kind or size are made"}
    if target == "evaluator":
        if "values" not in job:
            return {"status": "skipped", "what": "XLA's CPU gives no values"}
        found = heron.evaluate(module, *arrays)
    else:
        found = heron.compile(module, target=target).run(arrays)
    theirs = job.get("values")
    if theirs is None:
        wanted = heron.evaluate(module, *arrays)
    else:
        with np.load(theirs) as saved:
            wanted = [array_of(saved[f"arr_{n}"], a) for n, a in enumerate(found)]
    wrong = difference(found, wanted)
    return OK if wrong is None else {"status": "wrong", "what": wrong}


if __name__ == "__main__":
    serve(read)
