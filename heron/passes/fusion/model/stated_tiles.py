"""Block fusions that came with a program: the tiles they state, as the emitter of block kernels takes them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from heron.analysis.blocks.config import GEMM, NESTED, BlockConfig, config_of, kind_of, power_of_two, stated_gemm
from heron.analysis.blocks.cost import fitted
from heron.analysis.blocks.cost import roles as roles_of
from heron.analysis.blocks.row_plans import fitted_rows
from heron.analysis.blocks.tiling import Refusal, Tiling, holds_rows, whole_dims
from heron.hlo.calls.backend_config import hints, whole
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.fusion.model.tiled import has_form, is_row_reduce, unfit, unpacks
from heron.passes.rewriting.building import inline
from heron.targets import Target


def stated_tiles(fusion: Instruction, target: Target) -> BlockConfig | str:
    """The tiles of a block fusion by its config, or the reason why no block kernel can use them.

    XLA states tiles of each result, for products also by rows, columns and steps of the product itself. Fusions inside
    of it, which say how operands are cut, are made in line.
    """
    kind = kind_of(fusion)
    if not kind:
        return "its kind is none that block kernels are made for"
    body = fusion.calls
    step = _flatten(body)
    config = config_of(fusion)
    if config is not None and config.split > 1:  # heron's own: cut by the pass splitk-rewriter
        return config
    inside = dict.fromkeys(body.post_order())
    for i in inside:
        if why := _why_not(i, target):
            return f"'{i.name}': {why}"
    main = max(_roots(body), key=lambda i: i.shape.num_elements)
    if any(i.opcode == "dot" for i in inside):
        config = _of_product(fusion, main, inside, config, step)
    elif not holds_rows(main, inside):
        return "nothing in it needs tiles"
    if isinstance(config, str) or config is None:
        return config or "its config states no tiles that its result could be cut into"
    tiling = Tiling(main, inside, whole_dims(main.shape.dims, config.tiles))
    if tiling.refusals:
        return _told(tiling.refusals[0])
    for output in _roots(body):
        if output.shape.dims != main.shape.dims and tiling.place_of(output) is None:
            return f"'{output.name}' does not follow the tiles of '{main.name}'"
    made = fitted(tiling, config, target) if tiling.products else fitted_rows(tiling, config, target)
    return _told(made) if isinstance(made, Refusal) else made


def _told(refusal: Refusal) -> str:
    return f"'{refusal.instruction.name}': {refusal.why}"


def _roots(body: Computation) -> list[Instruction]:
    return list(body.root.operands) if body.root.opcode == "tuple" else [body.root]


def _why_not(i: Instruction, target: Target) -> str:
    """Why an instruction is not done on tiles."""
    if i.opcode == "dot":
        return unfit(i, target=target)
    if i.opcode == "constant":
        return "" if i.shape.is_scalar else "an array of constants"
    if i.opcode == "tuple" and i.is_root:
        return "" if all(o.shape.is_array for o in i.operands) else "a tuple in a tuple"
    if i.opcode == "parameter":
        return "" if i.shape.is_array else "it is a tuple"
    return "" if is_row_reduce(i) or has_form(i) or unpacks(i) else f"'{i.opcode}' is not done on tiles here"


def _flatten(body: Computation) -> int:
    """Make fusions inside of a fusion part of it. How much of a sum they say is done at once; 0 if they do not."""
    steps: list[int] = []
    for i in [i for i in body.post_order() if i.opcode == "dot"]:
        steps.append(_step_of(i))
    for i in [i for i in body.post_order() if i.opcode == "fusion"]:
        _flatten(i.calls)
        inline(i, i.calls, list(i.operands))
    return max(steps, default=0)


def _step_of(dot: Instruction) -> int:
    """The part of a product's sum that one step computes, from the product's config or its left operand's tile."""
    sizes = hints(dot).get("sizes")
    if isinstance(sizes, list) and len(sizes) == 1:
        return whole(sizes[0], 1, 1 << 12) or 0
    nested = config_of(dot.operands[0])
    if nested is None or len(dot.lhs_contracting_dims) != 1 or len(nested.tiles) != dot.operands[0].shape.rank:
        return 0
    return nested.tiles[dot.lhs_contracting_dims[0]]


def _of_product(
    fusion: Instruction, main: Instruction, inside: Collection[Instruction], config: BlockConfig | None, step: int
) -> BlockConfig | str:
    """The config of a fusion with a product: tiles of its result, from those of the product where only they are
    stated."""
    if config is not None:
        return replace(config, block_k=power_of_two(step)) if step and kind_of(fusion) == NESTED else config
    gemm = stated_gemm(fusion)
    if kind_of(fusion) != GEMM or not {"block_m", "block_n"} <= gemm.keys():
        return "its config states no tiles"
    tiling = Tiling(main, inside)
    if tiling.refusals:
        return _told(tiling.refusals[0])
    roles = roles_of(tiling)
    if isinstance(roles, Refusal):
        return _told(roles)
    m, n = roles
    tiles = tuple(gemm["block_m"] if d == m else gemm["block_n"] if d == n else 1 for d in range(main.shape.rank))
    return BlockConfig(tiles, gemm.get("block_k", 64), gemm.get("num_warps", 4), gemm.get("num_stages", 1))
