"""The tunable parts of a program, and each candidate as a program of its own.

A compile asks for what it leaves to measurement (`heron.passes.framework.measured`): who computes a product, which of
a library's algorithms, the tiles of other block kernels.
"""

from __future__ import annotations

import dataclasses

from heron.analysis.blocks.config import GEMM, BlockConfig, config_of, kind_of
from heron.analysis.blocks.cost import Freedom, plans, variants
from heron.analysis.blocks.tiling import Refusal, Tiling
from heron.backends.compiler import Compilation, machine_for
from heron.hlo.calls import convolution, gemm
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.options import LIBRARIES, Libraries, Options
from heron.passes.framework.measured import CUBLASLT, OWN, Fragment, alone, key_of
from heron.passes.framework.pipeline import Pipeline
from heron.passes.fusion.model.build import fuse
from heron.passes.fusion.model.product_choice import WORSE
from heron.passes.simplify.splitk_rewriter import SplitkRewriter
from heron.records import dataclass
from heron.runtime.executable import Executable
from heron.targets import Target
from heron.trace import Trace


def fragments(module: Module, target: Target, options: Options, most: int = 12) -> list[Fragment]:
    """The different parts of a program that can be done in several ways, each with at most so many ways.

    What `Options.lock` has is chosen by it; fragments of what that leads to are among those found.
    """
    found: dict[str, Fragment] = {}

    def ask(fragment: Fragment) -> None:
        found.setdefault(fragment.key, dataclasses.replace(fragment, ways=fragment.ways[:most]))

    compiled = Compilation(module, target, options.replace(frozen=False), Trace(), asks=ask).passes("fused")
    for i in compiled.instructions():
        config = config_of(i)
        asked = found.get(key_of(i.calls)) if config is not None else None
        if config is not None and asked is not None and asked.kind == "tiles":
            model = {str(c): seconds for c, seconds in _tiles(i, config, target)}
            found[asked.key] = Fragment("tiles", asked.key, i.name, alone(i), tuple(model)[:most], model)
    return [f for f in found.values() if f.ways]


def _tiles(fusion: Instruction, chosen: BlockConfig, target: Target) -> list[tuple[BlockConfig, float]]:
    """The tiles there are, what was chosen first, then the quickest by the model, without those it finds far worse."""
    free = Freedom(steps=True, online=chosen.online, parts=chosen.precision != "ieee")
    root = fusion.calls.root
    results = root.operands if root.opcode == "tuple" else [root]
    main = max(results, key=lambda i: i.shape.num_elements)
    beside = [i for i in results if i is not main]
    tiling = Tiling(main, frozenset(fusion.calls.instructions))
    ways = plans(tiling, target, free, beside)
    if isinstance(ways, Refusal):
        return [(chosen, 0.0)]
    worth = {w.config: w.seconds for w in ways if w.seconds <= WORSE * ways[0].seconds or w.config == chosen}
    worth |= {w.config: w.seconds for w in variants(ways[0], tiling, target)}
    return [(chosen, worth.get(chosen, 0.0)), *((c, s) for c, s in worth.items() if c != chosen)]


@dataclass(frozen=True, slots=True)
class CandidateProgram:
    """A fragment done in one way, as a program. ``stages``: the pipelines that it still needs, all where it has none.

    ``parts``: its sum is done in parts first, with kernels around it.
    """

    module: Module
    options: Options
    stages: tuple[str, ...] = ()
    parts: bool = False

    def compilation(self, target: Target) -> Compilation:
        """Its compile for a target."""
        whole = machine_for(target, self.options).pipelines()
        first = {"parts": Pipeline("parts", [SplitkRewriter(blocks=True)])} if self.parts else {}
        pipelines = {**first, **{stage: whole[stage] for stage in self.stages or whole}}
        return Compilation(self.module, target, self.options, Trace(), pipelines)


def program_of(fragment: Fragment, way: str, options: Options) -> CandidateProgram:
    """The fragment alone, done in that way."""
    module, plain = fragment.module.clone(), options.replace(lock="", frozen=False)
    if fragment.kind == "product" and way in (CUBLASLT, OWN):
        allowed = Libraries.parse(options.libraries or "none")
        names = allowed.names if allowed is not None else frozenset[str]()
        kept = [n for n in LIBRARIES if n in names and (n != CUBLASLT or way == CUBLASLT)]
        return CandidateProgram(module, plain.replace(triton="off", libraries=",".join(kept) or "none"))
    root = module.entry.root
    if fragment.kind == "algorithm":
        number = int(way.split(" ")[1])
        is_product = root.custom_call_target in gemm.TARGETS
        config = gemm.read(root) if is_product else convolution.read(root)
        change = {"selected" if is_product else "algorithm": number}
        root.extras["backend_config"] = str(dataclasses.replace(config, **change))
        return CandidateProgram(module, plain, ("scheduled",))
    config = BlockConfig.parse(way)
    assert config is not None, way
    if fragment.kind == "product":
        root = fuse([root], [i for i in module.entry.instructions if i.opcode != "parameter"], prefix="gemm_fusion_")
        root.attrs["kind"] = "kCustom"
        kind = GEMM
    else:
        kind = kind_of(root)
    root.extras["backend_config"] = config.text(kind)
    if config.split > 1:
        return CandidateProgram(module, plain, ("fused", "scheduled"), parts=True)
    return CandidateProgram(module, plain, ("scheduled",))


def executable_of(fragment: Fragment, way: str, target: Target, options: Options) -> Executable:
    """The fragment alone done in that way, ready to call. Raises what its compile raises."""
    return program_of(fragment, way, options).compilation(target).executable()
