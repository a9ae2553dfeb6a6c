"""Partitioner: what rules of ops build a partitioned program with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from heron.analysis.sharding.program import ProgramShardings
from heron.errors import HeronError
from heron.hlo.ir import literal as literals
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, ShapeIndex, row_major, scalar, tuple_
from heron.hlo.ir.types import PRED, S32, S64, ElementType
from heron.hlo.sharding import Sharding
from heron.hlo.sharding.atoms import Axes, TensorSharding
from heron.hlo.tools.cloning import CloneContext
from heron.passes.framework.context import PassContext
from heron.passes.sharding.partition import collectives, emit, halo, mask
from heron.passes.sharding.partition.devices import Devices
from heron.passes.sharding.partition.frame import Frame
from heron.passes.sharding.partition.part import Part, local_shape

#: extras that mean the same of parts
_KEPT = ("frontend_attributes", "backend_config")


class Partitioner:
    """Builds the program of one device from a program on global arrays, op by op.

    Attributes:
        source: the program on global arrays. It is only read.
        module: the program being built.
        shardings: what propagation decided for the values of `source`.
        mesh: the mesh of the program.
        at: the instruction of `source` that is being partitioned.
    """

    def __init__(self, source: Module, shardings: ProgramShardings, ctx: PassContext) -> None:
        self.source, self.shardings, self.mesh, self.ctx = source, shardings, shardings.mesh, ctx
        self.module = Module(source.name)
        self.devices = Devices(self.mesh)
        self.frame: Frame = None  # type: ignore[assignment]
        self.at: Instruction = None  # type: ignore[assignment]
        self._locals: dict[tuple[Shape, tuple[Axes, ...]], Shape] = {}
        self._written: dict[TensorSharding, Sharding] = {}
        self._texts: dict[TensorSharding, str] = {}
        self._reducers: dict[tuple[str, ElementType], Computation] = {}
        self._copies = CloneContext(self.module, suffix="")
        self._channel = max((i.attrs.get("channel_id") or 0 for i in source.instructions() if i.attrs), default=0)

    # -- building ----------------------------------------------------------------------------------------------------
    def add(
        self, opcode: str, operands: Sequence[Instruction] = (), shape: Shape | None = None, **attrs: Any
    ) -> Instruction:
        """An instruction in the computation being built, with the metadata of the op that is partitioned.

        The shape is inferred where none is given. Raises HLO010 when it cannot be.
        """
        made = self.frame.computation.add(opcode, operands, shape, **attrs)
        made.metadata = self.at.metadata
        return made

    def constant(self, value: Any, element_type: ElementType) -> Instruction:
        """A constant from a number or an array. Equal numbers are one instruction."""
        if isinstance(value, np.ndarray) and value.ndim:
            literal = literals.Literal(row_major(element_type, *value.shape), value.astype(element_type.dtype))
            return self.add("constant", (), literal.shape, literal=literal)
        number = np.asarray(value).astype(element_type.dtype)
        key = "constant", element_type, number.tobytes()
        return self.once(key, lambda: self._scalar(element_type, number))

    def _scalar(self, element_type: ElementType, value: np.ndarray) -> Instruction:
        return self.add("constant", (), scalar(element_type), literal=literals.scalar(element_type, value))

    def full(self, value: Any, element_type: ElementType, dims: Sequence[int]) -> Instruction:
        """An array with a number, or a scalar instruction, everywhere."""
        filling = value if isinstance(value, Instruction) else self.constant(value, element_type)
        if not dims:
            return filling
        key = "full", filling, tuple(dims)
        shape = row_major(element_type, *dims)
        return self.once(key, lambda: self.add("broadcast", [filling], shape, dimensions=()))

    def iota(self, dims: Sequence[int], dim: int, element_type: ElementType = S32) -> Instruction:
        """An array that counts along a dimension."""
        shape = row_major(element_type, *dims)
        return self.once(("iota", shape, dim), lambda: self.add("iota", (), shape, iota_dimension=dim))

    def compare(self, direction: str, left: Instruction, right: Instruction) -> Instruction:
        """A comparison of two arrays, or of an array and a scalar, which is broadcast."""
        if left.shape.dims != right.shape.dims:
            right = self.full(right, right.shape.element_type, left.shape.dims)
        return self.add("compare", [left, right], row_major(PRED, *left.shape.dims), direction=direction)

    def slice(self, value: Instruction, dim: int, start: int, limit: int) -> Instruction:
        """Elements `start` to `limit` of one dimension."""
        dims = value.shape.dims
        if start == 0 and limit == dims[dim]:
            return value
        bounds = tuple((start, limit, 1) if d == dim else (0, n, 1) for d, n in enumerate(dims))
        shape = value.shape.with_dims((*dims[:dim], limit - start, *dims[dim + 1 :]))
        return self.add("slice", [value], shape, slice=bounds)

    def dynamic_slice(self, value: Instruction, starts: dict[int, Instruction], sizes: Sequence[int]) -> Instruction:
        """A slice of these sizes that begins at a scalar along each dimension named, at 0 along the others."""
        index = next(iter(starts.values())).shape.element_type if starts else S32
        indices = [starts.get(d) or self.constant(0, index) for d in range(value.shape.rank)]
        return self.add(
            "dynamic-slice", [value, *indices], value.shape.with_dims(tuple(sizes)), dynamic_slice_sizes=tuple(sizes)
        )

    def pad(self, value: Instruction, dim: int, low: int, high: int, fill: Any = 0) -> Instruction:
        """`value` with elements added before and behind (or cut off, where negative) along one dimension."""
        if not (low or high):
            return value
        dims = value.shape.dims
        padding = tuple((low, high, 0) if d == dim else (0, 0, 0) for d in range(len(dims)))
        t = value.shape.element_type
        filling = fill if isinstance(fill, Instruction) else self.constant(fill, t)
        shape = value.shape.with_dims((*dims[:dim], dims[dim] + low + high, *dims[dim + 1 :]))
        return self.add("pad", [value, filling], shape, padding=padding)

    def concatenate(self, values: Sequence[Instruction], dim: int) -> Instruction:
        """Values one behind the other along a dimension."""
        if len(values) == 1:
            return values[0]
        dims = values[0].shape.dims
        total = sum(v.shape.dims[dim] for v in values)
        shape = values[0].shape.with_dims((*dims[:dim], total, *dims[dim + 1 :]))
        return self.add("concatenate", values, shape, dimensions=(dim,))

    def reshape(self, value: Instruction, dims: Sequence[int]) -> Instruction:
        """The same elements with other dimensions."""
        if value.shape.dims == tuple(dims):
            return value
        return self.add("reshape", [value], value.shape.with_dims(tuple(dims)))

    def convert(self, value: Instruction, element_type: ElementType) -> Instruction:
        """`value` in another element type."""
        if value.shape.element_type is element_type:
            return value
        return self.add("convert", [value], value.shape.with_type(element_type))

    def once(self, key: Any, make: Callable[[], Instruction]) -> Instruction:
        """`make()`, the first time in this computation that `key` is asked for; then what it gave."""
        found = self.frame.known.get(key)
        if found is None:
            found = self.frame.known[key] = make()
        return found

    # -- computations ------------------------------------------------------------------------------------------------
    @contextmanager
    def computation(self, name: str) -> Iterator[Computation]:
        """A computation of the new program to be built within the block. The caller sets its root."""
        outer = self.frame
        self.frame = Frame(self.module.add_computation(Computation(name)))
        try:
            yield self.frame.computation
        finally:
            self.frame = outer

    def reducer(self, opcode: str, element_type: ElementType) -> Computation:
        """A computation of two scalars that applies a binary op."""
        found = self._reducers.get((opcode, element_type))
        if found is None:
            found = self._reducers[opcode, element_type] = Computation(f"{opcode}_{element_type}")
            self.module.add_computation(found)
            a, b = (found.add_parameter(n, scalar(element_type)) for n in (0, 1))
            found.root = found.add(opcode, [a, b], scalar(element_type))
        return found

    def copied(self, computation: Computation) -> Computation:
        """A computation of the old program, with all that it calls, in the new one: reducers, comparators, …"""
        return self._copies.computation(computation)

    # -- parts -------------------------------------------------------------------------------------------------------
    def part(self, value: Instruction, shape: Shape, sharding: TensorSharding) -> Part:
        """A part whose value has the local shape of `shape` under `sharding`."""
        return Part(value, shape, sharding)

    def wanted(self, i: Instruction, index: ShapeIndex = ()) -> TensorSharding:
        """The sharding that propagation decided for a leaf of an instruction of the old program, closed."""
        found = self.shardings.of(i, index)
        return found.close() if found.replicated or True in found.is_open else found

    def local(self, shape: Shape, sharding: TensorSharding) -> Shape:
        """The shape of a share, in the default layout. Raises SPMD006 for dynamic dimensions."""
        key = shape, sharding.dims
        found = self._locals.get(key)
        if found is None:
            if shape.dynamic:
                raise _dynamic(self.at, shape)
            found = self._locals[key] = local_shape(shape, sharding, self.mesh)
        return found

    def is_uneven(self, part: Part, dim: int) -> bool:
        """Whether the last parts along a dimension have elements beyond the array's end."""
        return part.is_uneven(dim, self.mesh)

    def reshard(self, part: Part, sharding: TensorSharding) -> Part:
        """The same array in another sharding, by the cheapest plan; the part itself where it has it already."""
        return emit.reshard(self, part, sharding)

    def cost(self, shape: Shape, old: TensorSharding, new: TensorSharding) -> float:
        """The bytes that each device sends to bring an array from one sharding to another."""
        return emit.cost(self.mesh, shape, old, new)

    def whole(self, part: Part) -> Part:
        """The array replicated on every device."""
        return self.reshard(part, TensorSharding.whole(part.shape.rank, part.sharding.manual))

    def index(self, axes: Sequence[int]) -> Instruction:
        """This device's number along these atoms, row-major; s32[]."""
        return collectives.index(self, tuple(axes))

    def offset(self, part: Part, dim: int) -> Instruction:
        """The global index of the first element of the share along a dimension; s32[], s64[] for huge dimensions."""
        axes, tile = part.sharding.dims[dim], part.local_dims[dim]
        return self.scaled(self.index(axes), tile, part.dims[dim])

    def scaled(self, number: Instruction, by: int, limit: int = 0) -> Instruction:
        """A scalar times a constant, in s64 where results up to `limit` need that."""
        t = S64 if limit >= 2**31 else S32
        number = self.convert(number, t)
        if by == 1:
            return number
        return self.once(("times", number, by), lambda: self.add("multiply", [number, self.constant(by, t)], scalar(t)))

    def plus(self, number: Instruction, by: int) -> Instruction:
        """A scalar plus a constant."""
        if not by:
            return number
        t = number.shape.element_type
        return self.once(("plus", number, by), lambda: self.add("add", [number, self.constant(by, t)], scalar(t)))

    def masked(self, part: Part, dims: Iterable[int], fill: Any) -> Instruction:
        """The share, with what lies beyond the array's end along these dimensions set to a scalar."""
        return mask.masked(self, part, tuple(dims), fill)

    def manual(self, i: Instruction, operands: Iterable[Part] = ()) -> frozenset[int]:
        """The manual atoms of the place where an instruction of the old program stands."""
        for part in operands:
            return part.sharding.manual
        return self.frame.manual

    def joined(self, shape: Shape, parts: Iterable[Part]) -> Instruction:
        """The value of a shape of the old program, put together from the parts of its leaves where it is a tuple."""
        return self._joined(shape, iter(parts))

    def _joined(self, shape: Shape, parts: Iterator[Part]) -> Instruction:
        if shape.tuple_shapes is None:
            return next(parts).value
        elements = [self._joined(s, parts) for s in shape.tuple_shapes]
        return self.add("tuple", elements, tuple_([e.shape for e in elements]))

    def leaves(self, value: Instruction, shape: Shape, shardings: Iterable[TensorSharding]) -> list[Part]:
        """The parts of the leaves of `value`, which has the local form of a shape of the old program."""
        if not shape.is_tuple:
            return [Part(value, shape, s) for s in shardings]
        found: list[Part] = []
        elements: dict[ShapeIndex, Instruction] = {(): value}
        for (index, leaf), sharding in zip(shape.leaves(), shardings, strict=True):
            for n in range(len(index)):
                if index[: n + 1] not in elements:
                    whole = elements[index[:n]]
                    elements[index[: n + 1]] = self.add(
                        "get-tuple-element", [whole], whole.shape.at((index[n],)), index=index[n]
                    )
            found.append(Part(elements[index], leaf, sharding))
        return found

    def keep_extras(self, i: Instruction, made: Instruction) -> None:
        """Hand on what the new instruction says of the old one beside its sharding."""
        for name in _KEPT:
            if name in i.extras:
                made.extras[name] = i.extras[name]

    # -- communication -----------------------------------------------------------------------------------------------
    def channel(self) -> int:
        """A channel that no collective has yet."""
        self._channel += 1
        return self._channel

    def all_reduce(self, value: Instruction, axes: Sequence[int], reducer: str | Computation) -> Instruction:
        """`value` combined elementwise over the devices along these atoms.

        `reducer` is an opcode, or a computation of the new module.
        """
        return collectives.all_reduce(self, value, tuple(axes), reducer)

    def reduce_scatter(
        self, value: Instruction, dim: int, axes: Sequence[int], reducer: str | Computation
    ) -> Instruction:
        """This device's share along `dim` of `value` combined over these atoms, which must divide the dimension."""
        return collectives.reduce_scatter(self, value, dim, tuple(axes), reducer)

    def all_gather(self, value: Instruction, dim: int, axes: Sequence[int]) -> Instruction:
        """The values of the devices along these atoms, one behind the other along `dim`."""
        return collectives.all_gather(self, value, dim, tuple(axes))

    def all_to_all(self, value: Instruction, split_dim: int, concat_dim: int, axes: Sequence[int]) -> Instruction:
        """Piece n of `split_dim` goes to member n of these atoms; what arrives is joined along `concat_dim`."""
        return collectives.all_to_all(self, value, split_dim, concat_dim, tuple(axes))

    def permute(self, value: Instruction, axes: Sequence[int], target: Callable[[int], int | None]) -> Instruction:
        """Member n of these atoms sends to member ``target(n)``, to none for None; who gets nothing has zeros."""
        return collectives.permute(self, value, tuple(axes), target)

    def halo(self, part: Part, dim: int, left: int, right: int, fill: Any) -> Instruction:
        """The share with `left` elements of the array before it and `right` behind it along a dimension.

        Either may be more than a share, or negative: then the share is cut. Beyond the array's ends, the share's own
        rubbish included, stands the scalar `fill`; anything stands there when it is None.
        """
        return halo.halo(self, part, dim, left, right, fill)

    def window(self, part: Part, dim: int, start: int, step: int, size: int, fill: Any) -> Instruction:
        """`size` elements along a dimension from global index ``start + n * step`` on, on the dimension's part n.

        Elements beyond the array's ends are the scalar `fill`; anything when it is None.
        """
        return halo.window(self, part, dim, start, step, size, fill)

    # -- the walk ----------------------------------------------------------------------------------------------------
    def parts(self, i: Instruction) -> list[Part]:
        """The parts of all leaves of an instruction of the old program, which is in the computation being built."""
        return self.frame.parts[i]

    def written(self, sharding: TensorSharding) -> Sharding:
        """A sharding by axes of the mesh."""
        found = self._written.get(sharding)
        if found is None:
            found = self._written[sharding] = self.mesh.write(sharding)
        return found

    def text(self, sharding: TensorSharding) -> str:
        """A sharding as people read it: ``[{'x'}, {}]``."""
        found = self._texts.get(sharding)
        if found is None:
            found = "[" + ", ".join("{" + self.mesh.text(axes) + "}" for axes in sharding.dims) + "]"
            if sharding.unreduced:
                found += f" unreduced={{{self.mesh.text(sorted(sharding.unreduced))}}}"
            self._texts[sharding] = found
        return found

    def decide(self, ok: bool, reason: str, **fields: Any) -> None:
        """Keep a choice about the op that is being partitioned."""
        self.ctx.decide(ok, reason, subject=self.at.name, **fields)


def _dynamic(i: Instruction, shape: Shape) -> HeronError:
    return HeronError(
        "SPMD006",
        f"'{i.name}' has dynamic dimensions: {shape.bare}",
        where=str(i)[:200],
        why="the size of a share is known when the program is partitioned",
        hint="pad to the bound and pass the size as a value; `heron compile` does both ahead of the partitioner",
    )
