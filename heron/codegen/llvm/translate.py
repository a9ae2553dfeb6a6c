"""xDSL module -> LLVM IR text.

``to_llvm`` walks the module once and appends text, about 4 µs an op: no LLVM builder, no intermediate objects. What
each op becomes is in the rule files (`emit_arith`, `emit_memory`, `emit_control`); this file does modules, functions
and their attributes. Definitions of inline library functions (``heron.*``) that the text calls are appended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from heron.codegen.ir.editing import ops_within
from heron.codegen.llvm import emit_arith, emit_control, emit_memory
from heron.codegen.llvm.declarations import Declarations
from heron.codegen.llvm.emit import COPIES, Emitter, rule
from heron.codegen.llvm.hidden_masks import hide_masks
from heron.codegen.llvm.inline import definitions
from heron.codegen.llvm.inline.called import Calls
from heron.codegen.llvm.numerics import IEEE, Numerics
from heron.codegen.llvm.types import function_result
from heron.errors import HeronError
from heron.records import dataclass

RULE_FILES = (emit_arith, emit_memory, emit_control)  # importing them registers their rules

#: float conversions the hardware does (every other one is an inline library call), and ``bf16`` where LLVM's bfloat
#: type may be used at all
NATIVE_CONVERSIONS: dict[str, frozenset[str]] = {
    "cpu": frozenset({"f32->f64", "f64->f32", "f16->f32", "f16->f64", "f32->f16"}),
    "gpu": frozenset(
        {"f32->f64", "f64->f32", "f16->f32", "f16->f64", "f32->f16", "f64->f16", "bf16", "bf16->f32", "f32->bf16"}
    ),
    "sim": frozenset({"f32->f64", "f64->f32", "f16->f32", "f16->f64", "f32->f16"}),
}


@dataclass(frozen=True, slots=True)
class KernelAbi:
    """The calling convention of an entry function.

    ``block``/``grid``: launch geometry, which bounds thread ids.
    ``min_blocks``, ``max_registers``: hints to ptxas. ``internal``: called only from within the module.
    ``items``: the CPU's work items, 0 where a call has a part of them. ``step``: a power of two that both bounds of a
    range of work items, the last two arguments on the CPU, are multiples of. ``is_whole``: each call has all of the
    items: the bounds are numbers in the text, and no arguments of its function.
    """

    target: Literal["cpu", "gpu", "sim"] = "cpu"
    block: tuple[int, int, int] | None = None
    grid: tuple[int, int, int] | None = None
    min_blocks: int | None = None
    max_registers: int | None = None
    internal: bool = False
    items: int = 0
    step: int = 1
    is_whole: bool = False


def to_llvm(
    module: ModuleOp,
    *,
    index_bits: int = 64,
    kernels: Mapping[str, KernelAbi] | None = None,
    target: Literal["cpu", "gpu", "sim"] | None = None,
    numerics: Numerics = IEEE,
    declared: Declarations | None = None,
    calls: Calls | None = None,
    lines: list[Operation | None] | None = None,
) -> str:
    """LLVM IR text of a lowered module.

    Args:
        module: func.func functions made of arith, math (native part), scf, llvm, gpu ids and calls.
        index_bits: width of ``index`` in functions that do not say otherwise (``heron.index_bits``).
        kernels: the entry functions and how each is called; other public functions keep the C convention.
        target: which conversions are native; by default that of the first kernel, else cpu.
        numerics: what may be done to floating-point values.
        declared: gets what the text declares, where that is part of a module that others write, too.
        calls: which functions call the inline library instead of having copies of it, and what they call.
        lines: gets the op of each line of the text, as far as there is one.

    Raises:
        HeronError LLVM001 for a type and LLVM002 for an op with no translation.
    """
    kernels = dict(kernels or {})
    first = next(iter(kernels.values()), KernelAbi())
    own = Declarations() if declared is None else declared
    e = Emitter(index_bits, NATIVE_CONVERSIONS[target or first.target], own)
    functions = [op for op in module.body.blocks[0].ops if isinstance(op, func.FuncOp)]
    e.defined = {f.sym_name.data for f in functions if f.body.blocks}
    missing = sorted(set(kernels) - e.defined)
    if missing:
        raise HeronError("LLVM003", f"module has no function '{missing[0]}'", why=f"it defines {sorted(e.defined)}")
    e.kernels, e.flags, e.calls = kernels, numerics.flags, calls
    e.everywhere = ['"denormal-fp-math-f32"="preserve-sign,preserve-sign"'] if numerics.flush else []
    e.marks = [] if lines is not None else None
    e.block(module.body.blocks[0])
    if (target or first.target) == "cpu":
        hide_masks(e.out)
    if lines is not None:
        lines += _ops_of_lines(e)
    return _finished(e, has_declarations=declared is None)


def _ops_of_lines(e: Emitter) -> Iterator[Operation | None]:
    marks = dict(e.marks or ())  # the innermost op whose text begins there
    op: Operation | None = None
    for n, text in enumerate(e.out):
        op = marks.get(n, op)
        yield from [op] * (text.count("\n") + 1)


def _finished(e: Emitter, has_declarations: bool) -> str:
    """All the text: functions, library definitions, declarations, metadata."""
    parts = ["\n".join(e.out)]
    if e.needed:
        parts.append(definitions(sorted(e.needed), e.calls is not None and e.calls.scales))
    if e.calls is not None:
        e.calls.declare(e.declared)
    if has_declarations:
        parts.append(e.declared.text().rstrip("\n"))
    parts.append("\n".join(e.metadata))
    return "\n".join(part for part in parts if part) + "\n"


@rule(func.FuncOp)
def _function(e: Emitter, op: func.FuncOp) -> None:
    name = op.sym_name.data
    if not op.body.blocks:
        return  # declared where it is called
    if len(op.body.blocks) > 1:
        raise HeronError("LLVM004", f"function '{name}' has branches", hint="use scf, not cf, before translation")
    bits = op.attributes.get("heron.index_bits")
    e.set_index_bits(bits.value.data if isinstance(bits, IntegerAttr) else e.default_bits)
    abi = e.kernels.get(name)
    e.geometry = _geometry(abi)
    e.items = abi.items if abi is not None else 0
    private = op.sym_visibility is not None and op.sym_visibility.data == "private"
    convention = "ptx_kernel " if abi is not None and abi.target != "cpu" else ""
    linkage = "internal " if (private if abi is None else abi.internal) else ""
    block = op.body.blocks[0]
    attributes = op.arg_attrs.data if op.arg_attrs is not None else (None,) * len(block.args)
    bounds = block.args[-2:] if abi is not None and abi.is_whole else ()
    arguments = [
        f"{e.type(arg.type)}{_argument_attributes(extra)} {e.define(arg)}"
        for arg, extra in zip(block.args, attributes, strict=True)
        if arg not in bounds
    ]
    e.names |= zip(bounds, ("0", str(e.items)), strict=False)
    result = function_result(op.function_type, e.index_bits, e.bf16)
    tail = " ".join(["nounwind", *e.everywhere, *_function_attributes(op, abi)])
    e.out.append(f"define {linkage}{convention}{result} @{name}({', '.join(arguments)}) {tail} {{")
    e.start("entry")
    callees = Counter(_callees(op))
    e.is_calling = e.calls is not None and e.calls.wanted(name, callees.elements())
    e.is_rare = e.calls is not None and name in e.calls.rare
    e.apart = {callee for callee, n in callees.items() if n >= COPIES} if e.is_rare else set()
    e.copied = Counter()
    if abi is not None and abi.step > 1:
        _tell_step(e, block.args[-2:], abi.step)
    e.block(block)
    e.out.append("}")


def _tell_step(e: Emitter, bounds: Sequence[SSAValue], step: int) -> None:
    """Let LLVM know that the bounds are multiples of `step`: loops over them then have no rest that fills no vector,
    nor code for one. An assumption would tell its vectoriser nothing; a mask does."""
    for bound in bounds:
        told = e.fresh()
        e.out.append(f"  {told} = and {e.typed(bound)}, {-step}")
        e.names[bound] = told


def _callees(op: func.FuncOp) -> Iterator[str]:
    return (call.callee.root_reference.data for call in ops_within(op) if type(call) is func.CallOp)


def _geometry(abi: KernelAbi | None) -> dict[str, int]:
    if abi is None:
        return {}
    known: dict[str, int] = {}
    for group, sizes in (("thread", abi.block), ("block", abi.grid)):
        known.update({f"{group} {axis}": n for axis, n in zip("xyz", sizes or (), strict=False)})
    return known


def _argument_attributes(extra: DictionaryAttr | None) -> str:
    """``llvm.noalias``, ``llvm.align = 16`` … on a function argument, as LLVM writes them."""
    if extra is None:
        return ""
    words = []
    for key, value in extra.data.items():
        if not key.startswith("llvm."):
            continue
        word = key.removeprefix("llvm.")
        if not isinstance(value, IntegerAttr):
            words.append(word)
        elif word == "align":
            words.append(f"align {value.value.data}")
        else:
            words.append(f"{word}({value.value.data})")
    return "".join(f" {word}" for word in words)


def _function_attributes(op: func.FuncOp, abi: KernelAbi | None) -> list[str]:
    words = [word for word in ("alwaysinline", "noinline") if f"llvm.{word}" in op.attributes]
    for key, value in op.attributes.items():
        if key.startswith("llvm.attr."):
            words.append(f'"{key.removeprefix("llvm.attr.")}"="{_attribute_text(value)}"')
    if abi is None:
        return words
    if abi.target == "cpu":
        return words
    if abi.block is not None:
        words.append('"nvvm.reqntid"="{},{},{}"'.format(*abi.block))
    if abi.min_blocks is not None:
        words.append(f'"nvvm.minctasm"="{abi.min_blocks}"')
    if abi.max_registers is not None:
        words.append(f'"nvvm.maxnreg"="{abi.max_registers}"')
    return words


def _attribute_text(value: Attribute) -> str:
    if isinstance(value, StringAttr):
        return value.data
    return str(value.value.data) if isinstance(value, IntegerAttr) else ""
