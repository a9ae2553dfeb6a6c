"""cuDNN: convolutions and their derivatives, with scale, side input, bias and activation; and what are graphs there.

Convolutions have features innermost. They go by the functions cuDNN has had since version 7: plain C, and in version 9
too. The rest is `cudnn_graph`.
Source: https://docs.nvidia.com/deeplearning/cudnn and cudnn_cnn.h of cuDNN 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, byref, c_double, c_float, c_int, c_size_t, c_void_p
from math import prod
from typing import ClassVar

from heron.errors import HeronError
from heron.hlo.ir import types as t
from heron.hlo.ir.types import ElementType
from heron.records import dataclass
from heron.runtime.cuda.libraries import cudnn_graph
from heron.runtime.cuda.libraries.base import Proposal, Workspace
from heron.runtime.cuda.libraries.bound import Bound, ints
from heron.runtime.cuda.libraries.cudnn_graph import DATA_TYPES, Graph, Graphed
from heron.runtime.cuda.libraries.native import Functions
from heron.runtime.library_call import Array, Descriptor

#: cudnnActivationMode_t
_ACTIVATIONS = {"kNone": 5, "kRelu": 1}
_NCHW, _NHWC, _CROSS_CORRELATION, _PROPAGATE_NAN = 0, 1, 1, 1
#: a format with features in groups, and the types of groups of so many 8-bit integers
_NCHW_VECT_C, _GROUPS = 2, {4: 5, 32: 8}
#: cudnnMathType_t: f32 is computed in f32; other types on tensor cores
_TENSOR_OP_MATH, _FMA_MATH = 1, 3
#: algorithms that take every convolution and give the same bits each time
_PRECOMPUTED_GEMM, _BACKWARD = 1, 1
#: proposals to ask for where the usual algorithm is refused: the library has not more
_MOST_ALGORITHMS = 10
#: bytes of scratch memory that an algorithm may want: some transform whole arrays
WORKSPACE = 1 << 30


@dataclass(frozen=True)
class Convolution(Descriptor):
    """A convolution; strides and the like are those of the forward one. Arrays: operands, the result, workspace.

    Features are innermost, with ``features_outside`` outside of the space, or in groups of 4 or 32 that are outside of
    the space, each group innermost.
    ``kind``: forward (x, w), fused (x, w, bias, maybe side), backward input (dy, w), backward filter (x, dy).
    """

    library: ClassVar[str] = "cudnn"
    routine: ClassVar[str] = "convolution"

    kind: str
    padding: tuple[tuple[int, int], ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    operands: int = 2
    groups: int = 1
    activation: str = "kNone"
    scale: float = 1.0
    side_scale: float = 0.0
    leak: float = 0.0
    algorithm: int = -1
    side_by_side: int = 1  # features of a group, which are the last dimension; 1: there are no groups
    features_outside: bool = False

    @property
    def roles(self) -> tuple[int, int, int]:
        """The numbers of the arrays that are input, filter and output of the convolution forward."""
        out = self.operands
        return {"backward input": (out, 1, 0), "backward filter": (0, out, 1)}.get(self.kind, (0, 1, out))


@dataclass(frozen=True, slots=True)
class _Plan:
    input: c_void_p
    filter: c_void_p
    output: c_void_p
    window: c_void_p
    algorithm: c_int
    workspace: int
    bias: c_void_p | None = None
    activation: c_void_p | None = None


class Performance(Structure):
    """cudnnConvolutionFwdAlgoPerf_t; those of derivatives are laid out alike."""

    _fields_ = [
        ("algorithm", c_int),
        ("status", c_int),
        ("milliseconds", c_float),
        ("workspace", c_size_t),
        ("is_deterministic", c_int),
        ("math", c_int),
        ("reserved", c_int * 3),
    ]


class CuDnn(Bound[_Plan | cudnn_graph.Plan]):
    """The library, with descriptors of its own for each call it has seen."""

    name = "cudnn"

    def __init__(
        self, workspace: Workspace | None = None, functions: Functions | None = None, driver: Functions | None = None
    ) -> None:
        super().__init__(workspace, functions, driver)
        self._handle = c_void_p()
        self.functions.call("cudnnCreate", byref(self._handle))

    def prepare(self, descriptor: Descriptor) -> int:
        return self.plan(descriptor).workspace

    def make(self, descriptor: Descriptor) -> _Plan | cudnn_graph.Plan:
        d = descriptor
        if isinstance(d, Graphed):
            graph = Graph(self.functions, self._handle, d.arrays)
            d.add_to(graph)
            return graph.plan()
        if not isinstance(d, Convolution):
            raise self.refuse(d, "it is neither a convolution nor a graph")
        if any(low != high or low < 0 for low, high in d.padding):
            raise self.refuse(d, "it pads both ends alike")
        if d.activation not in _ACTIVATIONS:
            raise self.refuse(d, f"it has no activation {d.activation} behind a convolution")
        x, w, y = (d.arrays[n] for n in d.roles)
        if any(a.element_type not in DATA_TYPES for a in (x, w, y)):
            raise self.refuse(d, "it does not know the element type")
        if d.side_by_side > 1:
            if d.side_by_side not in _GROUPS or any(a.element_type is not t.S8 for a in (x, w, y)):
                raise self.refuse(d, "features side by side are 4 or 32 of type s8")
            parts = self._in_groups(x, "Tensor"), self._in_groups(w, "Filter"), self._in_groups(y, "Tensor")
        else:
            outside = d.features_outside
            parts = self._tensor(x, outside), self._filter(w, outside), self._tensor(y, outside)
        window = self._window(d, x.element_type)
        algorithm, size = self._algorithm(d, _Plan(*parts, window, c_int(), 0))
        if d.kind != "fused":
            return _Plan(*parts, window, algorithm, size)
        return _Plan(*parts, window, algorithm, size, self._bias(d), self._activation(d))

    def _algorithm(self, d: Convolution, plan: _Plan) -> tuple[c_int, int]:
        """The algorithm and its scratch memory: the one asked for, the usual one, or, where the library does not do
        that, the first that it proposes."""
        if d.algorithm >= 0:
            return c_int(d.algorithm), self._space(d, plan, d.algorithm)
        usual = self._default(d)
        try:
            return c_int(usual), self._space(d, plan, usual)
        except HeronError as error:
            refusal = error
        for proposal in self._proposed(d, plan, _MOST_ALGORITHMS):
            if proposal.number != usual:
                self.notes.append(
                    f"cudnn: {d.kind} convolution by algorithm {proposal.number}: {usual} was refused ({refusal.why})"
                )
                return c_int(proposal.number), proposal.workspace
        raise refusal

    def _space(self, d: Convolution, plan: _Plan, algorithm: int) -> int:
        """Bytes of scratch memory. Raises RUN091 where the library does not do the convolution in this way."""
        size, (first, second, third) = c_size_t(), _parts(d, plan)
        name = f"cudnnGetConvolution{_NAMES[d.kind]}WorkspaceSize"
        self.functions.call(name, self._handle, first, second, plan.window, third, c_int(algorithm), byref(size))
        return size.value

    def proposals(self, descriptor: Descriptor, most: int) -> list[Proposal]:
        d, plan = descriptor, self.plan(descriptor)
        if not isinstance(d, Convolution) or isinstance(plan, cudnn_graph.Plan):
            return []
        if d.kind == "fused" and d.activation == "kNone":  # the library has one algorithm for that
            return [Proposal(_PRECOMPUTED_GEMM, plan.workspace)]
        with self._lock:
            return self._proposed(d, plan, most)

    def _proposed(self, d: Convolution, plan: _Plan, most: int) -> list[Proposal]:
        """The library's algorithms that give the same bits each time, within the limit of scratch memory."""
        found, count = (Performance * most)(), c_int()
        first, second, third = _parts(d, plan)
        name = f"cudnnGetConvolution{_NAMES[d.kind]}Algorithm_v7"
        self.functions.call(name, self._handle, first, second, plan.window, third, c_int(most), byref(count), found)
        fit = [p for p in found[: count.value] if not p.status and p.is_deterministic and p.workspace <= WORKSPACE]
        once = {p.algorithm: p for p in reversed(fit)}  # an algorithm is listed for each kind of arithmetic
        return [Proposal(p.algorithm, int(p.workspace)) for p in fit if once[p.algorithm] is p]

    def call(self, stream: int, buffers: Sequence[int], descriptor: Descriptor) -> None:
        plan, d = self.plan(descriptor), descriptor
        if isinstance(plan, cudnn_graph.Plan):
            space = self.scratch(stream, plan.workspace)
            with self._lock:
                self.functions.call("cudnnSetStream", self._handle, c_void_p(stream))
                cudnn_graph.execute(self.functions, self._handle, plan, buffers, space)
            return
        assert isinstance(d, Convolution)
        scratch = c_void_p(self.scratch(stream, plan.workspace)), c_size_t(plan.workspace)
        x, w, y = (c_void_p(buffers[n]) for n in d.roles)
        kind = c_double if d.arrays[0].element_type is t.F64 else c_float
        alpha, beta = byref(kind(d.scale)), byref(kind(0.0))
        how = plan.window, plan.algorithm, *scratch
        with self._lock:  # the stream belongs to the handle
            self.functions.call("cudnnSetStream", self._handle, c_void_p(stream))
            match d.kind:
                case "backward input":
                    arguments = (plan.filter, w, plan.output, y, *how, beta, plan.input, x)
                case "backward filter":
                    arguments = (plan.input, x, plan.output, y, *how, beta, plan.filter, w)
                case "fused":
                    bias, side = c_void_p(buffers[2]), c_void_p(buffers[3]) if d.side_scale else y
                    by = byref(kind(d.side_scale))
                    after = by, plan.output, side, plan.bias, bias, plan.activation, plan.output, y
                    arguments = (plan.input, x, plan.filter, w, *how, *after)
                case _:
                    arguments = (plan.input, x, plan.filter, w, *how, beta, plan.output, y)
            function = "BiasActivationForward" if d.kind == "fused" else _NAMES[d.kind]
            self.functions.call(f"cudnnConvolution{function}", self._handle, alpha, *arguments)

    def close(self) -> None:
        for plan in self._plans.values():
            if isinstance(plan, cudnn_graph.Plan):
                cudnn_graph.destroy(self.functions, plan)
                continue
            kinds = (
                ("Tensor", plan.input),
                ("Filter", plan.filter),
                ("Tensor", plan.output),
                ("Convolution", plan.window),
            )
            for kind, made in (*kinds, ("Tensor", plan.bias), ("Activation", plan.activation)):
                if made is not None:
                    self.functions.call(f"cudnnDestroy{kind}Descriptor", made)
        self._plans.clear()
        if self._handle:
            self.functions.call("cudnnDestroy", self._handle)
            self._handle = c_void_p()

    # -- its descriptors ---------------------------------------------------------------------------------------------
    def _new(self, kind: str) -> c_void_p:
        made = c_void_p()
        self.functions.call(f"cudnnCreate{kind}Descriptor", byref(made))
        return made

    def _tensor(self, a: Array, features_outside: bool = False) -> c_void_p:
        made, sizes = self._new("Tensor"), _sizes(a, features_outside)
        features, step = sizes[1], 1 if features_outside else sizes[1]
        strides: list[int] = []
        for n in reversed(sizes[2:]):
            strides.insert(0, step)
            step *= n
        outer = (step * features, step) if features_outside else (step, 1)
        number, rank = c_int(DATA_TYPES[a.element_type]), c_int(len(sizes))
        self.functions.call("cudnnSetTensorNdDescriptor", made, number, rank, ints(sizes), ints((*outer, *strides)))
        return made

    def _filter(self, a: Array, features_outside: bool) -> c_void_p:
        made, sizes = self._new("Filter"), _sizes(a, features_outside)
        number, rank, order = c_int(DATA_TYPES[a.element_type]), c_int(len(sizes)), _NCHW if features_outside else _NHWC
        self.functions.call("cudnnSetFilterNdDescriptor", made, number, c_int(order), rank, ints(sizes))
        return made

    def _in_groups(self, a: Array, kind: str) -> c_void_p:
        """A tensor or filter whose features are in groups; its sizes count all features."""
        made, (batch, groups, *space, width) = self._new(kind), a.dims
        sizes = batch, groups * width, *(1,) * (2 - len(space)), *space
        number, order = c_int(_GROUPS[width]), c_int(_NCHW_VECT_C)
        if kind == "Filter":
            given = number, order, c_int(len(sizes)), ints(sizes)
            self.functions.call("cudnnSetFilterNdDescriptor", made, *given)
        else:
            given = order, number, c_int(len(sizes)), ints(sizes)
            self.functions.call("cudnnSetTensorNdDescriptorEx", made, *given)
        return made

    def _window(self, d: Convolution, x: ElementType) -> c_void_p:
        made = self._new("Convolution")
        wide = {t.F64: t.F64, t.S8: t.S32}.get(x, t.F32)
        padding, strides = tuple(low for low, _ in d.padding), d.strides
        dilations = d.dilations
        if len(strides) == 1:  # two dimensions are the fewest
            padding, strides, dilations = (0, *padding), (1, *strides), (1, *dilations)
        given = ints(padding), ints(strides), ints(dilations), c_int(_CROSS_CORRELATION), c_int(DATA_TYPES[wide])
        self.functions.call("cudnnSetConvolutionNdDescriptor", made, c_int(len(strides)), *given)
        if d.groups > 1:
            self.functions.call("cudnnSetConvolutionGroupCount", made, c_int(d.groups))
        math = _FMA_MATH if x is t.F32 else _TENSOR_OP_MATH
        self.functions.call("cudnnSetConvolutionMathType", made, c_int(math))
        return made

    def _bias(self, d: Convolution) -> c_void_p:
        bias = d.arrays[2]
        rank = max(4, len(d.arrays[0].dims) - (d.side_by_side > 1))
        return self._tensor(Array(bias.element_type, (*(1,) * (rank - 1), prod(bias.dims))))

    def _activation(self, d: Convolution) -> c_void_p:
        made = self._new("Activation")
        mode = c_int(_ACTIVATIONS[d.activation])
        self.functions.call("cudnnSetActivationDescriptor", made, mode, c_int(_PROPAGATE_NAN), c_double(0.0))
        return made

    def _default(self, d: Convolution) -> int:
        return _BACKWARD if d.kind.startswith("backward") else _PRECOMPUTED_GEMM


_NAMES = {
    "forward": "Forward", "fused": "Forward", "backward input": "BackwardData", "backward filter": "BackwardFilter",
}  # fmt: skip


def _parts(d: Convolution, plan: _Plan) -> tuple[c_void_p, c_void_p, c_void_p]:
    """Descriptors in the order of the arguments."""
    parts = plan.input, plan.filter, plan.output
    first, second, third = (parts[n] for n in _order(d))
    return first, second, third


def _order(d: Convolution) -> tuple[int, int, int]:
    """Input, filter and output in the order of the arguments: what is read, then what is computed."""
    return {"backward input": (1, 2, 0), "backward filter": (0, 2, 1)}.get(d.kind, (0, 1, 2))


def _sizes(a: Array, features_outside: bool) -> tuple[int, ...]:
    """Batch, features, then space, of which there are at least two dimensions."""
    batch, *space = a.dims
    features = space.pop(0 if features_outside else -1)
    return (batch, features, *(1,) * (2 - len(space)), *space)
