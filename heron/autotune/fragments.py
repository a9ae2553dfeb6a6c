"""What can be tuned in a program: its block kernels, each with the tiles that are worth measuring."""

from __future__ import annotations

from dataclasses import dataclass

from heron import lockfile
from heron.analysis.blocks.config import BlockConfig, config_of
from heron.analysis.blocks.cost import Freedom, plans
from heron.analysis.blocks.tiling import Refusal, Tiling
from heron.backends.compiler import Compilation
from heron.hlo.cloning import CloneContext
from heron.hlo.computation import Computation
from heron.hlo.fingerprint import fingerprint
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.options import Options
from heron.passes.context import PassContext
from heron.runtime.executable import Executable
from heron.targets import Target
from heron.trace import Trace

#: tiles that the model finds so much slower than the best are not measured
WORSE = 3.0


@dataclass(frozen=True, slots=True)
class Fragment:
    """A block-level fusion: its name in the lock file, its fusion, the tiles to try, the model's choice first."""

    key: str
    fusion: Instruction
    candidates: tuple[BlockConfig, ...]

    @property
    def module(self) -> Module:
        """The fusion as a program of its own."""
        module = Module(self.fusion.name)
        module.entry = module.add_computation(Computation("main"))
        body = CloneContext(module).computation(self.fusion.calls)
        parameters = [module.entry.add_parameter(n, o.shape) for n, o in enumerate(self.fusion.operands)]
        module.entry.root = module.entry.add(
            "fusion", parameters, self.fusion.shape, self.fusion.name, kind="kCustom", calls=body
        )
        return module


def fragments(module: Module, target: Target, options: Options, most: int = 12) -> list[Fragment]:
    """The different block kernels of a program, each with at most so many candidates."""
    fresh = options.replace(lock="", frozen=False)
    compiled = Compilation(module, target, fresh, Trace()).passes("fused")
    found: dict[str, Fragment] = {}
    for i in compiled.instructions():
        config = config_of(i)
        if config is None:
            continue
        key = lockfile.digest(fingerprint(i.calls))
        if key not in found:
            found[key] = Fragment(key, i, (config, *_others(i, config, target)[: most - 1]))
    return list(found.values())


def _others(fusion: Instruction, chosen: BlockConfig, target: Target) -> tuple[BlockConfig, ...]:
    """Other tiles, the quickest by the model first, without those it finds far worse."""
    free = Freedom(steps=True, online=chosen.online, parts=chosen.precision != "ieee")
    ways = plans(Tiling(fusion.calls.root, frozenset(fusion.calls.instructions)), target, free)
    if isinstance(ways, Refusal):
        return ()
    return tuple(w.config for w in ways if w.config != chosen and w.seconds <= WORSE * ways[0].seconds)


class AsFused(Compilation):
    """A program whose kernels are chosen already: it is only scheduled."""

    def passes(self, until: str = "scheduled") -> Module:
        module = self.source.clone()
        ctx = PassContext(options=self.options, trace=self.trace, target=self.target)
        self.machine.pipelines()["scheduled"].run(module, ctx)
        return module


def executable_of(fragment: Fragment, config: BlockConfig, target: Target, options: Options) -> Executable:
    """The fragment alone with these tiles, ready to call. Raises what its compile raises."""
    module = fragment.module
    module.entry.root.extras["backend_config"] = config.text()
    return AsFused(module, target, options, Trace()).executable()
