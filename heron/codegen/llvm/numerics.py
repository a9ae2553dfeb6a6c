"""Freedoms of GPU code with floating-point values, by `Options.math`.

==============  ============================================================================================
``ieee``        every operation rounded by itself, division and square root correctly, denormals kept
``reassociate`` a product and a sum become one fma, rounded once
``fast``        also approximate division, square root, exp, log, sin, cos, tan, tanh and pow; f32 denormals are 0
==============  ============================================================================================

XLA:GPU by default is ``ieee`` but for f32 division (2 ULP) and square root (1 ULP), which it approximates; it neither
forms fmas nor drops denormals.
"""

from __future__ import annotations

from heron.options import Options
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Numerics:
    """``flags``: LLVM's on arithmetic, each followed by a blank; ``flush``: f32 denormals are 0.

    ``approximate``: functions may be approximate.
    """

    flags: str = ""
    flush: bool = False
    approximate: bool = False


IEEE = Numerics()
_OF_FAST = Numerics("afn arcp contract ", flush=True, approximate=True)
_OF_REASSOCIATE = Numerics("contract ")


def of(options: Options) -> Numerics:
    """The freedoms that those options give."""
    if options.allows("finite-only"):
        return _OF_FAST
    return _OF_REASSOCIATE if options.allows("reassociating") else IEEE
