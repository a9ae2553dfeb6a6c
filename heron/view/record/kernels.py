"""Each kernel's texts on its way to machine code, every line with the HLO instruction it comes from.

The kernels are lowered again, one at a time: the compile itself lowers many together and keeps no text.

Stored for each kernel: its ``name``, ``emitter``, ``instruction`` and ``names`` (the HLO instructions in it), and
``steps``: pairs of a name and a text. A text has ``lines``, ``of`` (for each line the number of its instruction in
``names``, -1 where there is none) and, from the second MLIR step on, ``from`` (the line of the step before, or -1);
``base`` is the number of the step that ``from`` means where it is an earlier one.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.printer import Printer

from heron.backends.lower import KernelUse, Lowering
from heron.codegen.ir.origins import Origins, noting
from heron.codegen.llvm.debug_lines import numbered, stripped
from heron.codegen.merge import merge
from heron.codegen.transforms import pipeline
from heron.codegen.triton.text import to_ttir
from heron.errors import HeronError
from heron.hlo.text.printer import print_instruction
from heron.trace import Trace
from heron.view.record import triton_lines
from heron.view.record.versions import OPTIONS

if TYPE_CHECKING:
    from heron.backends.compiler import Compilation
    from heron.backends.machine import Machine
    from heron.hlo.ir.instruction import Instruction

Text = dict[str, Any]


def texts(compilation: Compilation) -> Iterator[dict[str, Any]]:
    """The stored form of every kernel of a program, in the order of their first use."""
    with noting() as origins:
        lowering = Lowering(compilation.scheduled, compilation.buffers, compilation.machine, Trace())
        kernels = lowering.program().kernels
        compilation.machine.share_out(kernels, Trace())
        for use in kernels.values():
            yield _kernel(compilation.machine, use, origins)


def _kernel(machine: Machine, use: KernelUse, origins: Origins) -> dict[str, Any]:
    hlo = _hlo(use.instruction)
    names = [i.name for i in hlo]
    numbers = {name: n for n, name in enumerate(names)}
    steps: list[tuple[str, Text]] = [("hlo", _hlo_text(hlo))]
    if use.kernel.emitter == "block":
        steps += _block_steps(machine, use, origins, numbers)
    else:
        steps += _steps(machine, use, origins, numbers)
    return {
        "name": use.kernel.name,
        "emitter": use.kernel.emitter,
        "instruction": use.instruction.name,
        "sources": list(use.sources),
        "names": names,
        "steps": [[name, text] for name, text in steps],
    }


def _hlo(i: Instruction) -> list[Instruction]:
    """The instructions that a kernel computes, operands first."""
    return i.calls.post_order() if i.opcode == "fusion" else [i]


def _hlo_text(instructions: list[Instruction]) -> Text:
    lines = [
        ("ROOT " if i.is_root and len(instructions) > 1 else "") + print_instruction(i, OPTIONS) for i in instructions
    ]
    return {"lines": lines, "of": list(range(len(lines)))}


def _block_steps(
    machine: Machine, use: KernelUse, origins: Origins, numbers: dict[str, int]
) -> Iterator[tuple[str, Text]]:
    _, ops = _printed(use.kernel.module)
    lines = to_ttir(use.kernel.module).rstrip("\n").split("\n")
    of = _origins(ops, origins, numbers)
    yield "triton", {"lines": lines, "of": of}
    try:
        made = machine.block_stages(use)
    except HeronError:  # a simulated GPU has no such stages; or there is no Triton, which the compile has told
        return
    for stage, text in made.items():
        kept, places = triton_lines.located(stage, text)
        back = [n - 1 if 0 < n <= len(lines) else -1 for n in places]
        yield stage, {"lines": kept, "of": [of[n] if n >= 0 else -1 for n in back], "from": back, "base": 1}


def _steps(machine: Machine, use: KernelUse, origins: Origins, numbers: dict[str, int]) -> Iterator[tuple[str, Text]]:
    name = use.kernel.name
    module = merge([use.kernel])
    record: list[tuple[str, Text, list[Operation | None]]] = []

    def keep(step: str, module: ModuleOp) -> None:
        lines, ops = _printed(module)
        text: Text = {"lines": lines, "of": _origins(ops, origins, numbers)}
        if not record:
            record.append((step, text, ops))
        elif record[-1][1]["lines"] != lines:
            text["from"] = _lines_before(ops, record[-1][2], origins)
            record.append((step, text, ops))

    keep("emission", module)
    pipeline.run(module, machine.transform_options({name: use}), observe=keep)
    yield from ((step, text) for step, text, _ in record)
    ops: list[Operation | None] = []
    llvm = machine.translated(module, {name: use}, ops)
    lines = llvm.rstrip("\n").split("\n")
    ops += [None] * (len(lines) - len(ops))
    of = _origins(ops, origins, numbers)
    yield "llvm", {"lines": lines, "of": of, "from": _lines_before(ops, record[-1][2], origins)}
    try:
        stage, code = machine.code_text(numbered(llvm))
    except HeronError:  # a simulated GPU has no such stage; or there is no libdevice, which the compile has told
        return
    kept, numbers_ = stripped(code)
    yield stage, {"lines": kept, "of": [of[n - 1] if n else -1 for n in numbers_], "from": [n - 1 for n in numbers_]}


def _origins(ops: Iterable[Operation | None], origins: Origins, numbers: dict[str, int]) -> list[int]:
    return [numbers.get(origins.of(op), -1) if op is not None else -1 for op in ops]


def _lines_before(ops: Iterable[Operation | None], before: list[Operation | None], origins: Origins) -> list[int]:
    """For each op the line that it, or the op it was made for, had one step earlier."""
    place = {op: n for n, op in reversed(list(enumerate(before))) if op is not None}
    return [next((place[o] for o in origins.back(op) if o in place), -1) if op is not None else -1 for op in ops]


def _printed(module: ModuleOp) -> tuple[list[str], list[Operation | None]]:
    """The lines of a module, and the op that each begins with."""
    out = io.StringIO()
    printer = _LinePrinter(out)
    printer.print_op(module)
    lines = out.getvalue().split("\n")
    return lines, [printer.ops.get(n) for n in range(len(lines))]


class _LinePrinter(Printer):
    """xDSL's printer; `ops` has the op that begins on each line."""

    def __init__(self, stream: io.StringIO) -> None:
        super().__init__(stream)
        self.ops: dict[int, Operation] = {}

    def print_op(self, op: Operation) -> None:
        self.ops.setdefault(self._current_line, op)
        super().print_op(op)
