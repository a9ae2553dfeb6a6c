"""Host machine code: LLVM text -> object bytes -> addresses in this process.

`Jit.compile` is pure (text to object bytes, cacheable); `Jit.add` also links the object here. Symbols the text leaves
undefined are looked up among `Jit.symbols` (name -> address: BLAS routines, library callbacks), then in the process.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import count
from typing import Any

from heron.codegen.llvm import optimize, split_module
from heron.codegen.llvm.code_cache import CodeCache, Key, digest, key
from heron.codegen.llvm.code_memory import CodeMemory
from heron.codegen.llvm.optimize import LOCK, Clock, binding, parse, pipeline, slots_to_registers
from heron.errors import HeronError
from heron.records import dataclass
from heron.runtime.object_code import Object, Timing

#: processors whose gathers are quick, which LLVM does not know
_QUICK_GATHERS = frozenset({"znver3"})


@dataclass(frozen=True, slots=True)
class Host:
    """The machine code is made for. ``width``: bits of its vectors."""

    triple: str
    cpu: str
    features: str
    width: int

    @property
    def gathers(self) -> str:
        """The features of a machine whose gather instructions LLVM would not use, with these; else empty."""
        return ",".join(filter(None, (self.features, "+fast-gather"))) if self.cpu in _QUICK_GATHERS else ""


@cache
def host() -> Host:
    """This machine. ``HERON_HOST_CPU`` / ``HERON_HOST_FEATURES`` override what LLVM detects (for portable objects)."""
    llvm = binding()
    triple = llvm.get_process_triple()
    cpu = os.environ.get("HERON_HOST_CPU") or llvm.get_host_cpu_name()
    features = os.environ.get("HERON_HOST_FEATURES")
    if features is None:
        features = llvm.get_host_cpu_features().flatten() if "HERON_HOST_CPU" not in os.environ else ""
    if "+avx512f" in features:
        # LLVM would stay at 256 bits on Skylake-family CPUs
        return Host(triple, cpu, features + ",-prefer-256-bit", 512)
    return Host(triple, cpu, features, 256 if "+avx2" in features else 128)


#: unrolling more than doubles compile time and triples code for loops the vectoriser already interleaves; loops that
#: ask for it (`heron.unroll`, `heron.full_unroll`) are unrolled all the same
_TUNING = {"loop_unrolling": False}


#: above it LLVM's code generator also orders instructions that have their registers, a fifteenth of its time.
#: Processors that run instructions out of order do so themselves: 36 programs run as fast without it
_GENERATION = 1


def _target_machine(level: int) -> Any:
    llvm, machine = binding(), host()
    return llvm.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu,
        features=machine.features,
        opt=min(level, _GENERATION),
        reloc="pic",
        codemodel="small",
        jit=True,
    )


#: target machines at rest, each with the text of its data layout and of its triple
_AT_REST: dict[tuple[Host, int], list[tuple[Any, str, str]]] = {}


@contextmanager
def _borrowed_machine(level: int) -> Iterator[tuple[Any, str, str]]:
    """A target machine that no other thread uses meanwhile. What LLVM derives from a machine's features, which takes
    as long as a small kernel, stays with it."""
    with LOCK:
        rest = _AT_REST.setdefault((host(), level), [])
        found = rest.pop() if rest else None
    if found is None:
        made = _target_machine(level)
        found = made, str(made.target_data), made.triple
    yield found
    with LOCK:  # not after an error
        rest.append(found)


#: programs one linker takes: it remembers a little of each (5 KiB) for ever, and to make it takes as long as to link
_LINKS = 32
_LINKED = count()


@lru_cache(maxsize=1)
def _linker(_generation: int) -> Any:
    """The linker that loads machine code into this process."""
    # JITLink keeps an object's sections together; the older linker may place data out of reach of code
    return binding().create_lljit_compiler(_target_machine(0), use_jit_link=True, suppress_errors=True)


#: code of programs that this process has compiled
MADE = CodeMemory()


def _compile(
    text: str, level: int, passes: Callable[[Any, int], tuple[Any, Any]], at_code: Callable[[], None] | None = None
) -> tuple[bytes, Timing]:
    """Object code of LLVM text."""
    clock = Clock()
    with _borrowed_machine(level) as (machine, layout, triple):
        module = parse(text, triple, layout, apart=True)
        manager, builder = passes(machine, level)
        parse_s = clock.lap()
        try:
            split_module.run(manager, module, builder)
        finally:
            optimize.free(manager)
        opt_s = clock.lap()
        if at_code is not None:
            at_code()
        code = split_module.emit_object(machine, module)
    return code, Timing(parse_s, opt_s, clock.lap())


class Jit:
    """A compiler and linker for host code.

    Args:
        level: LLVM optimisation level; 3 vectorises, 1 compiles about twice as fast.
        symbols: external functions by name -> address.
        cache: where object code is kept between processes.
        shaped: whether texts are written as they are to run, so that only their stack slots become registers.
        tidied: whether LLVM may write instructions of such texts in shorter ways.
    """

    def __init__(
        self,
        *,
        level: int = 3,
        symbols: Mapping[str, int] | None = None,
        cache: CodeCache | None = None,
        shaped: bool = False,
        tidied: bool = False,
    ) -> None:
        self.level, self.shaped, self.tidied = level, shaped, tidied
        self.symbols: dict[str, int] = dict(symbols or {})
        self.cache = cache
        self.addresses: dict[str, int] = {}
        self._machines: dict[int, Any] = {}
        self._objects: list[Object] = []  # code stays loaded as long as its Jit or its Object lives

    def _machine(self, level: int) -> Any:
        found = self._machines.get(level)
        if found is None:
            found = self._machines[level] = _target_machine(level)
        return found

    def key(self, text: str, level: int | None = None) -> Key:
        """The cache key of this text's code."""
        machine = host()
        told = {"level": self.level if level is None else level, "generation": _GENERATION, **_TUNING}
        if self.shaped:
            told["shaped"] = True
        if self.tidied:
            told["tidied"] = True
        return key("object", text, f"{machine.triple} {machine.cpu}", machine.features, **told)

    def _optimised(self, text: str, level: int) -> Any:
        machine = self._machine(level)
        module = parse(text, machine.triple, str(machine.target_data))
        manager, builder = self._passes(machine, level)
        try:
            manager.run(module, builder)
        finally:
            optimize.free(manager)
        return module

    def _passes(self, machine: Any, level: int) -> tuple[Any, Any]:
        """The pass manager for a text, and its builder."""
        if self.shaped:
            return slots_to_registers(machine, self.tidied)
        return pipeline(machine, level, **_TUNING)

    def compile(
        self, text: str, name: str = "module", *, level: int | None = None, at_code: Callable[[], None] | None = None
    ) -> Object:
        """Object code of LLVM text, from the cache when it has it. Threads may compile side by side.

        Without a cache it is the code that this process has made of the same text before, if it still has that.
        ``at_code``: called before the last step, which makes machine code. Raises LLVM011 for bad IR.
        """
        level = self.level if level is None else level
        timing = Timing()

        def make() -> bytes:
            nonlocal timing
            code, timing = _compile(text, level, self._passes, at_code)
            return code

        if self.cache is not None:
            code, cached = self.cache.fetch(self.key(text, level), name, make)
            return Object(name, code, timing, cached)
        made_from = digest(text.encode()), level, self.shaped, self.tidied, host()
        kept = MADE.get(made_from)
        if kept is not None:
            return Object(name, kept, timing, cached=True)
        code = make()
        MADE.put(made_from, code)
        return Object(name, code, timing)

    def link(self, compiled: Object, exports: Iterable[str], others: Iterable[Object] = ()) -> Object:
        """Load an object into this process, with `others` that it needs, and resolve ``exports``.

        Raises LLVM012 for undefined symbols.
        """
        llvm = binding()
        images = [other.code for other in others]  # other threads may be at them still, and want the lock
        with LOCK:
            number = next(_LINKED)
            linker = _linker(number // _LINKS)
            builder = llvm.JITLibraryBuilder().add_object_img(compiled.code).add_current_process()
            for image in images:
                builder.add_object_img(image)
            for symbol, address in self.symbols.items():
                builder.import_symbol(symbol, address)
            names = list(exports)
            for symbol in names:
                builder.export_symbol(symbol)
            try:
                tracker = builder.link(linker, f"{compiled.name}.{number}")
            except RuntimeError as error:
                raise HeronError(
                    "LLVM012",
                    f"linking '{compiled.name}' failed",
                    why=str(error).strip(),
                    hint="give the missing functions' addresses in Jit.symbols",
                ) from error
            compiled.keep = (tracker, linker)
            compiled.addresses = {symbol: tracker[symbol] for symbol in names}
        self._objects.append(compiled)
        self.addresses |= compiled.addresses
        return compiled

    def add(
        self,
        text: str,
        name: str = "module",
        *,
        exports: Iterable[str] | None = None,
        level: int | None = None,
        others: Iterable[Object] = (),
    ) -> Object:
        """Compile and link; ``exports`` defaults to every function the text defines publicly, `others` see `link`."""
        names = public_functions(text) if exports is None else list(exports)
        compiled = self.compile(text, name, level=level)
        try:
            return self.link(compiled, names, others)
        except HeronError as error:
            missing = self._undefined(text)
            if error.code != "LLVM012" or not missing:
                raise
            why = f"nothing defines {', '.join(missing)}"
            raise HeronError(error.code, error.what, why=why, hint=error.hint) from error

    def _undefined(self, text: str) -> list[str]:
        """Functions the text declares that neither `symbols` nor this process has."""
        process = ctypes.CDLL(None)
        names = re.findall(r"^declare [^@\n]*@([\w.$]+)\(", text, re.MULTILINE)
        return [n for n in names if not n.startswith("llvm.") and n not in self.symbols and not hasattr(process, n)]

    def address(self, symbol: str) -> int:
        """The address of a linked function. Raises LLVM013 when nothing defines it."""
        found = self.addresses.get(symbol)
        if found is None:
            raise HeronError("LLVM013", f"no JIT function '{symbol}'", why=f"linked: {sorted(self.addresses)}")
        return found

    def optimized(self, text: str, *, level: int | None = None) -> str:
        """The LLVM text after the optimiser."""
        with LOCK:
            return str(self._optimised(text, self.level if level is None else level))

    def asm(self, text: str, *, level: int | None = None) -> str:
        """The assembly of the text."""
        level = self.level if level is None else level
        with LOCK:
            return self._machine(level).emit_assembly(self._optimised(text, level))


def public_functions(text: str) -> list[str]:
    """Names of the functions LLVM text defines with external linkage."""
    names = []
    for line in text.splitlines():
        if line.startswith("define ") and not line.startswith(("define internal", "define private")):
            names.append(line.split("@", 1)[1].split("(", 1)[0])
    return names
