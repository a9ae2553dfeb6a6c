"""cuDNN's layer norms as graphs of one operation."""

from __future__ import annotations

from ctypes import c_int
from typing import ClassVar

from heron.hlo.calls import norm
from heron.records import dataclass
from heron.runtime.cuda.libraries.cudnn_graph import DESCRIPTOR, Graph, Graphed

#: cudnnBackendDescriptorType_t
_FORWARD, _BACKWARD = 29, 30
#: cudnnBackendAttributeType_t
_NORM_MODE, _NORM_PHASE = 27, 28
#: cudnnBackendNormMode_t
_LAYER = 0
#: cudnnBackendAttributeName_t of the operations, by what the arrays of a call are
_MODE, _PHASE, _X, _MEAN, _FACTOR, _SCALE, _BIAS, _EPSILON, _Y = 2000, 2001, 2002, 2003, 2004, 2005, 2006, 2007, 2013
_BACK_MODE = 2100
_ARRAYS = {
    norm.INFERENCE: (_X, _SCALE, _BIAS, _Y),
    norm.TRAINING: (_X, _SCALE, _BIAS, _Y, _MEAN, _FACTOR),
    # x, scale, dy, mean, factor, dx, dscale, dbias
    norm.BACKWARD: (2101, 2105, 2104, 2102, 2103, 2109, 2107, 2108),
}


@dataclass(frozen=True)
class Norm(Graphed):
    """A layer norm or its derivative; arrays as `heron.hlo.calls.norm` has them, workspace last."""

    routine: ClassVar[str] = "norm"

    kind: str
    epsilon: float
    operands: int = 3

    def add_to(self, g: Graph) -> None:
        given = [(a, DESCRIPTOR, g.array(n, _four(self.arrays[n].dims))) for n, a in enumerate(_ARRAYS[self.kind])]
        if self.kind == norm.BACKWARD:
            g.operation(_BACKWARD, (_BACK_MODE, _NORM_MODE, c_int(_LAYER)), *given)
            return
        phase = c_int(self.kind == norm.TRAINING)
        how = (_MODE, _NORM_MODE, c_int(_LAYER)), (_PHASE, _NORM_PHASE, phase)
        g.operation(_FORWARD, *how, *given, (_EPSILON, DESCRIPTOR, g.number(self.epsilon)))


def _four(dims: tuple[int, ...]) -> tuple[int, ...]:
    """At least four sizes, the fewest cuDNN has."""
    return (*dims, *(1,) * (4 - len(dims)))
