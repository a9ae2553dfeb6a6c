"""Watch: which sizes a program looks at when it runs, after `Options.shape_checks`, and how it fails."""

from __future__ import annotations

from collections.abc import Iterator

from heron.analysis.dynamic_sizes import Check, DynamicSizes
from heron.errors import HeronError
from heron.hlo.calls import size_checks
from heron.hlo.calls.size_checks import SizeCheck
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import tuple_
from heron.passes.dynamic.model.report import Report
from heron.passes.framework.context import PassContext
from heron.passes.rewriting.expander import home

#: what carries reports of the computations it runs: all but a loop's condition, which gives a truth value alone
_CARRIERS = frozenset({"while", "conditional"})


class Watch:
    """The checks to insert into a module, numbered from 1.

    Raises PASS021 where sizes must be known to fit when compiling, and are not.
    """

    def __init__(self, module: Module, found: DynamicSizes, ctx: PassContext) -> None:
        self._checks: dict[Instruction, list[tuple[int, Check]]] = {}
        self._texts: list[SizeCheck] = []
        self._computations: set[Computation] = set()
        mode = ctx.options.shape_checks
        if mode == "compile-time":
            _need_none([check for checks in found.checks.values() for check in checks])
        if mode == "runtime" and found.checks:
            self._insert(module, found, ctx)

    def _insert(self, module: Module, found: DynamicSizes, ctx: PassContext) -> None:
        reached = {module.entry, *_below(module.entry)}
        for c, checks in found.checks.items():
            if c not in reached:
                ctx.note(f"{len(checks)} checks of sizes in '{c.name}' are left out: it has no way to report them")
                continue
            self._computations.add(c)
            for check in checks:
                self._texts.append(_described(check))
                self._checks.setdefault(check.at, []).append((len(self._texts), check))

    def at(self, i: Instruction) -> list[tuple[int, Check]]:
        """The checks, with their numbers, that belong to an instruction."""
        return self._checks.get(i, [])

    def carries(self, i: Instruction) -> bool:
        """Whether a loop or a branch has something to report."""
        return bool(self._computations) and any(c in self._computations for c in _reporting(i))

    def look(self, report: Report) -> Instruction:
        """Make the program fail where a check did; gives what does that."""
        call = home(report.failed).add(
            "custom-call",
            report,
            tuple_(()),
            "check_sizes",
            custom_call_target=size_checks.TARGET,
            custom_call_has_side_effect=True,
        )
        call.extras["backend_config"] = size_checks.write(self._texts)
        return call


def _reporting(i: Instruction) -> Iterator[Computation]:
    """The computations that can report through `i`."""
    if i.opcode in _CARRIERS:
        for c in [i.body] if i.opcode == "while" else i.called:
            yield c
            yield from _below(c)


def _below(c: Computation) -> Iterator[Computation]:
    for i in c.instructions:
        yield from _reporting(i)


def _described(check: Check) -> SizeCheck:
    return SizeCheck(check.what, str(check.at), str(check.left), check.relation, str(check.right))


def _need_none(checks: list[Check]) -> None:
    """Raises PASS021 when there is a check."""
    if not checks:
        return
    first, more = checks[0], len(checks) - 1
    relation = "" if first.relation == "equal" else "at most "
    raise HeronError(
        "PASS021",
        f"cannot prove that the program's sizes fit: {first.what}",
        where=str(first.at),
        why=f"{first.left} may not be {relation}{first.right}" + (f"; so it is in {more} more places" if more else ""),
        hint="-O shape_checks=runtime looks when the program runs",
    )
