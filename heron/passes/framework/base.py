"""The base class of passes: a frozen dataclass with a name, a documented example and `run`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, ClassVar

from heron.records import dataclass

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module
    from heron.passes.framework.context import PassContext


@dataclass(frozen=True, slots=True)
class Constraint:
    """An order two passes must keep when both are in one pipeline, and why.

    The first `before` comes ahead of the first `after`; with ``all_runs`` no `before` comes behind any `after`.
    With ``needed`` a pipeline that has `after` must have `before` too.
    """

    before: str
    after: str
    reason: str
    all_runs: bool = False
    needed: bool = False


@dataclass(frozen=True)
class Pass:
    """Base of all passes. Fields are the pass's options; the docstring holds an example that runs as a test.

    A docstring says what and why in its first lines, then shows HLO before and after a line ``->``; see
    `heron.passes.framework.docs` for the short form it is written in.
    """

    name: ClassVar[str] = ""
    #: other names it is known by
    aliases: ClassVar[tuple[str, ...]] = ()
    #: orders this pass cares about; checked when a pipeline is built
    constraints: ClassVar[tuple[Constraint, ...]] = ()
    #: opcodes: in a module that has none of them the pass changes nothing and need not run. None: it is always run
    looks_for: ClassVar[frozenset[str] | None] = None

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Transform `module` in place; tell whether anything changed."""
        raise NotImplementedError(self.name)

    def flatten(self) -> Iterator[Pass]:
        """The passes this one consists of, in order: itself."""
        yield self

    def lines(self, indent: str = "") -> Iterable[str]:
        """The pass as a line of a printed pipeline, with the options that are not default."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        changed = [f"{name}={getattr(value, '__name__', repr(value))}" for name, value in given.items()]
        yield f"{indent}{self.name}" + (f"({', '.join(changed)})" if changed else "")

    def __str__(self) -> str:
        return "\n".join(self.lines())
