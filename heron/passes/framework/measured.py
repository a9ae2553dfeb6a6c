"""Choices that passes leave to measurement: parts of a program with several implementations, and the lock file's.

A pass that has a choice asks here. Without a lock file a model or a library's own order chooses, and nothing of this is
looked at. `heron tune` listens to what is asked and measures it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from heron import lockfile
from heron.errors import HeronError
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.fingerprint import fingerprint
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.tools.cloning import CloneContext
from heron.lockfile import Choice
from heron.records import dataclass
from heron.targets import Target

if TYPE_CHECKING:
    from heron.passes.framework.context import PassContext

#: who computes something, as ways are named
CUBLASLT, CUDNN, TRITON, OWN = "cublaslt", "cudnn", "triton", "own"
#: tiles of a block kernel; who computes a product and what is around it; which of a library's algorithms
Kind = Literal["tiles", "product", "algorithm"]
_ALGORITHM = re.compile(r"(cublaslt|cudnn) (\d+)")


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a program with several ways to do it.

    ``key``: its name in the lock file; ``name``: for readers; ``module``: it alone as a program. ``ways``: as the lock
    file writes them, the one that is taken without measurement first; a library's algorithms beyond that one are asked
    for on the device. ``model``: seconds of ways by the model, as far as it has some.
    """

    kind: Kind
    key: str
    name: str
    module: Module
    ways: tuple[str, ...]
    model: dict[str, float]


def who(way: str) -> str:
    """The implementation that a choice names: a library, heron's own kernels, or a block kernel (named by tiles)."""
    first = way.split(" ")[0]
    return first if first in (CUBLASLT, CUDNN, OWN) else TRITON


def is_asked(ctx: PassContext) -> bool:
    """Whether measurements matter to this compile."""
    return bool(ctx.options.lock or ctx.options.frozen or ctx.asks)


def key_of(computation: Computation) -> str:
    """The name in the lock file of what a computation computes."""
    return lockfile.digest(fingerprint(computation))


def find(ctx: PassContext, target: Target, key: str, name: str) -> Choice | None:
    """The lock file's entry for a fragment; None without a lock file or an entry.

    Raises TUNE002 when it must have something and has not.
    """
    options = ctx.options
    if not options.lock:
        if options.frozen:
            raise HeronError("TUNE002", "the option frozen needs a lock file", hint="-O lock=heron.lock")
        return None
    lock = lockfile.read(options.lock)
    found = lock.find(target.machine, key)
    if found is not None:
        return found
    others = ", ".join(lock.devices) or "no device"
    why = f"'{options.lock}' has no choice for fragment {key} on {target.machine}; it is for {others}"
    if options.frozen:
        hint = f"heron tune FILE --target {target.name} --lock {options.lock}"
        raise HeronError("TUNE002", f"'{name}' has no choice in the lock file", why=why, hint=hint)
    ctx.decide(False, why, subject=name)
    return None


def taken(ctx: PassContext, found: Choice, name: str) -> None:
    """Keep in the trace that the lock file decided."""
    why = f"measured: {found.microseconds} us"
    if found.runner_up:
        why += f", {found.runner_up} {found.runner_up_microseconds} us"
    ctx.decide(True, why, subject=name, object=found.choice)


def misfit(found: Choice, name: str, why: str) -> HeronError:
    """The error for a choice of the lock file that cannot be made."""
    return HeronError("TUNE003", f"the lock file's choice for '{name}' cannot be made", why=f"'{found.choice}' {why}")


def algorithm(i: Instruction, library: str, usual: int, ctx: PassContext) -> int:
    """The library's algorithm for a call: the lock file's, or the ``usual`` one.

    Raises TUNE002, TUNE003.
    """
    way = f"{library} {usual}"
    if ctx.target is None or not is_asked(ctx):
        ctx.decide(True, "nothing was measured: the library's own choice", subject=i.name, object=way)
        return usual
    module = alone(i)
    key = key_of(module.entry)
    if ctx.asks:
        ctx.asks(Fragment("algorithm", key, i.name, module, (way,), {}))
    found = find(ctx, ctx.target, key, i.name)
    if found is None:
        return usual
    parsed = _ALGORITHM.fullmatch(found.choice)
    if parsed is None or parsed[1] != library:
        raise misfit(found, i.name, f"is no algorithm of {library}")
    taken(ctx, found, i.name)
    return int(parsed[2])


def alone(i: Instruction) -> Module:
    """An instruction as a program of its own, its operands the parameters."""
    module = Module(i.name)
    main = module.add_computation(Computation("main"), entry=True)
    parameters = [main.add_parameter(n, o.shape) for n, o in enumerate(i.operands)]
    main.root = main.attach(CloneContext(module, "").instruction(i, parameters))
    return module


def as_program(body: Computation) -> Module:
    """A computation that no module has yet as a program."""
    module = Module("fragment")
    module.add_computation(body, entry=True)
    return module
