"""Target machines with their pass builders, lent to one module at a time and taken back.

To make the two takes as long as to optimise a small module, and llvmlite 0.50 frees neither the callbacks of a pass
builder (75 KiB) nor a pass manager (55 KiB): so builders are kept, and managers freed here. Each run leaves a callback
in its builder that all later runs ask before every pass, whether a function is not to be optimised (none of ours is
marked so); a builder therefore serves a limited number of modules.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heron.codegen.llvm import apart
from heron.codegen.llvm.optimize import binding, free_manager

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef, TargetMachine

#: modules a pass builder serves
_USES = 32


@dataclass(slots=True, eq=False)
class Optimizer:
    """A target machine, a builder of passes for it, and what makes the passes one module is to go through."""

    machine: TargetMachine
    builder: Any
    manager: Callable[[Any], Any]
    layout: str
    uses: int = 0

    def run(self, module: ModuleRef) -> None:
        """Optimise a module that is in a context of its own."""
        manager = self.manager(self.builder)
        try:
            apart.run(manager, module, self.builder)
        finally:
            free_manager(manager)


_IDLE: dict[Hashable, list[Optimizer]] = {}


@contextmanager
def lent(key: Hashable, make: Callable[[], Optimizer]) -> Iterator[Optimizer]:
    """An optimizer nobody else has, one of those made for `key` or a new one. One that failed is not lent again."""
    idle = _IDLE.setdefault(key, [])
    try:
        optimizer = idle.pop()  # one step: threads need no lock
    except IndexError:
        optimizer = make()
    yield optimizer
    optimizer.uses += 1
    if optimizer.uses < _USES:
        idle.append(optimizer)


def all_passes(builder: Any) -> Any:
    """The builder's standard pipeline."""
    return builder.getModulePassManager()


def slots_to_registers(_builder: Any) -> Any:
    """One pass: stack slots become registers. A tenth of the time."""
    manager = binding().create_new_module_pass_manager()
    manager.add_sroa_pass()
    return manager
