"""Executable: a compiled program one can call on NumPy arrays and ask about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Seq
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from heron.buffers.memory import Memory
from heron.errors import HeronError
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.records import dataclass
from heron.runtime.collectives.spread import Spread
from heron.runtime.memory import is_readable

if TYPE_CHECKING:
    from heron.buffers.assignment import BufferAssignment
    from heron.runtime.cpu.call import Entry
    from heron.trace import Trace


@dataclass(frozen=True, slots=True)
class Signature:
    """The interface of a program: flat parameter shapes with names, and the (maybe tuple) result.

    Tokens only order effects: no array stands for one, and in the result it is None.
    """

    parameters: tuple[Shape, ...]
    names: tuple[str, ...]
    result: Shape

    @property
    def outputs(self) -> tuple[Shape, ...]:
        """Flat result shapes, in order."""
        return tuple(s for _, s in self.result.leaves() if s.is_array)

    @property
    def arguments(self) -> tuple[tuple[int, ShapeIndex], ...]:
        """Flat arguments as (parameter number, tuple index)."""
        return tuple((n, index) for n, p in enumerate(self.parameters) for index, s in p.leaves() if s.is_array)

    @property
    def output_arrays(self) -> list[tuple[np.dtype, tuple[int, ...]]]:
        """Dtype and dimensions of each flat result as it lies in memory."""
        return array_facts(self.outputs)

    def check(self, arrays: Seq[Any]) -> list[np.ndarray]:
        """Arguments as arrays of the right dtype and shape.

        Raises RUN001 (count), RUN002 (dtype), RUN003 (shape).
        """
        leaves = [
            (name, leaf)
            for name, shape in zip(self.names, self.parameters, strict=True)
            for _, leaf in shape.leaves()
            if leaf.is_array
        ]
        if len(arrays) != len(leaves):
            wanted = ", ".join(f"{name}: {leaf.bare}" for name, leaf in leaves)
            raise HeronError(
                "RUN001",
                f"the program takes {len(leaves)} arrays, {len(arrays)} given",
                why=f"parameters: {wanted or 'none'}",
            )
        checked: list[np.ndarray] = []
        for n, ((name, leaf), value) in enumerate(zip(leaves, arrays, strict=True)):
            array = np.asarray(value)
            if array.dtype != leaf.element_type.dtype:
                raise HeronError(
                    "RUN002",
                    f"argument {n} ('{name}') has dtype {array.dtype}, the program takes {leaf.element_type}",
                    hint=f"array.astype({leaf.element_type.dtype.name!r})",
                )
            if not leaf.fits(array.shape):
                raise HeronError(
                    "RUN003",
                    f"argument {n} ('{name}') has shape {list(array.shape)}, the program takes {leaf.bare}",
                    why=leaf.misfit(array.shape),
                )
            checked.append(array)
        return checked

    def finish(self, outputs: list[np.ndarray]) -> list[np.ndarray]:
        """The callers' result from the program's flat outputs."""
        return outputs

    def pack(self, outputs: Seq[np.ndarray]) -> Any:
        """Flat outputs as the program's result: one array, or nested tuples."""
        return _packed(self.result, iter(outputs))


def need_devices(given: int, devices: int) -> None:
    """Raise RUN085 unless there are arguments for as many devices as the program has."""
    if given != devices:
        raise HeronError(
            "RUN085",
            f"the program runs on {devices} device{'s' * (devices > 1)}, arguments of {given} given",
            hint="run_devices takes a list of arrays for each device",
        )


def array_facts(shapes: Seq[Shape]) -> list[tuple[np.dtype, tuple[int, ...]]]:
    """Dtype and dimensions of arrays as they lie in memory."""
    return [(s.element_type.dtype, tuple([s.dims[d] for d in memory_order(s)])) for s in shapes]


def memory_order(shape: Shape) -> tuple[int, ...]:
    """Dimensions of an array as they lie in memory, the slowest first."""
    return tuple(range(shape.rank)) if shape.layout is None else shape.layout.minor_to_major[::-1]


def _turned(shapes: Seq[Shape]) -> list[tuple[int, tuple[int, ...]]]:
    """Places and memory orders of the arrays that are not row-major."""
    orders = [(n, memory_order(s)) for n, s in enumerate(shapes)]
    return [(n, order) for n, order in orders if order != tuple(range(len(order)))]


def _packed(shape: Shape, rest: Iterator[np.ndarray]) -> Any:
    # no closure: one that calls itself is a cycle, and would keep outputs alive until the collector comes
    if shape.tuple_shapes is not None:
        return tuple([_packed(s, rest) for s in shape.tuple_shapes])
    return next(rest) if shape.is_array else None


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """A distinct kernel: where it came from and how it is launched.

    ``heap_bytes``: what all threads together take from the heap while it runs.
    """

    name: str
    emitter: str
    uses: int
    instructions: tuple[str, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    work_items: int
    shared_bytes: int
    heap_bytes: int
    notes: dict[str, str]


class StageTexts(Protocol):
    """The stages of a program as text."""

    def text(self, name: str) -> str:
        """The program at a stage. Raises TGT002, TGT003 or RUN053 for a stage that the program does not have."""
        ...


@dataclass(frozen=True, slots=True)
class ProgramInfo:
    """The facts of a compiled program that do not depend on the machine that runs it."""

    name: str
    target: str
    signature: Signature
    kernels: list[KernelInfo]
    assignment: BufferAssignment
    trace: Trace
    stages: StageTexts
    spread: Spread = Spread()


class Executable(ABC):
    """A compiled program. Call it on arrays in parameter order; ask `kernels`, `memory`, `trace`, `stage(name)`."""

    #: told of each kernel by name as it begins, where Python launches them: on the simulator; for progress displays
    on_kernel: Callable[[str], None] | None = None

    def __init__(self, info: ProgramInfo) -> None:
        self.name, self.target, self.signature = info.name, info.target, info.signature
        self.kernels, self.assignment, self.trace = info.kernels, info.assignment, info.trace
        self.stages, self.spread = info.stages, info.spread
        leaves = [s for p in info.signature.parameters for _, s in p.leaves() if s.is_array]
        self._turned_arguments, self._turned_outputs = _turned(leaves), _turned(info.signature.outputs)

    def __call__(self, *arrays: Any) -> Any:
        """Run on NumPy arrays; gives one array, or (nested) tuples of them."""
        return self.signature.pack(self.run(arrays))

    def run(self, arrays: Seq[Any], *, donate: bool = False) -> list[np.ndarray]:
        """Run; flat outputs in order.

        Args:
            donate: arguments that the program aliases with outputs (`input_output_alias`, `donate_argnums` of JAX) are
                given away: their memory holds outputs afterwards. Without it they are copied, and none ever changes.

        Raises RUN001-RUN003 for arguments that do not fit, RUN005 for donated ones that share memory with others.
        """
        return self.finished(self.execute(self.checked(arrays), donate))

    def checked(self, arrays: Seq[Any]) -> list[np.ndarray]:
        """Arguments as `execute` takes them. Raises RUN001-RUN003."""
        given = self.signature.check(arrays)
        for n, order in self._turned_arguments:
            given[n] = given[n].transpose(order)
        return [a if is_readable(a) else np.array(a, order="C") for a in given]

    def finished(self, outputs: list[np.ndarray]) -> list[np.ndarray]:
        """The callers' outputs from those that `execute` gives."""
        for n, order in self._turned_outputs:
            outputs[n] = outputs[n].transpose(np.argsort(order))
        return self.signature.finish(outputs)

    @property
    def devices(self) -> int:
        """The number of devices that one run takes: replicas × partitions of the program."""
        return self.spread.devices

    def run_devices(
        self,
        arguments: Seq[Seq[Any]],
        *,
        donate: bool = False,
        places: Seq[int] | None = None,
        processes: Seq[int] | None = None,
    ) -> list[list[np.ndarray]]:
        """Run on all devices at once; the flat outputs of each device, in the order of the devices' numbers.

        Args:
            arguments: the flat arguments of each device, in the shapes of `signature`. Device ``r * partitions + p`` is
                partition p of replica r.
            donate: as for `run`.
            places: the numbers of the devices of this process, whose arguments are given, where other processes have
                the others (`mpiexec`); by default all.
            processes: the process of each device of the program, by its rank in MPI; by default equal shares.

        Raises RUN081, RUN082, RUN087 and RUN088 when other processes do not do the same, RUN083 for devices of other
        processes that are not there, RUN085 for arguments of another number of devices, RUN089 where several cannot
        run, and what `run` raises.
        """
        need_devices(len(arguments), self.devices)
        return [self.run(arguments[0], donate=donate)]

    @abstractmethod
    def execute(self, arrays: list[np.ndarray], donate: bool = False) -> list[np.ndarray]:
        """Run on checked flat arguments (`memory.is_readable`), their dimensions as they lie in memory."""

    def native_entry(self) -> Entry | None:
        """The entry for native code to run the program on exact arrays without Python; None if not possible yet."""
        return None

    @property
    def memory(self) -> Memory:
        """Bytes of one run by kind, as fields and as keys: arguments, outputs, aliased, constants, temp, peak."""
        # kernels run one after another
        return Memory.of(self.assignment, max((k.heap_bytes for k in self.kernels), default=0))

    def examine(self) -> None:  # noqa: B027
        """Find out what each kernel uses of the machine (registers, …), for the trace; nothing to find on a CPU."""

    def stage(self, name: str) -> str:
        """The program at a stage, as text: hlo, fused, scheduled, buffers, thunks, graph, mlir, llvm, …"""
        return self.stages.text(name)
