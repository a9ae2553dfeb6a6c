"""Shared by the ops of the `xla_gpu` dialect: lists of values as text, and the check of a callee against its call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from xdsl.dialects.builtin import (
    FunctionType,
    IndexType,
    ModuleOp,
    SymbolRefAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

INDEX = IndexType()


def print_values(printer: Printer, values: Sequence[SSAValue], brackets: str) -> None:
    printer.print_string(brackets[0])
    printer.print_list(values, printer.print_ssa_value)
    printer.print_string(brackets[1])


def parse_values(parser: Parser, delimiter: Any, type_: Attribute) -> list[SSAValue]:
    unresolved = parser.parse_comma_separated_list(delimiter, parser.parse_unresolved_operand)
    return [parser.resolve_operand(v, type_) for v in unresolved]


def verify_callee(op: Operation, callee: SymbolRefAttr, inputs: list[Attribute], outputs: list[Attribute]) -> None:
    """Whether the function exists in the op's module, takes `inputs` and returns `outputs`."""
    top: Operation = op
    while (parent := top.parent_op()) is not None:
        top = parent
    if not isinstance(top, ModuleOp):
        return  # a function by itself, while it is built
    name = callee.root_reference.data
    found = _function(top, name)
    if found is None:
        raise VerifyException(f"there is no function @{name}")
    if [*found.function_type.inputs] != inputs or [*found.function_type.outputs] != outputs:
        wanted = FunctionType.from_lists(inputs, outputs)
        raise VerifyException(f"@{name} is {found.function_type}, it is called as {wanted}")


#: the functions of modules by name, as they were when one was last looked for in vain
_SYMBOLS: WeakKeyDictionary[ModuleOp, WeakValueDictionary[str, FuncOp]] = WeakKeyDictionary()


def _function(module: ModuleOp, name: str) -> FuncOp | None:
    """The module's function of that name. An entry of the table is checked before use."""
    found = _SYMBOLS[module].get(name) if module in _SYMBOLS else None
    if found is None or found.parent is not module.body.block or found.sym_name.data != name:
        functions = (op for op in module.ops if isinstance(op, FuncOp))
        table = _SYMBOLS[module] = WeakValueDictionary({f.sym_name.data: f for f in functions})
        found = table.get(name)
    return found
