"""Rules for func, scf and gpu ids: structured control flow written straight as basic blocks with phis."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, gpu, llvm, scf
from xdsl.dialects.builtin import AnyFloat, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from heron.codegen.ir.editing import ops_within
from heron.codegen.llvm.emit import Emitter, is_set, rule
from heron.codegen.llvm.inline import has, is_long, lines_of
from heron.codegen.llvm.inline.called import Calls

#: steps of a loop of which those left over from whole vectors may be much of the time
_SHORT = 1024
#: steps of a loop that is better off with one vector at a time: of two, the second would often be empty
_SHORTER = 128
#: steps of a loop that writes bytes to a column, up to which vectors are not worth their code
_COLUMN = 512
#: steps left over from whole vectors that cost more than masks in all vectors of a loop that accumulates
_LEFT_OVER = 4
#: the hint that a loop ends with a part of a vector
_MASKED = '!"llvm.loop.vectorize.predicate.enable", i1 true'
#: the hints that a loop takes one step at a time
_SCALAR = '!"llvm.loop.vectorize.width", i32 1', '!"llvm.loop.interleave.count", i32 1'
#: steps of a loop that fill so little of a vector that it is written out, where the loop around it has so many times
#: as many
_FEW = 4
_MORE = 4
#: instructions that a loop may be once it is written out
_MOST_WRITTEN_OUT = 1000
#: bits of numbers of which a vector has many, and ops for each look-up of one of them that are too few for vectors
_NARROW, _PER_LOOK_UP = 16, 16

_REGISTERS: dict[type, tuple[str, str]] = {
    gpu.ThreadIdOp: ("tid", "thread"),
    gpu.BlockIdOp: ("ctaid", "block"),
    gpu.BlockDimOp: ("ntid", "thread"),
    gpu.GridDimOp: ("nctaid", "block"),
}


def _values(e: Emitter, operands: Sequence[SSAValue]) -> list[str]:
    return [e.names[v] for v in operands]


@rule(scf.YieldOp)
def _yield(e: Emitter, op: scf.YieldOp) -> None:
    e.yielded = _values(e, op.operands)


@rule(scf.ForOp)
def _for(e: Emitter, op: scf.ForOp) -> None:
    """The loop with its test at the head, or at the end where it surely runs. Increment is ``nsw``: it never wraps."""
    lower, upper, step, *initial = op.operands
    block = op.regions[0].blocks[0]
    carried = block.args[1:]
    runs = _surely_runs(e.names[lower], e.names[upper])  # LLVM would bring it into this form, step by step
    before, body, done = e.label, e.fresh_label("body"), e.fresh_label("done")
    head = body if runs else e.fresh_label("head")
    text, bound = e.type(block.args[0].type), e.names[upper]
    e.out.append(f"  br label %{head}")
    e.start(head)
    names = [e.define(v) for v in block.args]
    starts = _values(e, [lower, *initial])
    phis = len(e.out)
    e.out += [""] * len(names)
    if not runs:
        test = e.fresh()
        e.out.append(f"  {test} = icmp slt {text} {names[0]}, {bound}")
        e.out.append(f"  br i1 {test}, label %{body}, label %{done}")
        e.start(body)
    calls, loops, copies = len(e.called), e.loops, e.copies
    e.block(block)
    is_innermost, called = e.loops == loops, e.called[calls:]
    if is_innermost and _is_written_out(e, op, len(e.out) - phis, called):  # the loop around is the innermost then
        metadata = f", !llvm.loop {e.distinct_metadata(_whole(e))}"
        e.copies += sum(map(is_long, called)) * (_known_steps(e, op) - 1)
    else:
        is_scalar = is_innermost and e.calls is not None and _looks_up_narrow(op)
        metadata = _loop_metadata(e, op, called if is_innermost else (), e.copies - copies, is_scalar)
        e.loops += 1
    advanced = [e.fresh(), *(e.yielded if carried else [])]
    e.out.append(f"  {advanced[0]} = add nsw {text} {names[0]}, {e.names[step]}")
    if runs:
        test = e.fresh()
        e.out.append(f"  {test} = icmp slt {text} {advanced[0]}, {bound}")
        e.out.append(f"  br i1 {test}, label %{head}, label %{done}{metadata}")
    else:
        e.out.append(f"  br label %{head}{metadata}")
    for position, (value, name) in enumerate(zip(block.args, names, strict=True)):
        incoming = f"[ {starts[position]}, %{before} ], [ {advanced[position]}, %{e.label} ]"
        e.out[phis + position] = f"  {name} = phi {e.type(value.type)} {incoming}"
    e.start(done)
    for result, name in zip(op.results, (advanced if runs else names)[1:], strict=True):
        e.names[result] = name


def _is_written_out(e: Emitter, op: scf.ForOp, lines: int, calls: Sequence[str]) -> bool:
    """Whether an innermost loop on a CPU has so few steps that vectors should go along the loop around it instead.

    LLVM's vectoriser looks at innermost loops alone, and a loop of two steps stays one of single numbers.
    """
    around = op.parent_op()
    if e.calls is None or op.attributes or not isinstance(around, scf.ForOp):
        return False
    size = lines + sum(map(lines_of, filter(has, calls)))
    steps, outer = _known_steps(e, op), _steps(e, around)
    return 1 < steps <= min(_FEW, _MOST_WRITTEN_OUT // size) and (outer == 0 or outer >= _MORE * steps)


def _surely_runs(lower: str, upper: str) -> bool:
    """Whether both bounds are numbers with something between them."""
    return lower.isdecimal() and upper.isdecimal() and int(lower) < int(upper)


def _loop_metadata(
    e: Emitter, op: Operation, calls: Sequence[str] = (), copies: int = 0, is_scalar: bool = False
) -> str:
    """``heron.unroll`` = N (0 or 1: never), ``heron.vectorize`` = N lanes (0 or 1: never), ``heron.full_unroll``,
    ``heron.mask_rest``: vectors to the end where the machine has masks.

    ``calls``: library functions an innermost loop calls. ``copies``: more calls of them, in copies of a loop in it.
    ``is_scalar``: its steps are not for vectors.
    """
    unroll, vectorize = op.attributes.get("heron.unroll"), op.attributes.get("heron.vectorize")
    hints = _long_functions(e, op, copies) if calls and any(map(is_long, calls)) else []
    if not hints and is_set(op, "heron.mask_rest") and e.calls is not None and e.calls.has_masks:
        hints = [e.metadata_node(_MASKED)] if len(op.operands) == 3 else []
    if isinstance(unroll, IntegerAttr):
        count = unroll.value.data
        text = f'!"llvm.loop.unroll.count", i32 {count}' if count > 1 else '!"llvm.loop.unroll.disable"'
        hints.append(e.metadata_node(text))
    elif is_set(op, "heron.full_unroll"):
        hints.append(_whole(e))
    if isinstance(vectorize, IntegerAttr):
        lanes = vectorize.value.data
        hints.append(e.metadata_node(f'!"llvm.loop.vectorize.enable", i1 {"true" if lanes > 1 else "false"}'))
        if lanes > 1:
            hints.append(e.metadata_node(f'!"llvm.loop.vectorize.width", i32 {lanes}'))
    elif is_set(op, "heron.vectorize"):
        hints.append(e.metadata_node('!"llvm.loop.vectorize.enable", i1 true'))
    elif is_scalar:
        hints += [e.metadata_node(hint) for hint in _SCALAR]
    if is_set(op, "heron.parallel"):
        hints.append(e.metadata_node('!"llvm.loop.mustprogress"'))
    return f", !llvm.loop {e.distinct_metadata(', '.join(hints))}" if hints else ""


def _whole(e: Emitter) -> str:
    """The hint that a loop is to be written out."""
    return e.metadata_node('!"llvm.loop.unroll.full"')


def _long_functions(e: Emitter, op: Operation, copies: int) -> list[str]:
    """Two vectors of a long function at a time keep the processor busy; more are only more code, and so are two where
    `copies` of the function do not wait for each other.

    Steps left over from whole vectors would cost as much as a vector each. The last vector of a short loop is a part
    of one instead, where the machine has masks. Such a loop may read a column of an array to its end, too. A loop that
    accumulates chooses by mask in each step, which only pays where it is shorter and several steps are left over.
    Numbers of 8 or 16 bits are written to a column one by one, each with a test of its own: such a loop has one vector
    at a time, or none.
    """
    steps = _steps(e, op)
    masked = e.calls is not None and 0 < steps < _SHORT and _may_mask(e.calls, op, steps)
    is_apart = masked and _writes_narrow_apart(op.regions[0].blocks[0])
    if is_apart and steps <= _COLUMN:
        return [e.metadata_node(hint) for hint in _SCALAR]
    alone = copies > 1 or is_apart or masked and steps < _SHORTER
    hints = [f'!"llvm.loop.interleave.count", i32 {1 if alone else 2}']
    if masked:
        hints.append(_MASKED)
    return [e.metadata_node(hint) for hint in hints]


def _may_mask(calls: Calls, op: Operation, steps: int) -> bool:
    """Whether the machine has masks that are worth their time: in a loop that accumulates nothing they are."""
    if not calls.has_masks:
        return False
    bits = [_bits(v) for v in op.operands[3:]]
    if not bits:
        return True
    left_over = steps % (calls.width // max(bits))
    return steps < _SHORTER and left_over >= _LEFT_OVER and not _reads_narrow_apart(op.regions[0].blocks[0])


def _reads_narrow_apart(body: Block) -> bool:
    """Whether a loop reads numbers of 8 or 16 bits that do not follow each other: with masks, one by one."""
    reads = (o for o in body.ops if isinstance(o, llvm.LoadOp) and _bits(o.results[0]) < 32)
    pointers = (o.operands[0].owner for o in reads)
    return not all(_follows(p.operands[-1], body.args[0]) for p in pointers if isinstance(p, llvm.GEPOp))


def _writes_narrow_apart(body: Block) -> bool:
    """Whether a loop writes numbers of 8 or 16 bits that do not follow each other."""
    writes = (o for o in body.ops if isinstance(o, llvm.StoreOp) and _bits(o.operands[0]) < 32)
    pointers = (o.operands[1].owner for o in writes)
    return not all(_follows(p.operands[-1], body.args[0]) for p in pointers if isinstance(p, llvm.GEPOp))


def _looks_up_narrow(op: Operation) -> bool:
    """Whether a loop over integers of 8 or 16 bits looks them up in tables, and does little else. In vectors of so many
    lanes each look-up is code of its own, and takes as long as outside of a vector."""
    count = found = 0
    for o in ops_within(op):
        count += 1
        is_load = isinstance(o, llvm.LoadOp)
        if is_load or isinstance(o, llvm.StoreOp):
            if _bits(o.results[0] if is_load else o.operands[0]) > _NARROW:
                return False
        elif any(isinstance(r.type, AnyFloat) for r in o.results):
            return False
        pointer = o.operands[0].owner if is_load else None
        found += isinstance(pointer, llvm.GEPOp) and _is_loaded(pointer.operands[-1], set())
    return 0 < count <= found * _PER_LOOK_UP


def _is_loaded(place: SSAValue, seen: set[Operation]) -> bool:
    """Whether a place is computed from something in memory."""
    made = place.owner
    if not isinstance(made, Operation) or made in seen:
        return False
    seen.add(made)
    return isinstance(made, llvm.LoadOp) or any(_is_loaded(v, seen) for v in made.operands)


def _follows(place: SSAValue, step: SSAValue) -> bool:
    """Whether a place moves on by one with each step of a loop: it is a sum with the step's number."""
    made = place.owner
    if isinstance(made, arith.IndexCastOp):
        return _follows(made.operands[0], step)
    return place is step or isinstance(made, arith.AddiOp) and any(_follows(v, step) for v in made.operands)


def _bits(v: SSAValue) -> int:
    return getattr(v.type, "bitwidth", 64)


def _steps(e: Emitter, op: Operation) -> int:
    """The number of steps of a loop, that of all work items where its bounds are not numbers; 0: unknown."""
    return _known_steps(e, op) or e.items


def _known_steps(e: Emitter, op: Operation) -> int:
    """The number of steps of a loop whose bounds are numbers; else 0."""
    lower, upper, step = (e.names[v] for v in op.operands[:3])
    if _surely_runs(lower, upper) and step.isdecimal():
        return -(-(int(upper) - int(lower)) // int(step))
    return 0


@rule(scf.IfOp)
def _if(e: Emitter, op: scf.IfOp) -> None:
    condition = e.names[op.operands[0]]
    then_block = op.regions[0].blocks[0]
    else_block = op.regions[1].blocks[0] if op.regions[1].blocks else None
    then, done = e.fresh_label("then"), e.fresh_label("endif")
    otherwise = e.fresh_label("else") if else_block is not None else done
    e.out.append(f"  br i1 {condition}, label %{then}, label %{otherwise}")
    arms = [(then, then_block)] + ([(otherwise, else_block)] if else_block is not None else [])
    incoming = [_arm(e, label, block, done) for label, block in arms]
    e.start(done)
    _merge(e, op, incoming)


def _arm(e: Emitter, label: str, block: Block, done: str) -> tuple[str, list[str]]:
    """One region as a chain of blocks ending in a jump to ``done``; returns its last label and what it yields."""
    e.start(label)
    e.yielded = []
    e.block(block)
    e.out.append(f"  br label %{done}")
    return e.label, e.yielded


def _merge(e: Emitter, op: Operation, incoming: list[tuple[str, list[str]]]) -> None:
    for position, result in enumerate(op.results):
        text = e.type(result.type)
        pairs = ", ".join(f"[ {values[position]}, %{label} ]" for label, values in incoming)
        e.out.append(f"  {e.define(result)} = phi {text} {pairs}")


@rule(scf.IndexSwitchOp)
def _switch(e: Emitter, op: scf.IndexSwitchOp) -> None:
    done = e.fresh_label("endswitch")
    labels = [e.fresh_label("case") for _ in op.regions]  # the default region comes first
    argument = e.typed(op.operands[0])
    text = argument.split(" ")[0]
    values = op.properties["cases"].get_values()  # type: ignore[attr-defined]
    cases = " ".join(f"{text} {value}, label %{label}" for value, label in zip(values, labels[1:], strict=True))
    e.out.append(f"  switch {argument}, label %{labels[0]} [ {cases} ]")
    incoming = [_arm(e, label, region.blocks[0], done) for label, region in zip(labels, op.regions, strict=True)]
    e.start(done)
    _merge(e, op, incoming)


@rule(scf.WhileOp)
def _while(e: Emitter, op: scf.WhileOp) -> None:
    """`before` is the loop head; its scf.condition decides between `after` (which jumps back) and leaving."""
    test_block, body_block = op.regions[0].blocks[0], op.regions[1].blocks[0]
    before, head, body, done = e.label, e.fresh_label("while"), e.fresh_label("do"), e.fresh_label("endwhile")
    starts = _values(e, op.operands)
    e.out.append(f"  br label %{head}")
    e.start(head)
    names = [e.define(v) for v in test_block.args]
    phis = len(e.out)
    e.out += [""] * len(names)
    e.block(test_block)
    condition, *passed = e.yielded
    e.out.append(f"  br i1 {condition}, label %{body}, label %{done}")
    for value, name in zip(body_block.args, passed, strict=True):
        e.names[value] = name
    e.start(body)
    e.yielded = []
    e.block(body_block)
    e.out.append(f"  br label %{head}{_loop_metadata(e, op)}")
    for position, (value, name) in enumerate(zip(test_block.args, names, strict=True)):
        incoming = f"[ {starts[position]}, %{before} ], [ {e.yielded[position]}, %{e.label} ]"
        e.out[phis + position] = f"  {name} = phi {e.type(value.type)} {incoming}"
    e.start(done)
    for result, name in zip(op.results, passed, strict=True):
        e.names[result] = name


@rule(scf.ConditionOp)
def _condition(e: Emitter, op: scf.ConditionOp) -> None:
    e.yielded = _values(e, op.operands)


@rule(func.ReturnOp)
def _return(e: Emitter, op: func.ReturnOp) -> None:
    operands = op.operands
    if not operands:
        e.out.append("  ret void")
        return
    if len(operands) == 1:
        e.out.append(f"  ret {e.typed(operands[0])}")
        return
    text = "{ " + ", ".join(e.type(v.type) for v in operands) + " }"
    current = "poison"
    for position, value in enumerate(operands):
        name = e.fresh()
        e.out.append(f"  {name} = insertvalue {text} {current}, {e.typed(value)}, {position}")
        current = name
    e.out.append(f"  ret {text} {current}")


@rule(func.CallOp)
def _call(e: Emitter, op: func.CallOp) -> None:
    name = op.callee.root_reference.data
    results = [e.type(r.type) for r in op.results]
    result = "void" if not results else results[0] if len(results) == 1 else "{ " + ", ".join(results) + " }"
    operands = [(e.type(v.type), e.names[v]) for v in op.operands]
    if name in e.defined:
        text = ", ".join(f"{t} {v}" for t, v in operands)
        bound = e.fresh() if results else ""
        apart = " noinline" if name in e.apart else ""
        e.out.append(f"  {f'{bound} = ' if results else ''}call {result} @{name}({text}){apart}")
    else:
        bound = (e.library if name.startswith("heron.") else e.call)(name, result, operands)
    if len(results) == 1:
        e.names[op.results[0]] = bound
        return
    for position, value in enumerate(op.results):
        e.out.append(f"  {e.define(value)} = extractvalue {result} {bound}, {position}")


@rule(*_REGISTERS)
def _special_register(e: Emitter, op: Operation) -> None:
    """Thread and block ids, with their range when the launch geometry is known (it removes bounds checks)."""
    register, group = _REGISTERS[type(op)]
    axis = op.properties["dimension"].data.value  # type: ignore[attr-defined]
    count = e.geometry.get(f"{group} {axis}")
    if register.startswith("n") and count is not None:
        e.names[op.results[0]] = str(count)
        return
    if count == 1:
        e.names[op.results[0]] = "0"
        return
    name = f"llvm.nvvm.read.ptx.sreg.{register}.{axis}"
    span = f"range(i32 0, {count}) " if count is not None else ""
    narrow = e.fresh() if e.index_bits > 32 else e.define(op.results[0])
    e.out.append(f"  {narrow} = call {span}i32 @{name}()")
    if e.index_bits > 32:
        e.out.append(f"  {e.define(op.results[0])} = zext nneg i32 {narrow} to i{e.index_bits}")


@rule(gpu.BarrierOp)
def _barrier(e: Emitter, op: gpu.BarrierOp) -> None:
    e.call("llvm.nvvm.barrier.cta.sync.aligned.all", "void", [("i32", "0")])
