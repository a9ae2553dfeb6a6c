"""optimize-input-output-buffer-alias: outputs take the places of inputs the caller gave up."""

from __future__ import annotations

from heron.hlo.ir.aliasing import InputOutputAliases
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class OptimizeInputOutputBufferAlias(Pass):
    """Aliases outputs with donated parameters of the same size and memory space, so that no new memory is needed.

    Each part of a parameter is used once, in order; what is aliased is no donor any more. With ``donors_only=False``
    all parameters count as donated. Pipelines for one device do without it: buffer assignment lets any value take a
    donor's place, an output among them.

    HloModule example, buffer_donor={ (1, {}) }

    x = f32[4] parameter(0)
    y = f32[2,2] parameter(1)
    s = f32[4] reshape(y)
    n = f32[4] add(x, s)
    ROOT r = (pred[], f32[4]) tuple(pred[] p, n)
    ->
    HloModule example, input_output_alias={ {1}: (1, {}, may-alias) }

    ROOT r = (pred[], f32[4]) tuple(p, n)
    """

    name = "optimize-input-output-buffer-alias"
    donors_only: bool = True

    def run(self, module: Module, ctx: PassContext) -> bool:
        aliases = module.input_output_aliases
        free = self._free(module, aliases)
        changed = False
        for output, shape in module.result_shape.leaves():
            places = free.get(_memory(shape))
            if not shape.is_array or aliases.has_alias(output) or not places:
                continue
            aliases.set_up(output, *places.pop(0))
            changed = True
        return changed

    def _free(self, module: Module, aliases: InputOutputAliases) -> dict[tuple[int, int], list[tuple[int, ShapeIndex]]]:
        """Parts of parameters that may be overwritten, by size and memory space."""
        donors = module.buffer_donors
        found: dict[tuple[int, int], list[tuple[int, ShapeIndex]]] = {}
        for n, whole in enumerate(module.parameter_shapes):
            for index, shape in whole.leaves():
                donated = donors.is_donor(n, index) or not self.donors_only
                if shape.is_array and donated and not aliases.aliased_output(n, index):
                    found.setdefault(_memory(shape), []).append((n, index))
        return found


def _memory(shape: Shape) -> tuple[int, int]:
    return shape.byte_size, shape.layout.memory_space if shape.layout else 0
