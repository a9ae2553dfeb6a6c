"""`Late`: a step of a pipeline whose file is loaded when a program needs it.

Most programs have none of the ops that most passes look for. To load all passes takes longer than to compile a small
program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from heron.passes.framework import registry
from heron.passes.framework.base import Constraint, Pass
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module
    from heron.passes.framework.context import PassContext


@dataclass(frozen=True, init=False)
class Late(Pass):
    """A pass by its file, which is loaded when the pass first runs.

    Its own ordering constraints are checked once it is loaded; a test loads and checks all.

    Args:
        place: the file under ``heron.passes``, such as ``expand.qr_expander``; the pass has the file's name.
        looks_for: what the pass has as `looks_for`, so that it stays unloaded where a program has no such op.
        options: of the pass.
    """

    name: str  # type: ignore[misc]
    looks_for: frozenset[str] | None  # type: ignore[misc]
    place: str
    options: tuple[tuple[str, Any], ...]

    def __init__(self, place: str, looks_for: Collection[str] | None = None, **options: Any) -> None:
        name = place.rpartition(".")[2].replace("_", "-")
        for key, value in {"name": name, "place": place, "options": tuple(options.items())}.items():
            object.__setattr__(self, key, value)
        object.__setattr__(self, "looks_for", None if looks_for is None else frozenset(looks_for))

    @cached_property
    def loaded(self) -> Pass:
        """The pass. Raises PASS005 for an option it does not take."""
        import_module(f"heron.passes.{self.place}")
        return registry.get(self.name, **dict(self.options))

    @property
    def constraints(self) -> tuple[Constraint, ...]:  # type: ignore[override]
        return self.loaded.constraints if "loaded" in self.__dict__ else ()

    def run(self, module: Module, ctx: PassContext) -> bool:
        return self.loaded.run(module, ctx)

    def lines(self, indent: str = "") -> Iterable[str]:
        yield from self.loaded.lines(indent)
