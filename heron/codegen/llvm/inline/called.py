"""Functions of the inline library that kernels call: copies of them would be most of a kernel that has many.

A function is a module of its own, on one number and on vectors of them. All its forms are the one definition that is
copied elsewhere, so values have the same bits. LLVM's loop vectoriser finds the forms on vectors by an attribute:

    declare float @heron.sin.f32.far(float) … "vector-function-abi-variant"="…(heron.sin.f32.far.v16),…"
    declare <16 x float> @heron.sin.f32.far.v16(<16 x float>)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import field
from functools import cache
from threading import Lock

from heron.codegen.llvm.code_cache import shared_cache
from heron.codegen.llvm.declarations import Declarations
from heron.codegen.llvm.inline import definitions, has, is_long, lines_of, text_of
from heron.codegen.llvm.inline.builder import LLVM_TYPES, REGISTRY, Definition, literal
from heron.codegen.llvm.inline.lanes import on_lanes
from heron.codegen.llvm.jit import Jit
from heron.records import dataclass
from heron.runtime.object_code import Object, Timing
from heron.targets.target import MASKED_BITS

#: bits of the numbers that vectors are of
_BITS = {"f32": 32, "f64": 64}
#: instructions that copies may add to a function; LLVM takes about 0.15 ms for each
_BUDGET = 300
#: each function's code, by name, LLVM's level and the machine's vectors
_CODE: dict[tuple[str, int, int], bytes] = {}
_LOCK = Lock()


@dataclass
class Calls:
    """The functions of a module that call the library, for a machine with vectors of `width` bits.

    ``small``: functions of so little work that they always do. ``rare``: functions of so little work in all their calls
    that they have two copies of another function at most. ``names``: what is called; it fills up.
    """

    width: int
    small: Collection[str] = ()
    rare: Collection[str] = ()
    names: set[str] = field(default_factory=set)

    @property
    def has_masks(self) -> bool:
        """Whether the machine computes, loads and stores part of a vector as fast as all of it."""
        return self.width >= MASKED_BITS

    @property
    def scales(self) -> bool:
        """Whether the machine has an instruction that multiplies by a power of two, as AVX-512 has."""
        return self.width >= 512

    def wanted(self, function: str, names: Iterable[str]) -> bool:
        """Whether a function that uses these of the library calls them."""
        called = [name for name in names if can_be_called(name)]
        return sum(map(lines_of, called)) > (0 if function in self.small else _BUDGET) or any(
            map(is_mostly_rare, called)
        )

    def declare(self, declared: Declarations) -> None:
        """Declare what is called. LLVM would drop the forms on vectors before its vectoriser runs if they were not
        kept."""
        vectors: list[str] = []
        for name in sorted(self.names):
            d = REGISTRY[name]
            forms = [(n, _symbol(d, n)) for n in (*_lanes(d, self.width), *_few_lanes(d, self.width))]
            given = "v" * len(d.arguments)
            told = ",".join(f"_ZGV_LLVM_N{n}{given}_{_symbol(d, 1)}({symbol})" for n, symbol in forms)
            pure = "nounwind willreturn memory(none)"
            declared.function(f'{_signature(d, 1)} {pure} "vector-function-abi-variant"="{told}"')
            for n, _ in forms:
                declared.function(f"{_signature(d, n)} {pure}")
            vectors += [f"ptr @{symbol}" for _, symbol in forms]
        if vectors:
            kept = f"[{len(vectors)} x ptr] [{', '.join(vectors)}]"
            declared.variable(f'@llvm.compiler.used = appending global {kept}, section "llvm.metadata"')


@cache
def can_be_called(name: str) -> bool:
    """Whether the library's function has forms on vectors: it is long, and all its numbers are of one type."""
    if not has(name) or not is_long(name):
        return False
    d = REGISTRY[name]
    return d.result in _BITS and set(d.arguments) == {d.result}


@cache
def is_mostly_rare(name: str) -> bool:
    """Whether most of a function is for rare arguments: a copy has no branch, and would do all of it for each."""
    d = REGISTRY[name]
    return d.usual is not None and lines_of(name) > 2 * d.text(usual=True)[0].count("\n")


def symbol(name: str) -> str:
    """The name of a function of the library where it is called, on one number."""
    return f"{name}.far"


@cache
def text(name: str, width: int) -> str:
    """The module of one function."""
    d = REGISTRY[name]
    lanes = _lanes(d, width)
    scales = Calls(width).scales
    forms = [_on_numbers(d, scales), *(_on_vectors(d, n, scales) for n in lanes)]
    forms += [_on_few(d, n, lanes[-1]) for n in _few_lanes(d, width)]
    return "\n".join([definitions([name], scales), *forms, *_METADATA, ""])


def compiler(name: str, jit: Jit) -> Jit:
    """The compiler of a function for programs of `jit`: where its vectors are in its text, LLVM is to find none."""
    is_shaped = not _has_tables(name)
    return Jit(level=jit.level, cache=jit.cache or shared_cache(), shaped=is_shaped, tidied=is_shaped)


def compiled(name: str, width: int, jit: Jit) -> Object:
    """The code of one function, compiled or read once in a process. Each program links its own copy."""
    if jit.cache is not None:  # which other processes are to find it in
        return compiler(name, jit).compile(text(name, width), name)
    key = (name, width, jit.level)
    with _LOCK:
        code = _CODE.get(key)
    if code is not None:
        return Object(name, code, Timing(), cached=True)
    made = compiler(name, jit).compile(text(name, width), name)
    with _LOCK:
        _CODE[key] = made.code
    return made


def _lanes(d: Definition, width: int) -> tuple[int, ...]:
    """The counts of numbers in whole and in half vectors of a machine."""
    whole = width // _BITS[d.result]
    return tuple(n for n in (whole, whole // 2) if n > 1)


def _few_lanes(d: Definition, width: int) -> tuple[int, ...]:
    """Half of the fewest of those counts, if that is more than two: loops of so few steps are vectors, too."""
    few = min(_lanes(d, width), default=0) // 2
    return (few,) if few > 2 else ()


def _symbol(d: Definition, count: int) -> str:
    return symbol(d.name) + (f".v{count}" if count > 1 else "")


def _type(d: Definition, count: int) -> str:
    one = LLVM_TYPES[d.result]
    return one if count == 1 else f"<{count} x {one}>"


def _signature(d: Definition, count: int) -> str:
    return f"{_type(d, count)} @{_symbol(d, count)}({', '.join([_type(d, count)] * len(d.arguments))})"


def _on_numbers(d: Definition, scales: bool) -> str:
    """By a branch where the function has a usual range: one number goes one way."""
    one = LLVM_TYPES[d.result]
    given = ", ".join(f"{one} %x{n}" for n in range(len(d.arguments)))
    head = f"define {one} @{_symbol(d, 1)}({given}) nounwind {{"
    whole = f"  %r = call {one} @{d.name}({given})\n  ret {one} %r\n}}"
    if d.usual is None:
        return f"{head}\n{whole}"
    return "\n".join(
        [
            d.text(usual=True, scales=scales)[0],
            head,
            f"  %size = call {one} @llvm.fabs.{d.result}({one} %x0)",
            f"  %is_usual = fcmp olt {one} %size, {literal(d.usual, d.result)}",
            "  br i1 %is_usual, label %usual, label %rare, !prof !2",
            "usual:",
            f"  %u = call {one} @{d.name}.usual({given})",
            f"  ret {one} %u",
            "rare:",
            whole,
        ]
    )


def _has_tables(name: str) -> bool:
    """Whether a function looks numbers up, which vectors have other instructions for."""
    return bool(text_of(name)[1])


def _on_vectors(d: Definition, count: int, scales: bool) -> str:
    """Each instruction on all lanes; look-ups need a loop over the lanes, of which LLVM makes one step of vectors."""
    if _has_tables(d.name):
        return _over_lanes(d, count)
    many, symbol = _type(d, count), _symbol(d, count)
    whole = text_of(d.name, scales)[0]
    if d.usual is None:
        return _on_lanes(whole, d, count, symbol)
    numbers = range(len(d.arguments))
    given = ", ".join(f"{many} %x{n}" for n in numbers)
    return "\n".join(
        [
            _on_lanes(d.text(usual=True, scales=scales)[0], d, count, f"{symbol}.usual"),
            _on_lanes(whole, d, count, f"{symbol}.any"),
            f"define {many} @{symbol}({given}) nounwind {{",
            *_are_usual(d, count),
            "  br i1 %is_usual, label %usual, label %rare, !prof !2",
            "usual:",
            f"  %u = call {many} @{symbol}.usual({given})",
            f"  ret {many} %u",
            "rare:",
            f"  %r = call {many} @{symbol}.any({given})",
            f"  ret {many} %r",
            "}",
        ]
    )


def _on_lanes(text: str, d: Definition, count: int, symbol: str) -> str:
    """The function of that text with each instruction on all lanes: one that kernels call, or a way of computing it."""
    _, *body = text.split("\n")
    many = _type(d, count)
    given = ", ".join(f"{many} %a{n}" for n in range(len(d.arguments)))
    scope, inlined = ("", "") if symbol == _symbol(d, count) else ("internal ", "alwaysinline ")
    head = f"define {scope}{many} @{symbol}({given}) {inlined}nounwind {{"
    return "\n".join([head, *(on_lanes(line, count) for line in body)])


def _are_usual(d: Definition, count: int) -> list[str]:
    """The instructions that tell in `%is_usual` whether all first arguments are in the usual range."""
    many, one = _type(d, count), LLVM_TYPES[d.result]
    assert d.usual is not None
    return [
        f"  %size = call {many} @llvm.fabs.v{count}{d.result}({many} %x0)",
        f"  %each = fcmp olt {many} %size, splat ({one} {literal(d.usual, d.result)})",
        f"  %is_usual = call i1 @llvm.vector.reduce.and.v{count}i1(<{count} x i1> %each)",
    ]


def _over_lanes(d: Definition, count: int) -> str:
    """A loop over the lanes. Where all numbers are in a usual range it is one for that range."""
    many, numbers = _type(d, count), range(len(d.arguments))
    lines = [f"define {many} @{_symbol(d, count)}({', '.join(f'{many} %x{n}' for n in numbers)}) nounwind {{", "entry:"]
    lines.append(f"  %out = alloca {many}")
    for n in numbers:
        lines += [f"  %p{n} = alloca {many}", f"  store {many} %x{n}, ptr %p{n}"]
    if d.usual is None:
        lines += ["  br label %lane", *_lane_loop(d, count, "", "entry")]
    else:
        lines += [
            *_are_usual(d, count),
            "  br i1 %is_usual, label %lane.usual, label %lane, !prof !2",
            *_lane_loop(d, count, ".usual", "entry"),
            *_lane_loop(d, count, "", "entry"),
        ]
    # LLVM makes no vectors of two lanes, and tells the user so if it was asked to
    hints = f"!0, !1, !{2 * count + 1}" if count > 2 else "!1"
    return "\n".join(
        [
            *lines,
            "done:",
            f"  %r = load {many}, ptr %out",
            f"  ret {many} %r",
            "}",
            f"!{2 * count} = distinct !{{!{2 * count}, {hints}}}",
            f'!{2 * count + 1} = !{{!"llvm.loop.vectorize.width", i32 {count}}}',
        ]
    )


def _lane_loop(d: Definition, count: int, way: str, before: str) -> list[str]:
    """The loop over the lanes by one way of computing them, which leads to `done`."""
    one, numbers = LLVM_TYPES[d.result], range(len(d.arguments))
    lines = [f"lane{way}:", f"  %i{way} = phi i64 [ 0, %{before} ], [ %next{way}, %lane{way} ]"]
    for n in numbers:
        lines += [
            f"  %a{n}{way} = getelementptr inbounds {one}, ptr %p{n}, i64 %i{way}",
            f"  %n{n}{way} = load {one}, ptr %a{n}{way}",
        ]
    return [
        *lines,
        f"  %y{way} = call {one} @{d.name}{way}({', '.join(f'{one} %n{n}{way}' for n in numbers)})",
        f"  %o{way} = getelementptr inbounds {one}, ptr %out, i64 %i{way}",
        f"  store {one} %y{way}, ptr %o{way}",
        f"  %next{way} = add nuw nsw i64 %i{way}, 1",
        f"  %more{way} = icmp ult i64 %next{way}, {count}",
        f"  br i1 %more{way}, label %lane{way}, label %done, !llvm.loop !{2 * count}",
    ]


def _on_few(d: Definition, count: int, lanes: int) -> str:
    """By the form on more lanes, the rest of which repeat the first numbers: little code."""
    few, many, numbers = _type(d, count), _type(d, lanes), range(len(d.arguments))
    every, first = (", ".join(f"i32 {n % count}" for n in range(total)) for total in (lanes, count))
    given = ", ".join(f"{few} %x{n}" for n in numbers)
    return "\n".join(
        [
            f"define {few} @{_symbol(d, count)}({given}) nounwind {{",
            *(f"  %y{n} = shufflevector {few} %x{n}, {few} poison, <{lanes} x i32> <{every}>" for n in numbers),
            f"  %r = call {many} @{_symbol(d, lanes)}({', '.join(f'{many} %y{n}' for n in numbers)}) noinline",
            f"  %s = shufflevector {many} %r, {many} poison, <{count} x i32> <{first}>",
            f"  ret {few} %s",
            "}",
        ]
    )


#: the last says that rare arguments are rare
_METADATA = (
    '!0 = !{!"llvm.loop.vectorize.enable", i1 true}',
    '!1 = !{!"llvm.loop.interleave.count", i32 1}',
    '!2 = !{!"branch_weights", i32 1000, i32 1}',
)
