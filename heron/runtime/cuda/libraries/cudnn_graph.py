"""cuDNN's graphs: tensors and operations described one by one, for which the library proposes engines.

Source: https://docs.nvidia.com/deeplearning/cudnn (graph API, backend descriptor types) and cudnn_graph.h of cuDNN 9.
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Sequence
from ctypes import addressof, byref, c_bool, c_float, c_int, c_int64, c_void_p
from itertools import accumulate
from operator import mul
from typing import Any, ClassVar

from heron.errors import HeronError
from heron.hlo.ir import types as t
from heron.hlo.ir.types import ElementType
from heron.records import dataclass
from heron.runtime.cuda.libraries.native import Functions
from heron.runtime.library_call import Array, Descriptor

#: cudnnDataType_t
DATA_TYPES: dict[ElementType, int] = {t.F32: 0, t.F64: 1, t.F16: 2, t.S8: 3, t.S32: 4, t.BF16: 9, t.S64: 10, t.PRED: 11}
#: cudnnBackendDescriptorType_t
_CONFIG, _HEURISTIC, _PLAN, _GRAPH, _PACK, _TENSOR = 3, 4, 5, 15, 16, 17
#: cudnnBackendAttributeType_t
_HANDLE, DATA_TYPE, _BOOLEAN, INT64, _POINTER, _HEUR_MODE, DESCRIPTOR = 0, 1, 2, 3, 6, 8, 15
#: cudnnBackendAttributeName_t: of heuristics, plans, graphs, tensors and variant packs
_HEUR_MODE_IS, _HEUR_GRAPH, _HEUR_RESULTS = 200, 201, 202
_PLAN_HANDLE, _PLAN_CONFIG, _PLAN_WORKSPACE = 400, 401, 402
_GRAPH_HANDLE, _GRAPH_OPS = 800, 801
_ALIGNMENT, _TYPE, _DIMS, _STRIDES, _ID, _VIRTUAL, _BY_VALUE = 900, 901, 902, 903, 906, 907, 908
_PACK_IDS, _PACK_POINTERS, _PACK_WORKSPACE = 1000, 1001, 1003
#: cudnnBackendHeurMode_t, in the order they are asked, and how many proposals each gives at most
_MODES, _PROPOSALS = (3, 2), 8


class Graphed(Descriptor):
    """A call that is a graph of operations."""

    library: ClassVar[str] = "cudnn"

    @abstractmethod
    def add_to(self, g: Graph) -> None:
        """Describe tensors, by the numbers of their arrays, and operations. Raises RUN091 for what it does not do."""


@dataclass(slots=True)
class Plan:
    """An engine for a graph; ``values``: numbers the host hands over, by the id of their tensor."""

    plan: c_void_p
    workspace: int
    ids: tuple[int, ...]
    values: dict[int, Any]
    made: list[c_void_p]


class Graph:
    """A graph being described. Ids of tensors are the numbers of the call's arrays; others come behind."""

    def __init__(self, functions: Functions, handle: c_void_p, arrays: Sequence[Array]) -> None:
        self.functions, self.handle, self.arrays = functions, handle, arrays
        self.ids: list[int] = []
        self.values: dict[int, Any] = {}
        self._next = len(arrays)
        self._made: list[c_void_p] = []
        self._operations: list[c_void_p] = []

    # -- tensors -----------------------------------------------------------------------------------------------------
    def array(self, n: int, dims: Sequence[int], strides: Sequence[int] | None = None) -> c_void_p:
        """The array of that number, seen in these sizes; strides in elements, row-major where none are given."""
        self.ids.append(n)
        return self._tensor(n, self.arrays[n].element_type, dims, strides)

    def between(self, element_type: ElementType, dims: Sequence[int]) -> c_void_p:
        """A tensor that one operation passes to another without memory."""
        return self._tensor(self._new_id(), element_type, dims, None, (_VIRTUAL, _BOOLEAN, c_bool(True)))

    def number(self, value: float, rank: int = 4) -> c_void_p:
        """An f32 number, read from the host when the call is made."""
        n = self._new_id()
        self.values[n] = c_float(value)
        return self._tensor(n, t.F32, (1,) * rank, None, (_BY_VALUE, _BOOLEAN, c_bool(True)))

    def _new_id(self) -> int:
        self._next += 1
        return self._next - 1

    def _tensor(
        self, n: int, element_type: ElementType, dims: Sequence[int], strides: Sequence[int] | None, *more: Any
    ) -> c_void_p:
        steps = strides or row_major(dims)
        alignment = 4 if n in self.values else 16
        given = [
            (_TYPE, DATA_TYPE, c_int(DATA_TYPES[element_type])),
            (_DIMS, INT64, (c_int64 * len(dims))(*dims)),
            (_STRIDES, INT64, (c_int64 * len(dims))(*steps)),
            (_ID, INT64, c_int64(n)),
            (_ALIGNMENT, INT64, c_int64(alignment)),
        ]
        return self.make(_TENSOR, *given, *more)

    # -- descriptors -------------------------------------------------------------------------------------------------
    def operation(self, kind: int, *given: tuple[int, int, Any]) -> None:
        """One more operation: its descriptor type, then (attribute, type, value)."""
        self._operations.append(self.make(kind, *given))

    def make(self, kind: int, *given: tuple[int, int, Any]) -> c_void_p:
        """A finished descriptor."""
        made = self._create(kind)
        for attribute, of, value in given:
            self._set(made, attribute, of, value)
        self.functions.call("cudnnBackendFinalize", made)
        return made

    def _create(self, kind: int) -> c_void_p:
        made = c_void_p()
        self.functions.call("cudnnBackendCreateDescriptor", c_int(kind), byref(made))
        self._made.append(made)
        return made

    def _set(self, made: c_void_p, attribute: int, of: int, value: Any) -> None:
        count = len(value) if isinstance(value, ctypes.Array) else 1
        at = value if isinstance(value, ctypes.Array) else byref(value)
        self.functions.call("cudnnBackendSetAttribute", made, c_int(attribute), c_int(of), c_int64(count), at)

    # -- plans -------------------------------------------------------------------------------------------------------
    def plan(self) -> Plan:
        """The first engine proposed that does the graph. Raises RUN091 when none does."""
        operations = (c_void_p * len(self._operations))(*(o.value for o in self._operations))
        graph = self.make(_GRAPH, (_GRAPH_HANDLE, _HANDLE, self.handle), (_GRAPH_OPS, DESCRIPTOR, operations))
        refused: HeronError | None = None
        for mode in _MODES:
            for config in self._proposals(graph, mode):
                try:
                    made = self.make(_PLAN, (_PLAN_HANDLE, _HANDLE, self.handle), (_PLAN_CONFIG, DESCRIPTOR, config))
                except HeronError as error:
                    refused = error
                    continue
                size, count = c_int64(), c_int64()
                self.functions.call(
                    "cudnnBackendGetAttribute",
                    made, c_int(_PLAN_WORKSPACE), c_int(INT64), c_int64(1), byref(count), byref(size),
                )  # fmt: skip
                return Plan(made, size.value, tuple(self.ids), self.values, self._made)
        raise HeronError("RUN091", "cudnn has no engine for this graph", why=refused.why if refused else None)

    def _proposals(self, graph: c_void_p, mode: int) -> list[c_void_p]:
        """Engines with their settings, best first; none where the library has no such way to choose."""
        try:
            asked = self.make(_HEURISTIC, (_HEUR_GRAPH, DESCRIPTOR, graph), (_HEUR_MODE_IS, _HEUR_MODE, c_int(mode)))
        except HeronError:
            return []
        configs = [self._create(_CONFIG) for _ in range(_PROPOSALS)]
        found, count = (c_void_p * _PROPOSALS)(*(c.value for c in configs)), c_int64()
        self.functions.call(
            "cudnnBackendGetAttribute",
            asked, c_int(_HEUR_RESULTS), c_int(DESCRIPTOR), c_int64(_PROPOSALS), byref(count), found,
        )  # fmt: skip
        return configs[: count.value]


def row_major(dims: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of an array whose last dimension is the fastest."""
    return tuple(accumulate(reversed(dims[1:]), mul, initial=1))[::-1]


def execute(functions: Functions, handle: c_void_p, plan: Plan, buffers: Sequence[int], scratch: int) -> None:
    """Enqueue a plan on the handle's stream, on arrays at these addresses."""
    ids = (*plan.ids, *plan.values)
    pointers = [*(buffers[n] for n in plan.ids), *map(addressof, plan.values.values())]
    pack = c_void_p()
    functions.call("cudnnBackendCreateDescriptor", c_int(_PACK), byref(pack))
    for attribute, of, value in (
        (_PACK_IDS, INT64, (c_int64 * len(ids))(*ids)),
        (_PACK_POINTERS, _POINTER, (c_void_p * len(ids))(*pointers)),
        (_PACK_WORKSPACE, _POINTER, (c_void_p * 1)(scratch)),
    ):
        functions.call("cudnnBackendSetAttribute", pack, c_int(attribute), c_int(of), c_int64(len(value)), value)
    functions.call("cudnnBackendFinalize", pack)
    functions.call("cudnnBackendExecute", handle, plan.plan, pack)
    functions.call("cudnnBackendDestroyDescriptor", pack)


def destroy(functions: Functions, plan: Plan) -> None:
    """Give a plan's descriptors back, the last made first."""
    for made in reversed(plan.made):
        functions.call("cudnnBackendDestroyDescriptor", made)
