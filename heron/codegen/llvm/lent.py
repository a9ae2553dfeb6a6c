"""Target machines lent to one module at a time and taken back: to make one takes as long as to optimise a small module.

A pass builder serves one module: a run leaves callbacks in it that point into that run's stack. llvmlite 0.50 never
frees them (75 KiB); the pass manager it never frees either (55 KiB) is freed here.
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


@dataclass(slots=True, eq=False)
class Optimizer:
    """A target machine, and what makes a pass builder for it and the passes one module is to go through."""

    machine: TargetMachine
    builder: Callable[[], Any]
    manager: Callable[[Any], Any]
    layout: str

    def run(self, module: ModuleRef) -> None:
        """Optimise a module that is in a context of its own."""
        builder = self.builder()
        manager = self.manager(builder)
        try:
            apart.run(manager, module, builder)
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
    idle.append(optimizer)


def all_passes(builder: Any) -> Any:
    """The builder's standard pipeline."""
    return builder.getModulePassManager()


def slots_to_registers(_builder: Any) -> Any:
    """One pass: stack slots become registers. A tenth of the time."""
    manager = binding().create_new_module_pass_manager()
    manager.add_sroa_pass()
    return manager
