"""One native program for the CPU: the thunk sequence, loops and branches included, as LLVM text.

``void heron_program(ptr buffers)`` receives a table with the base address of every allocation. Kernels and library
routines are called by symbol; nothing returns to Python until the program is done, except `HostThunk`s.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from itertools import chain
from typing import Any

from heron.buffers.assignment import Slice
from heron.codegen.kernel import Kernel
from heron.codegen.llvm.code_cache import CodeCache
from heron.codegen.llvm.declarations import Declarations
from heron.codegen.llvm.text import Function
from heron.codegen.native import float_mode, profile
from heron.codegen.native.blas_threads import one_blas_thread
from heron.codegen.native.collectives import STOPPED, device, field, leave_if_failed, write_collective, write_number
from heron.codegen.native.copies import write_copies
from heron.codegen.native.share import pack, range_of, write_kernel
from heron.hlo.ir.types import ElementType
from heron.hlo.meaning.draws import FIRST_STATE
from heron.later import Later
from heron.runtime.collectives.state import Device
from heron.runtime.cpu.pool import Pool
from heron.runtime.cpu.profile import TABLE, Profile, is_step
from heron.runtime.thunks import (
    LAPACK,
    CollectiveThunk,
    ConditionalThunk,
    ConvolutionThunk,
    CopiesThunk,
    CopyThunk,
    DeviceNumberThunk,
    FftThunk,
    GemmThunk,
    HostThunk,
    KernelThunk,
    LapackThunk,
    MovingSlice,
    RandomStateThunk,
    RowBlocksThunk,
    RowCopiesThunk,
    Sequence,
    Start,
    Thunk,
    WhileThunk,
)

#: gives the address of code that programs share
MakeCode = Callable[[CodeCache | None], int]

#: what writes the calls of a library or of code that programs share: most programs have none of most kinds
_WRITERS: Later[Callable[[ProgramWriter, Any], None]] = Later(
    {
        "GemmThunk": "heron.codegen.native.gemm:write_gemm",
        "RowBlocksThunk": "heron.codegen.native.row_blocks:write_row_blocks",
        "ConvolutionThunk": "heron.codegen.native.convolution_tiles:write_convolution",
        "FftThunk": "heron.codegen.native.fft:write_fft",
        "LapackThunk": "heron.codegen.native.lapack:write_lapack",
        "RowCopiesThunk": "heron.codegen.native.row_copies:write_row_copies",
    }
)

ENTRY = "heron_program"
RANDOM_STATE = "@heron_random_state"


def melts(kernel: Kernel) -> bool:
    """Scalar work melts into the program, also where it is on an element of an array; what is larger stays a function,
    compiled once however often it is called."""
    return all(a.shape.num_elements == 1 for a in kernel.args) or kernel.is_one_step


def is_shared(kernel: Kernel, pool: Pool | None) -> bool:
    """Whether the threads of a pool share the kernel's work."""
    return pool is not None and kernel.launch.grain > 0


def is_whole(kernel: Kernel, pool: Pool | None) -> bool:
    """Whether each call of a kernel computes all of its work items: its function takes no range of them."""
    return not kernel.parts and not is_shared(kernel, pool)


class ProgramWriter(Function):
    """Writes the program's LLVM text; afterwards `externals` maps symbols to the addresses they need, and `unmade` to
    what gives the address, once it has compiled the code or found it in a cache; any thread may ask it.

    ``pool``: the threads that share large work, None for a program of one thread. ``shares`` tells whether they do.
    ``elsewhere``: kernels that are in other modules. ``profile``: who counts the steps' time.
    ``devices``: how many devices run the program; with several of them `cliques` maps groups of devices that exchange
    values to their numbers, and `collectives` names where they do.
    ``has_tables``: False where only what the text needs is wanted, not the text. ``flush``: denormals are taken for
    zero, except by host thunks.
    """

    def __init__(
        self,
        kernels: dict[str, Kernel],
        host_address: Callable[[HostThunk], int],
        pool: Pool | None = None,
        elsewhere: Collection[str] = (),
        profile: Profile | None = None,
        has_tables: bool = True,
        devices: int = 1,
        flush: bool = False,
    ) -> None:
        super().__init__(Declarations())
        self.flush = float_mode.flush_bits() if flush else 0
        self.devices = devices
        self.cliques: dict[tuple[int, ...], int] = {}
        self.collectives: list[str] = []
        self.tables: dict[str, str] = {}
        self.needs_device = False  # whether the function uses the device that runs it
        self.stops = False  # whether it may stop at a collective
        self.has_tables = has_tables
        self.kernels = kernels
        self.profile = profile
        self.elsewhere = elsewhere
        self.host_address = host_address
        self.pool = pool
        self.shares = False
        self.externals: dict[str, int] = {}
        self.unmade: dict[str, MakeCode] = {}
        self.constants: dict[int, str] = {}
        self.functions: list[str] = []
        self.ranges: dict[Hashable, str] = {}  # functions that do a range of a batch, by what they do
        self.helpers: dict[str, str] = {}
        self.allocations: dict[int, int] = {}  # and the bytes of each that are known to be there
        self.packed = 0  # most arguments handed to the pool at once
        self.in_loop = False
        self.blocks = 0
        self.hosts = 0

    def write(self, sequence: Sequence) -> str:
        """The functions; kernels are expected in the same module unless they are `elsewhere`. Beside these the module
        needs what is `declared`, by its kernels too."""
        # the straight part of a program is calls and nothing else: LLVM's optimiser has nothing to gain there
        self.write_function(ENTRY, sequence, "noinline optnone")
        if self.profile is not None:
            self.externals[TABLE] = self.profile.address()
        parts = (self.constants.values(), self.helpers.values(), self.functions, [""])
        return "\n".join(chain(*parts))

    def write_function(self, name: str, sequence: Sequence, attributes: str) -> tuple[bool, dict[int, int]]:
        """A function that runs a sequence; what was being written goes on afterwards. Whether it may stop early, and
        the allocations that it takes behind the table.

        No two of them overlap, which LLVM believes of arguments alone. A loop's counters then stay in registers, though
        it writes to arrays, also those that it only writes now and then: nobody else sees them before its end.
        """
        outer = self.lines, self.allocations, self.packed, self.needs_device, self.stops
        self.lines, self.allocations, self.packed, self.needs_device, self.stops = [], {}, 0, False, False
        usual = self._set_mode(self.flush) if name == ENTRY and self.flush else ""
        if self.profile is not None and name == ENTRY:
            begun = profile.begin(self)
            self.run(sequence)
            profile.end(self, begun, None)
        else:
            self.run(sequence)
        linkage = "" if name == ENTRY else "internal "
        taken = self.allocations if name != ENTRY and self.devices == 1 else {}
        apart = [f"ptr noalias writable dereferenceable({taken[n]}) %buffer{n}" for n in sorted(taken) if taken[n]]
        arguments = ", ".join(["ptr noalias readonly %buffers", *apart])
        lines = [f"define {linkage}void @{name}({arguments}) nounwind {attributes} {{", "entry:"]
        if self.packed:
            lines.append(f"  %packed = alloca [{self.packed} x ptr]")
        if self.needs_device:  # it stands in front of the table
            lines.append("  %device.slot = getelementptr ptr, ptr %buffers, i64 -1")
            lines.append("  %device = load ptr, ptr %device.slot")
        for n in sorted(n for n in self.allocations if not taken.get(n)):
            lines.append(f"  %slot{n} = getelementptr inbounds ptr, ptr %buffers, i64 {n}")
            lines.append(f"  %buffer{n} = load ptr, ptr %slot{n}")
        leave = [*([f"  call void @heron_set_float_mode(i64 {usual})"] if usual else []), "  ret void"]
        end = [*leave, *([f"{STOPPED}:", *leave] if self.stops else []), "}"]
        self.functions.append("\n".join([*lines, *self.lines, *end]))
        inner_stops = self.stops
        self.lines, self.allocations, self.packed, self.needs_device, self.stops = outer
        return inner_stops, {n: end for n, end in taken.items() if end}

    def _set_mode(self, more: int, fewer: int = 0) -> str:
        """Set and clear bits of the thread's floating-point mode; what it was before."""
        self.externals |= float_mode.addresses()
        self.declared.function(float_mode.READ)
        self.declared.function(float_mode.WRITE)
        before = self.value(f"call {float_mode.READ}")
        mode = self.value(f"or i64 {before}, {more}") if more else self.value(f"and i64 {before}, {~fewer}")
        self.line(f"call void @heron_set_float_mode(i64 {mode})")
        return before

    # -- pieces ------------------------------------------------------------------------------------------------------
    def name(self, hint: str) -> str:
        """A name that no other function of the program has; values are counted by themselves."""
        if hint == "%v":
            self.values += 1
            return f"{hint}{self.values}"
        self.blocks += 1
        return f"{hint}{self.blocks}"

    def pointer(self, s: Slice) -> str:
        n = s.allocation
        self._needs(n, s.offset + s.size)
        first = f"%buffer{n}"
        if s.offset:
            first = self.value(f"getelementptr inbounds i8, ptr {first}, i64 {s.offset}")
        if isinstance(s, MovingSlice):
            for start in s.starts:
                first = self.value(f"getelementptr inbounds i8, ptr {first}, i64 {self._bytes_before(start)}")
        return first

    def _bytes_before(self, start: Start) -> str:
        """The bytes before a slice whose beginning is a number in memory."""
        t, sign = start.type, "s" if start.type.is_signed else "u"
        number = self.value(f"load i{t.bits}, ptr {self.pointer(start.number)}")
        if t.bits < 64:
            number = self.value(f"{sign}ext i{t.bits} {number} to i64".replace("uext", "zext"))
        bounds = [("smax", 0), ("smin", start.last)] if t.is_signed else [("umin", start.last)]
        for bound, value in bounds:
            self.declare(f"llvm.{bound}.i64", f"i64 @llvm.{bound}.i64(i64, i64)")
            number = self.value(f"call i64 @llvm.{bound}.i64(i64 {number}, i64 {value})")
        return self.value(f"mul nuw nsw i64 {number}, {start.bytes}")

    def _needs(self, allocation: int, end: int) -> None:
        self.allocations[allocation] = max(self.allocations.get(allocation, 0), end)

    def int_constant(self, value: int) -> str:
        """Address of a constant 32-bit integer, as Fortran routines want their arguments."""
        if value not in self.constants:
            name = f"@heron_int_{value}".replace("-", "m")
            self.constants[value] = f"{name} = private unnamed_addr constant i32 {value}"
        return self.constants[value].split(" ", 1)[0]

    def declare(self, symbol: str, signature: str, address: int | MakeCode | None = None) -> None:
        self.declared.function(signature)
        if isinstance(address, int):
            self.externals[symbol] = address
        elif address is not None:
            self.unmade[symbol] = address

    def pack(self, arguments: list[str]) -> None:
        """Put arguments into the table on the stack, ``%packed``."""
        pack(self, arguments)

    def range_of(self, kernel: str) -> str:
        """The name of the function that does a range of a kernel's work items."""
        return range_of(self, kernel, len(self.kernels[kernel].args))

    # -- thunks ------------------------------------------------------------------------------------------------------
    def run(self, sequence: Sequence) -> None:
        for thunk in sequence:
            if self.profile is None or not is_step(thunk):
                self.thunk(thunk)
                continue
            begun = profile.begin(self)
            self.thunk(thunk)
            profile.end(self, begun, thunk)

    def thunk(self, t: Thunk) -> None:
        match t:
            case KernelThunk():
                self.kernel(t)
            case GemmThunk() | RowBlocksThunk() | ConvolutionThunk() | FftThunk() | LapackThunk() | RowCopiesThunk():
                _WRITERS[type(t).__name__](self, t)
            case CopyThunk():
                write_copies(self, [(t.origin, t.target)])
            case CopiesThunk():
                write_copies(self, list(zip(t.origins, t.targets, strict=True)))
            case WhileThunk():
                self.while_thunk(t)
            case ConditionalThunk():
                self.conditional(t)
            case RandomStateThunk():
                self.random_state(t)
            case CollectiveThunk():
                write_collective(self, t)
            case DeviceNumberThunk():
                write_number(self, t)
            case HostThunk() if t.library == LAPACK:
                with one_blas_thread(self):
                    self.host(t)
            case HostThunk():
                self.host(t)

    def kernel(self, t: KernelThunk) -> None:
        pointers = [self.pointer(s) for s in t.args]
        args = [f"ptr {p}" for p in pointers]
        kernel = self.kernels[t.kernel]
        items = kernel.launch.work_items
        if is_shared(kernel, self.pool):
            write_kernel(self, t.kernel, pointers, items, kernel.launch.grain)
            return
        if t.kernel in self.elsewhere:
            self.declare(t.kernel, f"void @{t.kernel}({', '.join(['ptr'] * len(args))})")
        inline = "" if melts(kernel) else " noinline"
        self.line(f"call void @{t.kernel}({', '.join(args)}){inline}")

    def while_thunk(self, t: WhileThunk) -> None:
        if not self.in_loop:  # a function of its own, which is optimised: scalar work melts into it
            self.in_loop = True
            name = self.name("heron_loop")
            stops, taken = self.write_function(name, (t,), "noinline")
            for n, end in taken.items():
                self._needs(n, end)
            self.line(f"call void @{name}({', '.join(['ptr %buffers', *(f'ptr %buffer{n}' for n in sorted(taken))])})")
            self.in_loop = False
            if stops:
                leave_if_failed(self)
            return
        head, body, done = self.name("while"), self.name("body"), self.name("done")
        self.line(f"br label %{head}")
        self.start(head)
        # LLVM leaves out a call of a function that changes nothing, even where it never returns, and what is behind it
        self.declare("llvm.sideeffect", "void @llvm.sideeffect()")
        self.line("call void @llvm.sideeffect()")
        self.run(t.condition)
        flag = self.value(f"load i8, ptr {self.pointer(t.predicate)}")
        test = self.value(f"icmp ne i8 {flag}, 0")
        self.line(f"br i1 {test}, label %{body}, label %{done}")
        self.start(body)
        self.run(t.body)
        self.line(f"br label %{head}")
        self.start(done)

    def conditional(self, t: ConditionalThunk) -> None:
        labels = [self.name("branch") for _ in t.branches]
        done = self.name("joined")
        width = "i8" if t.by_predicate else "i32"
        selector = self.value(f"load {width}, ptr {self.pointer(t.selector)}")
        if t.by_predicate:
            test = self.value(f"icmp ne i8 {selector}, 0")
            self.line(f"br i1 {test}, label %{labels[0]}, label %{labels[1]}")
        else:
            cases = " ".join(f"i32 {n}, label %{label}" for n, label in enumerate(labels[:-1]))
            self.line(f"switch i32 {selector}, label %{labels[-1]} [ {cases} ]")
        for label, branch in zip(labels, t.branches, strict=True):
            self.start(label)
            self.run(branch)
            self.line(f"br label %{done}")
        self.start(done)

    def random_state(self, t: RandomStateThunk) -> None:
        """The state is a global that all calls, from whatever thread, advance; each device has its own."""
        state = RANDOM_STATE
        if self.devices == 1:
            self.declared.variable(f"{RANDOM_STATE} = internal global i128 {FIRST_STATE}, align 16")
        else:
            states = ", ".join([f"i128 {FIRST_STATE}"] * self.devices)
            self.declared.variable(f"{RANDOM_STATE} = internal global [{self.devices} x i128] [{states}], align 16")
            number = self.value(f"load i32, ptr {field(self, Device.number.offset)}")
            state = self.value(f"getelementptr inbounds i128, ptr {RANDOM_STATE}, i32 {number}")
        now = self.value(f"atomicrmw add ptr {state}, i128 {t.delta} monotonic, align 16")
        self.line(f"store i128 {now}, ptr {self.pointer(t.out)}, align 8")

    def host(self, t: HostThunk) -> None:
        given = [device(self)] if self.devices > 1 else []
        call = self.host_call(t, [*given, *map(self.pointer, t.args)])
        before = self._set_mode(0, self.flush) if self.flush else ""
        self.line(call)
        if before:
            self.line(f"call void @heron_set_float_mode(i64 {before})")

    def host_call(self, t: HostThunk, pointers: Collection[str]) -> str:
        """A call of a thunk's function; the device that calls it comes first where there are several."""
        symbol = f"heron_host_{self.hosts}"
        self.hosts += 1
        self.declare(symbol, f"void @{symbol}({', '.join(['ptr'] * len(pointers))})", self.host_address(t))
        return f"call void @{symbol}({', '.join(f'ptr {p}' for p in pointers)})"

    def flag(self, letter: str) -> str:
        symbol = f"@heron_flag_{letter}"
        self.declared.variable(f'{symbol} = private unnamed_addr constant [2 x i8] c"{letter}\\00"')
        return symbol

    def scalar(self, et: ElementType, value: float) -> str:
        part = "float" if et.component.bits == 32 else "double"
        symbol = f"@heron_scalar_{et.name}_{int(value)}"
        kind = f"[2 x {part}] [{part} {value}, {part} 0.0]" if et.is_complex else f"{part} {value}"
        self.declared.variable(f"{symbol} = private unnamed_addr constant {kind}")
        return symbol
