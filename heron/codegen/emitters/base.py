"""The interface of emitters, and the frame of a kernel: its entry function while that is filled.

A CPU entry does the work items `%lo` to `%hi`; a GPU entry reads its thread and block ids.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field, replace
from math import prod
from typing import ClassVar, Generic, TypeVar, cast

from xdsl.dialects import func, gpu, scf, tensor
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue

from heron.analysis.cost.code_size import code_limit, code_of
from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.fusion import Fusion, row_major
from heron.analysis.fusion.partition import Partition, partition
from heron.codegen.elemental import FunctionEmitter, KernelEmitter
from heron.codegen.elemental.registry import require
from heron.codegen.ir.dialects.indexed_loops import LoopOp
from heron.codegen.ir.editing import ops_within
from heron.codegen.ir.types import I64, INDEX, tensor_type
from heron.codegen.kernel import STACK_BYTES, Kernel, KernelArg, Launch
from heron.codegen.transforms.lib.buffers import byte_size
from heron.codegen.transforms.optimize_loops import COPIES, MOST
from heron.errors import HeronError
from heron.hlo.facts import is_boundary, root_parts
from heron.records import dataclass
from heron.targets import Target

#: ops that have an emitter of their own, and that elemental emission does not know
_WHOLE = frozenset({"scatter", "sort", "topk"})
#: ops of a kernel that computes one element up to which it is little code
_ONE_STEP = 80


def check(fusion: Fusion, target: Target) -> None:
    """Raise GEN001 unless every instruction can be emitted, GEN003 for a fusion no kernel can have."""
    for i in fusion.computation.instructions:
        if not is_boundary(i) and i.opcode not in _WHOLE:
            require(i, target.name)
    for p in fusion.inputs:
        if not p.shape.is_array:
            raise HeronError("GEN003", "a kernel's inputs are arrays", where=str(p))


@dataclass(slots=True)
class Frame:
    """The entry function of a kernel while it is filled: finish with `finish`.

    ``e`` emits into its body; ``outputs`` are the current tensor values of the outputs, which an emitter replaces as it
    inserts; ``lo``/``hi``: the range of work items (CPU only); ``heap_bytes``: of scratch; ``copies``: of the code for
    an element that loops may be written out to, 0 for any number.
    """

    fusion: Fusion
    name: str
    target: Target
    kernel: KernelEmitter
    e: FunctionEmitter
    block: Block
    outputs: list[SSAValue]
    lo: SSAValue | None = None
    hi: SSAValue | None = None
    aliases: dict[int, int] = field(default_factory=dict)  # output number -> input number
    heap_bytes: int = 0
    copies: int = 0

    @staticmethod
    def of(fusion: Fusion, cut: Partition, name: str, target: Target, *, any_layout: bool = False) -> Frame:
        """The entry function of a kernel: tensors in, tensors out, and the CPU's range of work items.

        ``any_layout``: the emitter asks for elements in memory order; others get GEN004 for what is not row-major.
        """
        check(fusion, target)
        if not any_layout and not row_major(fusion):
            shapes = ", ".join(str(s) for s in (*(p.shape for p in fusion.inputs), *(o.shape for o in fusion.outputs)))
            raise HeronError(
                "GEN004",
                f"kernel '{name}' would need row-major inputs and outputs",
                where=shapes,
                hint="the layout-assignment pass makes them so",
            )
        kernel = KernelEmitter(name, cut)
        kernel.straight = kernel.picks = not target.is_gpu
        arguments: list[Attribute] = [tensor_type(p.shape) for p in fusion.inputs]
        arguments += [tensor_type(o.shape) for o in fusion.outputs]
        cpu = not target.is_gpu
        block = Block(arg_types=[*arguments, *[INDEX] * (2 * cpu)])
        n = len(fusion.inputs)
        e = FunctionEmitter(kernel, block, dict(zip(fusion.inputs, block.args[:n], strict=True)))
        for arg in block.args[:n]:
            arg.name_hint = "in"
        for arg in block.args[n : n + len(fusion.outputs)]:
            arg.name_hint = "out"
        lo, hi = block.args[-2:] if cpu else (None, None)
        if lo is not None and hi is not None:
            lo.name_hint, hi.name_hint = "lo", "hi"
        outputs: list[SSAValue] = list(block.args[n : n + len(fusion.outputs)])
        return Frame(fusion, name, target, kernel, e, block, outputs, lo, hi)

    @property
    def is_gpu(self) -> bool:
        return self.target.is_gpu

    @property
    def items(self) -> tuple[SSAValue, SSAValue]:
        """The range of work items a CPU kernel does."""
        assert self.lo is not None and self.hi is not None
        return self.lo, self.hi

    def thread_id(self, axis: str = "x") -> SSAValue:
        """`gpu.thread_id`."""
        return self._id(gpu.ThreadIdOp, axis)

    def block_id(self, axis: str = "x") -> SSAValue:
        """`gpu.block_id`."""
        return self._id(gpu.BlockIdOp, axis)

    def _id(self, kind: type, axis: str) -> SSAValue:
        def make_id() -> SSAValue:
            dimension = gpu.DimensionAttr(gpu.DimensionEnum[axis.upper()])
            return self.e.b.op(kind, type=INDEX, properties={"dimension": dimension})

        return self.e.once((kind, axis), make_id)

    @property
    def room(self) -> float:
        """Copies of the code for an element that the kernel may have."""
        c, limit = self.fusion.computation, code_limit(self.target)
        return limit.most / max(1.0, code_of(root_parts(c), c.instructions, limit))

    def bound_copies(self) -> None:
        """Write loops out no further than there is room."""
        room = int(self.room)
        self.copies = max(1, room) if room < 4 * MOST else 0

    def scratch(self, element: Attribute, *sizes: int) -> SSAValue:
        """A tensor for the kernel's own use. On a CPU each thread has its own."""
        type_ = TensorType(element, list(sizes))  # type: ignore[type-var]
        size = prod(sizes) * byte_size(element)
        if not self.is_gpu and size > STACK_BYTES:
            self.heap_bytes += size
        return self.e.b.op(tensor.EmptyOp, type=type_)

    def finish(self, launch: Launch, emitter: str, notes: dict[str, str] | None = None) -> Kernel:
        """Return the outputs and make the kernel record."""
        self.e.b.terminate(func.ReturnOp, self.outputs)
        self.e.b.constants.drop_unused()
        function = self.kernel.add_function(self.name, self.block, [o.type for o in self.outputs])
        function.attributes["xla_gpu.entry"] = UnitAttr()
        if self.copies:
            function.attributes[COPIES] = IntegerAttr(self.copies, I64)
        args = [KernelArg(p.shape, "in", n) for n, p in enumerate(self.fusion.inputs)]
        args += [KernelArg(o.shape, "out", n, self.aliases.get(n)) for n, o in enumerate(self.fusion.outputs)]
        extra = [self._argument_attributes(a) for a in args]
        extra += [DictionaryAttr({})] * (len(self.block.args) - len(args))
        if any(a.data for a in extra):
            function.properties["arg_attrs"] = ArrayAttr(extra)
        launch = replace(launch, heap_bytes=self.heap_bytes)
        kernel = Kernel(self.name, self.kernel.module, tuple(args), launch, emitter, notes or {})
        kernel.is_one_step = _is_one_step(kernel)
        return kernel

    def _argument_attributes(self, arg: KernelArg) -> DictionaryAttr:
        facts: dict[str, Attribute] = {}
        if arg.alias is not None:
            facts["xla_gpu.alias"] = IntegerAttr(arg.alias, I64)
        if arg.shape.element_type.is_unsigned and arg.shape.element_type.bits < 8:
            facts["xla_gpu.unsigned"] = UnitAttr()
        if self.fusion.parts:
            facts["xla_gpu.part"] = UnitAttr()
        return DictionaryAttr(facts)


def _is_one_step(kernel: Kernel) -> bool:
    """Whether a kernel computes one element, with little code."""
    if kernel.launch.work_items != 1 or kernel.launch.heap_bytes:
        return False
    ops = ops_within(kernel.module)
    loops = [o for o in ops if isinstance(o, (scf.ForOp, scf.WhileOp, LoopOp))]
    over_items = all(isinstance(o.operands[0], BlockArgument) for o in loops)
    return len(ops) <= _ONE_STEP and len(loops) <= 1 and over_items


F = TypeVar("F")


class Emitter(ABC, Generic[F]):
    """Emits the kernels of fusions of one kind.

    ``kind`` is that of `FusionAnalysis`; `F` is the type of its form.
    """

    kind: ClassVar[str]

    def emit(self, analysis: FusionAnalysis, name: str, target: Target) -> list[Kernel]:
        """The kernels of a fusion, to be run in this order; the first is called `name`, or begins with it.

        Raises:
            HeronError: GEN001 for an op that no kernel computes, GEN003 for inputs that are no arrays, GEN004 for a
                layout other than row-major where the emitter needs that.
        """
        frame, form = self.frame(analysis, name, target), cast("F", analysis.form)
        return self.emit_gpu(frame, form) if frame.is_gpu else self.emit_cpu(frame, form)

    def frame(self, analysis: FusionAnalysis, name: str, target: Target) -> Frame:
        """The entry function that the kernel fills."""
        return Frame.of(analysis.fusion, partition(analysis.fusion.roots), name, target, any_layout=True)

    @abstractmethod
    def emit_cpu(self, frame: Frame, form: F) -> list[Kernel]:
        """The kernels for the CPU: work items `frame.items`."""

    @abstractmethod
    def emit_gpu(self, frame: Frame, form: F) -> list[Kernel]:
        """The kernels for a GPU: blocks of threads."""
