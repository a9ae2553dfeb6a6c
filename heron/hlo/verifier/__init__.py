"""Verifier: the rules a module keeps between any two passes, each a small function with its own code.

Rules run in three stages (`Stage`); a stage runs only when the ones before it found nothing. `VerifierOptions` switches
the rules that hold from some point of a compile on: layouts after layout assignment, orders after scheduling.
docs/reference/verifier.md and `heron verify --rules` list all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction, clock
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import misfits
from heron.hlo.verifier import asynchronous as _asynchronous  # noqa: F401  each file registers its rules
from heron.hlo.verifier import calls as _calls  # noqa: F401
from heron.hlo.verifier import channels as _channels  # noqa: F401
from heron.hlo.verifier import collectives as _collectives  # noqa: F401
from heron.hlo.verifier import extras as _extras  # noqa: F401
from heron.hlo.verifier import header as _header  # noqa: F401
from heron.hlo.verifier import layouts as _layouts  # noqa: F401
from heron.hlo.verifier import numbers as _numbers  # noqa: F401
from heron.hlo.verifier import shapes as _shapes  # noqa: F401
from heron.hlo.verifier import structure as _structure  # noqa: F401
from heron.hlo.verifier import transfers as _transfers  # noqa: F401
from heron.hlo.verifier.rules import RULES, Plan, Problem, Rule, Stage, VerifierOptions, in_modes, modes, plans
from heron.hlo.verifier.schedules import schedules_are_orders

__all__ = [
    "RULES",
    "Problem",
    "Rule",
    "Stage",
    "VerifierOptions",
    "blaming",
    "in_modes",
    "modes",
    "problems",
    "schedules_are_orders",
    "verify",
    "verify_once",
]

RULES.sort(key=lambda r: r.code)
DEFAULT = VerifierOptions()


def verify(module: Module, options: VerifierOptions = DEFAULT) -> None:
    """Raise the first broken rule as a HeronError (HLO1xx and HLO2xx, or HLO010 from a shape rule)."""
    for problem in problems(module, options):
        raise problem.error()


def verify_once(module: Module) -> None:
    """`verify`, unless the module passed it before and has not changed since: no instruction, root or entry layout.

    Raises as `verify` does.
    """
    at, ends = module.verified
    if ends != _ends(module) or any(i.version > at for c in module.computations for i in c._instructions):
        verify(module)


def _ends(module: Module) -> tuple[object, ...]:
    """The parts of a module that may change without a new version of an instruction."""
    return module.entry, tuple(c.root for c in module.computations), module.entry_layout


def problems(module: Module, options: VerifierOptions = DEFAULT) -> Iterator[Problem]:
    """Every broken rule, as far as the stages go."""
    for plan in plans(options):
        found = False
        for problem in _run(plan, module):
            found = True
            yield problem
        if found:
            return
    if options is DEFAULT:
        module.verified = clock(), _ends(module)


#: letters of the codes of code generation
_OF_CODE = ("GEN", "LLVM")


@contextmanager
def blaming(module: Module) -> Iterator[None]:
    """If work on a module fails, report the rule that the module breaks, if it breaks one.

    Verifying every program before it is evaluated or compiled would cost time; this costs none. Errors of code
    generation are no better than others here: what it lacks may be the broken rule's fault.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, HeronError) and not error.code.startswith(_OF_CODE):
            raise
        for problem in problems(module):
            raise problem.error() from None
        raise


def _run(plan: Plan, module: Module) -> Iterator[Problem]:
    for rule in plan.module:
        yield from _checked(rule, module, module.instructions())
    by_opcode, by_extra = plan.opcodes, plan.extras
    if not by_opcode and not by_extra:
        return
    unbounded = any(i.shape.is_unbounded for i in module.instructions())
    for c in module.computations:
        for i in c._instructions:
            if unbounded and _is_unbounded(i):
                continue
            rules = by_opcode.get(i.opcode)
            if rules is not None:
                for rule in rules:
                    yield from _checked(rule, i, (i,))
            if i.extras:
                for name in i.extras:
                    for rule in by_extra.get(name, ()):
                        yield from _checked(rule, i, (i,))


def _is_unbounded(i: Instruction) -> bool:
    """Whether it has to do with dimensions without bounds: sizes nobody knows break no rule."""
    return i.shape.is_unbounded or any(o.shape.is_unbounded for o in i.operands)


def _checked(rule: Rule, subject: Module | Instruction, instructions: Iterable[Instruction]) -> Iterator[Problem]:
    """The rule's findings; attributes of the wrong Python type are blamed, instead of stumbled over.

    Testing all types first would cost more than all rules together.
    """
    try:
        yield from rule.check(subject)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        wrong = [(i, name) for i in instructions for name in misfits(i)]
        if not wrong:
            raise
        for i, name in wrong:
            yield Problem("HLO104", f"attribute '{name}' of '{i.name}' has the wrong type", i)
