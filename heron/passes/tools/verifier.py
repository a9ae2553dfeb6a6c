"""verifier: the rules a module keeps, as a step of a pipeline."""

from __future__ import annotations

from heron.hlo.ir.module import Module
from heron.hlo.verifier import VerifierOptions, verify
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class Verifier(Pass):
    """Raises the first rule the module breaks, and changes nothing.

    The rules about an order of execution count once the module is scheduled, those about layouts with
    ``layout_sensitive``. Option ``check=verify`` does the same after every pass.

    ROOT r = f32[4] negate(f32[4] x)
    ->
    ROOT r = f32[4] negate(x)
    """

    name = "verifier"
    layout_sensitive: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        verify(module, VerifierOptions(layout_sensitive=self.layout_sensitive, scheduled=module.is_scheduled))
        return False
