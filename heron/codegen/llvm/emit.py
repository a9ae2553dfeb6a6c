"""The state of one translation and the table of rules: one small function per op class.

A rule appends LLVM text for its op to ``e.out`` and binds the op's results to operand text. Constants bind to
literals and cost no line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, Operation, SSAValue

from heron.codegen.llvm.declarations import Declarations
from heron.codegen.llvm.inline import is_long
from heron.codegen.llvm.inline.called import Calls, can_be_called, symbol
from heron.codegen.llvm.types import text_of
from heron.errors import HeronError

Rule = Callable[["Emitter", Any], None]
RULES: dict[type, Rule] = {}
#: copies of a function that a function of next to no work has not
COPIES = 3
#: integer arithmetic that has no effect and cannot fail, so that it may run ahead of a branch
_INDEX_OPS = frozenset({arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.CmpiOp, arith.AndIOp})


def rule(*classes: type) -> Callable[[Rule], Rule]:
    """Register a function as the translation of those op classes."""

    def register(function: Rule) -> Rule:
        for cls in classes:
            RULES[cls] = function
        return function

    return register


class Emitter:
    """The output text of a module's translation.

    ``out``: lines so far. ``label``: the basic block being filled. ``needed``: inline library functions the text calls.
    ``declared``: what the module has that it does not define. ``native``: what the target does in hardware.
    """

    __slots__ = (
        "out", "names", "label", "counter", "needed", "declared", "defined", "metadata", "index_bits", "flags",
        "everywhere", "native", "types", "geometry", "yielded", "kernels", "kept", "bf16", "default_bits",
        "called", "loops", "copies", "calls", "is_calling", "is_rare", "apart", "copied", "items", "marks",
    )  # fmt: skip

    def __init__(self, index_bits: int, native: frozenset[str], declared: Declarations) -> None:
        self.out: list[str] = []
        self.names: dict[SSAValue, str] = {}
        self.label = "entry"
        self.counter = 0
        self.needed: set[str] = set()
        self.called: list[str] = []  # library functions, in the order of the calls
        self.loops = 0  # how many were written
        self.copies = 0  # calls of long library functions that loops get when LLVM writes them out
        self.calls: Calls | None = None  # which functions call the library; None: all have copies of it
        self.is_calling = False  # whether this function does
        self.is_rare = False  # whether this function is of next to no work
        self.apart: set[str] = set()  # functions of the module of which this one is to have no copies
        self.copied = Counter[str]()  # copies of functions of the library that this one has
        self.marks: list[tuple[int, Operation]] | None = None  # where in `out` the text of each op begins, if asked
        self.items = 0  # work items of this kernel, where one thread has them all; 0: unknown
        self.declared = declared
        self.defined: set[str] = set()
        self.metadata: list[str] = []
        self.index_bits = self.default_bits = index_bits
        self.flags = ""  # on all float arithmetic
        self.everywhere: list[str] = []  # attributes of every function
        self.native = native
        self.bf16 = "bfloat" if "bf16" in native else "i16"
        self.types: dict[int, str] = {}
        self.kept: list[Attribute] = []  # so that no identity is reused
        self.geometry: dict[str, int] = {}  # 'thread x' -> number of threads, when the launch is known
        self.yielded: list[str] = []
        self.kernels: Mapping[str, Any] = {}  # entry functions and their KernelAbi

    def set_index_bits(self, bits: int) -> None:
        """From here on `index` has that many bits."""
        if bits != self.index_bits:
            self.index_bits = bits
            self.types.clear()
            self.kept.clear()

    def type(self, type_: Attribute) -> str:
        """LLVM text of a type, remembered."""
        found = self.types.get(id(type_))  # by identity: hashing an attribute costs more than the rest
        if found is None:
            found = self.types[id(type_)] = text_of(type_, self.index_bits, self.bf16)
            self.kept.append(type_)
        return found

    def name(self, value: SSAValue) -> str:
        """The operand text of a value."""
        return self.names[value]

    def typed(self, value: SSAValue) -> str:
        """``type operand``."""
        return f"{self.type(value.type)} {self.names[value]}"

    def define(self, value: SSAValue) -> str:
        """A fresh name bound to that value."""
        self.counter += 1
        name = self.names[value] = f"%v{self.counter}"
        return name

    def fresh(self) -> str:
        """A fresh name bound to nothing."""
        self.counter += 1
        return f"%v{self.counter}"

    def fresh_label(self, kind: str) -> str:
        """A fresh basic-block label."""
        self.counter += 1
        return f"{kind}{self.counter}"

    def start(self, label: str) -> None:
        """Begin a basic block."""
        self.label = label
        self.out.append(f"{label}:")

    def call(self, name: str, result: str, arguments: list[tuple[str, str]]) -> str:
        """A call of an external or intrinsic function; returns the result's name ('' for void)."""
        self.declared.function(f"{result} @{name}({', '.join(t for t, _ in arguments)})")
        text = ", ".join(f"{t} {v}" for t, v in arguments)
        if result == "void":
            self.out.append(f"  call void @{name}({text})")
            return ""
        fresh = self.fresh()
        self.out.append(f"  {fresh} = call {result} @{name}({text})")
        return fresh

    def library(self, name: str, result: str, arguments: list[tuple[str, str]]) -> str:
        """A call of a function of the inline library: its definition, or declaration, is appended at the end."""
        self.called.append(name)
        if self.calls is not None and self.is_calling and can_be_called(name):
            self.calls.names.add(name)
            name = symbol(name)
        else:
            self.needed.add(name)
            self.copied[name] += 1
        text = ", ".join(f"{t} {v}" for t, v in arguments)
        apart = " noinline" if self.is_rare and self.copied[name] >= COPIES and is_long(name) else ""
        fresh = self.fresh()
        self.out.append(f"  {fresh} = call {result} @{name}({text}){apart}")
        return fresh

    def distinct_metadata(self, body: str) -> str:
        """A self-referencing distinct node (what loop metadata wants); ``body`` follows the self reference."""
        number = len(self.metadata)
        self.metadata.append(f"!{number} = distinct !{{!{number}{', ' + body if body else ''}}}")
        return f"!{number}"

    def metadata_node(self, body: str) -> str:
        """A plain node ``!{body}``."""
        number = len(self.metadata)
        self.metadata.append(f"!{number} = !{{{body}}}")
        return f"!{number}"

    def block(self, block: Block) -> None:
        """Translate every op of a block."""
        rules = RULES
        for op in _indices_first(block):
            found = rules.get(type(op))
            if found is None:
                raise unsupported(op)
            if self.marks is not None:
                self.marks.append((len(self.out), op))
            found(self, op)


def _indices_first(block: Block) -> Iterable[Operation]:
    """The ops of a block. Where it branches, integer arithmetic that depends on no branch comes first.

    LLVM copies a short test that follows a branch, with the arithmetic in between, into both ends of the branch. An
    index that is computed there has then two definitions. Where it is the place of a masked load, LLVM's vectoriser
    takes the place of the first lane for all, though the first lane may not be one that loads.
    """
    if scf.IfOp not in map(type, block.ops):
        return block.ops
    first: list[Operation] = []
    others: list[Operation] = []
    late: set[SSAValue] = set()
    for op in block.ops:
        if type(op) in _INDEX_OPS and late.isdisjoint(op.operands):
            first.append(op)
        else:
            others.append(op)
            late.update(op.results)
    return first + others


def unsupported(op: Operation) -> HeronError:
    """The error for an op no rule knows."""
    return HeronError(
        "LLVM002",
        f"op '{op.name}' has no translation to LLVM",
        where=str(op).splitlines()[0][:200],
        hint="a transform that lowers it (heron/codegen/transforms) has not run",
    )


def is_set(op: Operation, key: str) -> bool:
    """True when a unit or true attribute of that name is on the op."""
    return key in op.attributes
