"""Random programs around calls of handlers and updates in place, with layouts of all kinds.

A handler gets addresses: of arrays in the layouts that its call states. Those of parameters and results are drawn, too,
as is what stands between them: transposes, copies that are needed still, updates, loops and branches.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from heron.evaluator.calls.table import evaluates
from heron.hlo.builder import Builder
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import layout
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, row_major, scalar, tuple_
from heron.hlo.ir.types import PRED, S32
from heron.runtime.host import ffi

#: arrays of one number of elements, so that a reshape leads from each to each
SHAPES = tuple(row_major(S32, *dims) for dims in ((4, 6), (6, 4), (2, 3, 4), (3, 1, 8)))
_HANDLERS: dict[str, Any] = {}


# -- the handler -------------------------------------------------------------------------------------------------------
def marked(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """What the handler computes: every element changed by where it is and by all operands' sums."""
    total = np.int32(sum(int(a.sum(dtype=np.int64)) for a in arrays) % 1000)
    found = []
    for a in arrays:
        place = sum(np.arange(n).reshape(-1, *[1] * (a.ndim - d - 1)) * 10**d for d, n in enumerate(a.shape))
        found.append((a * 3 % 1000 + place + total).astype(a.dtype))
    return tuple(found)


def handler(orders: Sequence[Sequence[int]]) -> str:
    """The target of a handler whose operands, then results, lie in these orders of dimensions, slowest first."""
    name = "marked_" + "_".join("".join(map(str, o)) for o in orders)
    if name in _HANDLERS:
        return name

    def call(address: int) -> int:
        frame = ffi._Frame.from_address(address)
        operands, results = _buffers(frame.args), _buffers(frame.rets)
        count = len(operands)
        views = [_logical(b, o) for b, o in zip((*operands, *results), orders, strict=True)]
        for out, value in zip(views[count:], marked(*(v.copy() for v in views[:count])), strict=True):
            out[...] = value
        return 0

    _HANDLERS[name] = kept = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(call)
    ffi.register(name, ctypes.cast(kept, ctypes.c_void_p).value or 0)
    evaluates(name)(lambda i, *arrays: marked(*arrays) if i.shape.is_tuple else marked(*arrays)[0])
    return name


def _buffers(found: Any) -> list[Any]:
    places = (ctypes.c_uint64 * found.size).from_address(found.args)
    return [ffi._Buffer.from_address(p) for p in places]


def _logical(buffer: Any, order: Sequence[int]) -> np.ndarray:
    """The array at an address, as it is meant: dimension ``order[n]`` is the n-th in memory."""
    dims = list((ctypes.c_int64 * buffer.rank).from_address(buffer.dims))
    size = int(np.prod(dims))
    memory: Any = (ctypes.c_int32 * size).from_address(buffer.data)
    flat = np.frombuffer(memory, np.int32)
    return flat.reshape([dims[d] for d in order]).transpose(np.argsort(order))


# -- programs ----------------------------------------------------------------------------------------------------------
def program(seed: int, steps: int = 7) -> Module:
    """A module that verifies; the same for the same seed."""
    return _Maker(Random(seed)).module(steps)


class _Maker:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.b = Builder("calls")

    def module(self, steps: int) -> Module:
        given = [self.laid(self.random.choice(SHAPES)) for _ in range(self.random.randint(1, 3))]
        values = [self.b.parameter(n, s) for n, s in enumerate(given)]
        chosen = self.b.parameter(len(given), scalar(PRED))
        for _ in range(steps):
            way = self.random.choice((self.call, self.call, self.call, self.move, self.move, self.update, self.loop))
            if self.random.random() < 0.15:
                values.append(self.branch(chosen, self.random.choice(values)))
            else:
                values += way(self.b, values)
        results = self.random.sample(values, min(len(values), self.random.randint(1, 5)))
        results += values[-1:]
        root = results[0] if len(results) == 1 else self.b.tuple(*results)
        out = tuple_([self.laid(r.shape) for r in results])
        module = self.b.build(root, verify=False)
        module.entry_layout = (
            tuple(p.shape for p in module.entry.parameters),
            out if len(results) > 1 else out.at((0,)),
        )
        self.donate(module, given, [r.shape for r in results])
        return module

    def donate(self, module: Module, given: list[Shape], results: list[Shape]) -> None:
        """Alias some results with parameters of their size."""
        if len(results) < 2 or self.random.random() < 0.5:
            return
        pairs = list(zip(range(len(results)), self.random.sample(range(len(given)), len(given)), strict=False))
        aliases = [((k,), n, (), "may-alias") for k, n in pairs[: self.random.randint(1, len(pairs))]]
        module.header["input_output_alias"] = tuple(aliases)

    def laid(self, shape: Shape) -> Shape:
        """The shape in a layout that is drawn, row-major as often as not."""
        dims = list(range(shape.rank))
        if self.random.random() < 0.6:
            self.random.shuffle(dims)
            return shape.with_layout(layout(tuple(dims)))
        return shape.with_default_layout()

    # -- steps -------------------------------------------------------------------------------------------------------
    def call(self, b: Builder, values: list[Instruction]) -> list[Instruction]:
        """A call of a handler, whose results lie in its operands or elsewhere."""
        given = self.random.sample(values, min(len(values), self.random.randint(1, 2)))
        stated = [self.laid(x.shape) for x in given]
        aliased = [n for n in range(len(given)) if self.random.random() < 0.6]
        gives = [s if n in aliased else self.laid(s) for n, s in enumerate(stated)]
        one = len(given) == 1 and self.random.random() < 0.5
        orders = [s.layout.minor_to_major[::-1] for s in (*stated, *gives) if s.layout is not None]
        made = b.custom_call(
            *given,
            shape=gives[0] if one else tuple_(gives),
            custom_call_target=handler(orders),
            operand_layout_constraints=tuple(stated),
            output_to_operand_aliasing=tuple([(() if one else (n,), n, ()) for n in aliased]),
            api_version="API_VERSION_TYPED_FFI",
        )
        if one:
            return [made]
        return [b.get_tuple_element(made, index=n) for n in range(len(given)) if self.random.random() < 0.8]

    def move(self, b: Builder, values: list[Instruction]) -> list[Instruction]:
        """Something that pulls layouts one way or another."""
        x = self.random.choice(values)
        match self.random.choice(("negate", "add", "transpose", "transpose", "reshape", "copy", "reverse", "reduce")):
            case "add":
                alike = [v for v in values if v.shape.dims == x.shape.dims]
                return [b.add(x, self.random.choice(alike))]
            case "transpose":
                dims = self.random.sample(range(x.shape.rank), x.shape.rank)
                return [b.transpose(x, dimensions=dims)]
            case "reshape":
                return [b.reshape(x, shape=self.random.choice(SHAPES))]
            case "reverse":
                return [b.reverse(x, dimensions=[self.random.randrange(x.shape.rank)])]
            case "reduce":
                d = self.random.randrange(x.shape.rank)
                total = b.reduce(x, 0, dimensions=[d], to_apply=b.reducer("add", S32))
                kept = [n for n in range(x.shape.rank) if n != d]
                return [b.add(x, b.broadcast(total, shape=x.shape.with_default_layout(), dimensions=kept))]
            case opcode:
                return [getattr(b, opcode)(x)]

    def update(self, b: Builder, values: list[Instruction]) -> list[Instruction]:
        """Rows of an array overwritten by some of another one of its shape, in one piece or row by row."""
        x = self.random.choice(values)
        y = self.random.choice([v for v in values if v.shape.dims == x.shape.dims])
        dims = x.shape.dims
        count = self.random.randint(1, dims[0])
        rows = b.slice(y, slice=[(0, count, 1), *((0, n, 1) for n in dims[1:])])
        if self.random.random() < 0.5:
            starts = [self.random.randint(0, 1), *[0] * (len(dims) - 1)]
            return [b.dynamic_update_slice(x, rows, *starts)]
        places = b.constant(np.array(self.random.sample(range(dims[0]), count), np.int32))
        return [
            b.scatter(
                x, places, rows, update_window_dims=list(range(1, len(dims))), inserted_window_dims=[0],
                scatter_dims_to_operand_dims=[0], index_vector_dim=1, unique_indices=True,
                to_apply=b.reducer("add", S32),
            )
        ]  # fmt: skip

    def loop(self, b: Builder, values: list[Instruction]) -> list[Instruction]:
        """Two or three rounds that call a handler on the state."""
        kept = self.random.sample(values, min(len(values), self.random.randint(1, 2)))
        state = tuple_([scalar(S32), *(v.shape.with_default_layout() for v in kept)])
        again = b.nested("again")
        count = again.get_tuple_element(again.parameter(0, state), index=0)
        condition = again.finish(again.compare(count, self.random.randint(2, 3), direction="LT"))
        init = b.tuple(b.constant(0, S32), *kept)
        made = b.while_(init, condition=condition, body=self.round(b, state))
        return [b.get_tuple_element(made, index=n + 1) for n in range(len(kept))]

    def round(self, b: Builder, state: Shape) -> Computation:
        inner = b.nested("round")
        p = inner.parameter(0, state)
        count, *old = [inner.get_tuple_element(p, index=n) for n in range(len(state.tuple_shapes or ()))]
        values = list(old)
        for _ in range(self.random.randint(1, 3)):
            values += self.random.choice((self.call, self.move, self.update))(inner, values)
        new = [next(v for v in reversed(values) if v.shape.dims == o.shape.dims) for o in old]
        return inner.finish(inner.tuple(inner.add(count, 1), *new))

    def branch(self, chosen: Instruction, x: Instruction) -> Instruction:
        """A call in one branch, another one or none in the other."""
        branches = []
        for _ in range(2):
            inner = self.b.nested("branch")
            values = [inner.parameter(0, x.shape.with_default_layout())]
            values += self.random.choice((self.call, self.move))(inner, values)
            branches.append(inner.finish(next(v for v in reversed(values) if v.shape.dims == x.shape.dims)))
        return self.b.conditional(chosen, x, x, branch_computations=branches)
