"""alias-passthrough-params: what goes in and comes out again is not copied."""

from __future__ import annotations

from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AliasPassthroughParams(Pass):
    """Lets an output that is a parameter as it came live in that parameter's memory.

    Of a parameter handed out twice only the first output can. Outputs and parameters that are aliased already stay as
    they are. No pipeline has it, as XLA's only on request: the caller would find an output in memory it takes for its
    own.

    HloModule example

    x = f32[4] parameter(0)
    y = f32[4] parameter(1)
    n = f32[4] negate(y)
    ROOT r = (f32[4], f32[4]) tuple(n, x)
    ->
    HloModule example, input_output_alias={ {1}: (0, {}, may-alias) }

    ROOT r = (f32[4], f32[4]) tuple(n, x)
    """

    name = "alias-passthrough-params"

    def run(self, module: Module, ctx: PassContext) -> bool:
        root, aliases = module.entry.root, module.input_output_aliases
        if root.opcode != "tuple":
            return False
        changed = False
        for n, value in enumerate(root.operands):
            if value.opcode != "parameter" or aliases.has_alias((n,)):
                continue
            number = value.attrs["number"]
            if any(a.parameter == number for a in aliases):
                continue
            aliases.set_up((n,), number)
            changed = True
        return changed
