"""Inlines private functions into their callers.

A function called once is moved into its caller; one of at most `inline_ops` operations (what it calls counted in) is
copied to every call. Callees are done before callers. Functions nobody calls any more are removed.

    %r = xla_gpu.pure_call @f(%x) ; private @f(%a) { %b = math.exp %a ; return %b }   ->   %r = math.exp %x
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from heron.codegen.dialects.xla_gpu import PureCallOp
from heron.codegen.transforms.build import erase, function_table, replace
from heron.codegen.transforms.options import TransformOptions
from heron.errors import HeronError


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Inlines what is worth it; then drops private functions without callers.

    Raises:
        HeronError: GEN127 for recursive functions.
    """
    table = function_table(module)
    calls = {name: _calls(f) for name, f in table.items()}
    sites: dict[str, int] = {}
    for found in calls.values():
        for op in found:
            sites[_callee(op)] = sites.get(_callee(op), 0) + 1
    sizes: dict[str, int] = {}
    for name in _callees_first(table, calls):
        function = table[name]
        if not function.body.blocks:
            continue
        size = sum(1 for _ in function.body.walk())
        for op in calls[name]:
            callee = _callee(op)
            target = table.get(callee)
            if target is None or not target.body.blocks or len(target.body.blocks) != 1:
                continue
            if sites[callee] == 1 or sizes[callee] <= options.inline_ops:
                _inline(op, target, move=sites[callee] == 1)
                size += sizes[callee]
                sites[callee] -= 1
        sizes[name] = size
    _drop_uncalled(module)


def _calls(function: FuncOp) -> list[Operation]:
    return [op for op in function.walk() if isinstance(op, (PureCallOp, CallOp))]


def _callee(op: Operation) -> str:
    return op.properties["callee"].root_reference.data  # pyright: ignore[reportAttributeAccessIssue]


def _callees_first(table: dict[str, FuncOp], calls: dict[str, list[Operation]]) -> list[str]:
    order: list[str] = []
    state: dict[str, int] = {}

    def visit(name: str) -> None:
        if state.get(name) == 2 or name not in table:
            return
        if state.get(name) == 1:
            raise HeronError("GEN127", "a kernel function calls itself", where=f"@{name}")
        state[name] = 1
        for op in calls[name]:
            visit(_callee(op))
        state[name] = 2
        order.append(name)

    for name in table:
        visit(name)
    return order


def _inline(call: Operation, function: FuncOp, move: bool) -> None:
    """The function's body in place of the call; with `move` the body itself, its function then goes."""
    block = call.parent
    assert block is not None
    source = function.body.block
    if move:
        for old, new in zip(source.args, call.operands, strict=True):
            old.replace_all_uses_with(new)
        last = source.last_op
        assert isinstance(last, ReturnOp)
        results: list[SSAValue] = list(last.operands)
        erase(last)
        op = source.first_op
        while op is not None:
            following = op.next_op
            op.detach()
            block.insert_op_before(op, call)
            op = following
        replace(call, results)
        erase(function)
        return
    mapper: dict[SSAValue, SSAValue] = dict(zip(source.args, call.operands, strict=True))
    results = []
    for op in source.ops:
        if isinstance(op, ReturnOp):
            results = [mapper.get(v, v) for v in op.operands]
        else:
            block.insert_op_before(op.clone(mapper), call)
    replace(call, results)


def _drop_uncalled(module: ModuleOp) -> None:
    """Removes private functions without callers, and then those only they called."""
    present = {f.sym_name.data: f for f in module.ops if isinstance(f, FuncOp)}
    calls = {name: [_callee(op) for op in _calls(f)] for name, f in present.items()}
    count = dict.fromkeys(present, 0)
    for callees in calls.values():
        for callee in callees:
            count[callee] = count.get(callee, 0) + 1
    pending = [name for name, f in present.items() if not count[name] and _is_private(f)]
    while pending:
        name = pending.pop()
        erase(present[name])
        for callee in calls[name]:
            count[callee] -= 1
            if not count[callee] and callee in present and _is_private(present[callee]):
                pending.append(callee)


def _is_private(function: FuncOp) -> bool:
    return function.sym_visibility is not None and function.sym_visibility.data == "private"
