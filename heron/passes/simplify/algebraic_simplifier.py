"""algebraic-simplifier: small laws, applied until none applies."""

from __future__ import annotations

from collections.abc import Sequence

from heron.passes.framework.registry import register
from heron.passes.rewriting.driver import RewritePass
from heron.passes.rewriting.rules import Rule
from heron.passes.simplify.algebraic import RULES
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AlgebraicSimplifier(RewritePass):
    """Rewrites instructions by the laws in `heron/passes/simplify/algebraic`, a file per theme.

    Only laws that are exact fire unless the option ``math`` allows more. Layouts are ignored unless
    ``is_layout_sensitive`` is set, as it must be once layouts are assigned: then only the laws fire that keep them, and
    those about bitcasts and copies. Computations with dynamic dimensions are left alone, and so is what control edges
    hold in its place.

    a = f32[6] reshape(f32[2,3] x)
    b = f32[3,2] reshape(a)
    one = f32[] constant(1)
    ones = f32[3,2] broadcast(one), dimensions={}
    ROOT r = f32[3,2] multiply(b, ones)
    ->
    ROOT r = f32[3,2] reshape(x)
    """

    name = "algebraic-simplifier"

    @classmethod
    def rules(cls) -> Sequence[Rule]:
        return RULES
