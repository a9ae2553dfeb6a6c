"""Inlines private functions into their callers.

A function called once is moved into its caller; one of at most `inline_ops` operations (what it calls counted in) is
copied to every call. Callees are done before callers. The last call takes the
function itself, so that none without callers is left behind.

    %r = xla_gpu.pure_call @f(%x) ; private @f(%a) { %b = math.exp %a ; return %b }   ->   %r = math.exp %x

Every kernel whose emitter calls functions has it: the root of a loop fusion (GELU: one `@…_multiply` moved into the
loop), the combiner of a reduction (copied to each shuffle).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from heron.codegen.ir import origins
from heron.codegen.ir.dialects.xla_gpu import PureCallOp
from heron.codegen.ir.editing import erase, function_table, ops_within, replace
from heron.codegen.transforms.options import TransformOptions
from heron.errors import HeronError


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Inlines the calls that are worth it.

    Raises:
        HeronError: GEN127 for recursive functions.
    """
    table = function_table(module)
    calls = {name: calls_of(f) for name, f in table.items()}
    sites: dict[str, int] = {}
    for found in calls.values():
        for op in found:
            sites[callee_of(op)] = sites.get(callee_of(op), 0) + 1
    sizes: dict[str, int] = {}
    for name in callees_first(table, calls):
        function = table[name]
        if not function.body.blocks:
            continue
        size = len(ops_within(function)) - 1
        for op in calls[name]:
            callee = callee_of(op)
            target = table.get(callee)
            if target is None or not target.body.blocks or len(target.body.blocks) != 1:
                continue
            if sites[callee] == 1 or sizes[callee] <= options.inline_ops:
                _inline(op, target, move=sites[callee] == 1)
                size += sizes[callee]
                sites[callee] -= 1
        sizes[name] = size


def calls_of(function: FuncOp) -> list[Operation]:
    """The calls in a function, pure and other."""
    return [op for op in ops_within(function) if type(op) is PureCallOp or type(op) is CallOp]


def callee_of(op: Operation) -> str:
    """The name of the function a call is of."""
    return op.properties["callee"].root_reference.data  # pyright: ignore[reportAttributeAccessIssue]


def callees_first(table: dict[str, FuncOp], calls: dict[str, list[Operation]]) -> list[str]:
    """The functions' names, each after those of what it calls. Raises GEN127 where a function calls itself."""
    order: list[str] = []
    begun: set[str] = set()
    done: set[str] = set()
    stack = list(reversed(table))
    while stack:
        name = stack[-1]
        waiting = [] if name in begun else [c for c in map(callee_of, calls[name]) if c in table and c not in done]
        begun.add(name)
        if not waiting:
            stack.pop()
            if name not in done:
                done.add(name)
                order.append(name)
            continue
        for callee in waiting:
            if callee in begun:
                raise HeronError("GEN127", "a kernel function calls itself", where=f"@{callee}")
        stack.extend(waiting)
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
            copy = op.clone(mapper)
            if origins.noted is not None:
                origins.noted.copied(op, copy)
            block.insert_op_before(copy, call)
    replace(call, results)
