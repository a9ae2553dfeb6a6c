"""gemm-fusion: a product and what is computed around it become one kernel, done tile by tile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from heron import lockfile, targets
from heron.analysis.blocks.config import BlockConfig
from heron.analysis.blocks.cost import Plan, library_seconds, plans
from heron.analysis.blocks.tiling import Refusal, Tiling
from heron.analysis.cost.estimate import Clock, clock_of
from heron.errors import HeronError
from heron.hlo import types
from heron.hlo.computation import Computation
from heron.hlo.fingerprint import fingerprint
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Constraint, Pass
from heron.passes.building import is_static
from heron.passes.context import PassContext
from heron.passes.fusion.build import fuse
from heron.passes.fusion.hints import stays_alone
from heron.passes.fusion.kinds import is_consumer
from heron.passes.library.choice import CUBLASLT, TRITON, Way
from heron.passes.library.choice import best as choose
from heron.passes.registry import register
from heron.targets import Target
from heron.targets.triton import missing

#: what matrix units multiply, to which results
PRODUCTS = {
    types.BF16: (types.BF16, types.F32),
    types.F16: (types.F16, types.F32),
    types.S8: (types.S32,),
    types.F8E4M3FN: (types.BF16, types.F16, types.F32),
    types.F8E5M2: (types.BF16, types.F16, types.F32),
}
#: the first GPUs with matrix units for bf16
OLDEST = 80
#: element types a tile may have
_TYPES = frozenset({
    types.PRED, types.S8, types.S16, types.S32, types.S64, types.U8, types.U16, types.U32, types.U64, types.F16,
    types.BF16, types.F32, types.F64,
})  # fmt: skip
#: elementwise ops with no form on tiles
_SCALAR_ONLY = frozenset({
    "complex", "real", "imag", "count-leading-zeros", "popcnt", "mulhi", "stochastic-convert", "bitcast-convert",
})  # fmt: skip
_MOVES = frozenset({"bitcast", "reshape", "transpose", "slice"})
#: what costs nothing to compute where it is read
_FREE = frozenset({"broadcast", "iota", "bitcast", "reshape"})


@register
@dataclass(frozen=True)
class GemmFusion(Pass):
    """Fuses products of types that matrix units multiply with what their operands and results go through.

    Before a product that may be conversions, scales, transposes, slices, concatenations of its operands; behind it
    biases, activations, residuals, conversions, up to the one value that all of it leads to: several products go
    together when only that one value is wanted. A tile of the result is computed by one program of the grid, from tiles
    of all the rest, which `analysis.blocks` finds; what cannot be cut into tiles stays outside. The sizes of tiles come
    from a model of the machine. A fusion is made when the model says that it is quicker than a library's product with
    kernels around it; the decision has both times in microseconds.

    xc = bf16[64,128] convert(s8[64,128] x)
    d = bf16[64,64] dot(xc, bf16[128,64] w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = bf16[64,64] negate(d)
    ->
    ...
    body {
      x = s8[64,128] parameter(0)
      xc = bf16[64,128] convert(x)
      w = bf16[128,64] parameter(1)
      d = bf16[64,64] dot(xc, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT r = bf16[64,64] negate(d)
    }

    ROOT f = bf16[64,64] fusion(s8[64,128] x, bf16[128,64] w), kind=kCustom, calls=body
    """

    name = "gemm-fusion"
    max_instructions: int = 96
    max_inputs: int = 24
    constraints = (
        Constraint("layout-assignment", "gemm-fusion", "tiles follow the order of values in memory"),
        Constraint("dot-decomposer", "gemm-fusion", "products with one batch, row, column and sum each"),
        Constraint("gemm-fusion", "gemm-rewriter", "libraries get the products that are left"),
        Constraint("gemm-fusion", "priority-fusion", "loops around a product would be kernels already"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        target, absent = ctx.target or targets.get("sm_90"), _absent(ctx)
        for c in module.computations_to_rewrite():
            for dot in [i for i in c.post_order() if i.opcode == "dot"]:
                if dot.parent is not c:  # in a fusion already
                    continue
                if absent:
                    ctx.decide(False, absent, subject=dot.name)
                    continue
                changed |= self._fuse(dot, c, target, ctx)
        return changed

    def _fuse(self, dot: Instruction, c: Computation, target: Target, ctx: PassContext) -> bool:
        why_not = unfit(dot)
        if why_not:
            ctx.decide(False, why_not, subject=dot.name)
            return False
        found, refused = self._candidates(dot, c, target)
        if not found:
            ctx.decide(False, refused or "nothing around it can be taken in", subject=dot.name)
            return False
        apart = found[-1].apart
        best, seconds = min(((x, _total(x, found[-1], target)) for x in found), key=lambda pair: pair[1])
        if choose([Way(CUBLASLT, apart), Way(TRITON, seconds)], ctx, dot.name).kind != TRITON:
            return False
        if not ctx.may_fire("gemm-fusion", "gemm_fusion.py", dot):
            return False
        made = fuse([best.root], best.members, prefix="gemm_fusion_")
        made.attrs["kind"] = "kCustom"
        config = locked(made, ctx, target) or best.plan.config
        made.extras["backend_config"] = config.text()
        ctx.trace.became[dot.name] = made.name
        why = f"tiles of {config}, {programs(made.shape.dims, config)} programs"
        ctx.decide(True, why, subject=dot.name, object=made.name, cost_before=apart * 1e6, cost_after=seconds * 1e6)
        return True

    def _candidates(self, dot: Instruction, c: Computation, target: Target) -> tuple[list[_Candidate], str]:
        """The fusions there could be, by growing root, or why there is none."""
        found: list[_Candidate] = []
        refused = ""
        order = {i: n for n, i in enumerate(c.post_order())}
        for root, behind in self._exits(dot, order):
            members = self._with_operands(root, behind)
            if len(members) == 1:
                continue
            weighed = _weigh(root, members, target)
            if isinstance(weighed, Refusal):
                refused = f"'{weighed.instruction.name}': {weighed.why}"
            else:
                found.append(weighed)
        return found, refused

    # -- what is taken in ----------------------------------------------------------------------------------------------
    def _exits(self, dot: Instruction, order: dict[Instruction, int]) -> Iterator[tuple[Instruction, set[Instruction]]]:
        """Values that all uses of a product lead to, nearest first, each with all that lies between."""
        between = {dot}
        yield dot, set(between)
        if dot.is_root:
            return
        waiting = set(dot.users)
        while waiting and len(between) < self.max_instructions:
            i = min(waiting, key=lambda x: order.get(x, len(order)))
            waiting.discard(i)
            if not _goes_behind(i):
                return
            between.add(i)
            waiting |= set(i.users) - between
            if _closed(between, i):
                yield i, set(between)
            if i.is_root:
                return

    def _with_operands(self, root: Instruction, behind: set[Instruction]) -> set[Instruction]:
        """Also what the members are computed from, as far as it serves them alone or costs nothing."""
        members = set(behind)
        stack = [o for i in behind for o in i.operands]
        while stack and len(members) < self.max_instructions:
            o = stack.pop()
            if o in members or not self._goes_before(o, members):
                continue
            members.add(o)
            stack += o.operands
            if len({x for m in members for x in m.operands} - members) > self.max_inputs:
                members.discard(o)
        return _needed(root, members)

    def _goes_before(self, o: Instruction, members: set[Instruction]) -> bool:
        if o.opcode == "constant":
            return o.shape.is_scalar
        if not _has_form(o):
            return False
        serves = not o.is_root and all(u in members for u in o.users)
        if o.opcode in _FREE or o.opcode == "convert":
            return serves or o.opcode in ("broadcast", "iota") or _shrinks(o)
        if o.opcode == "concatenate":
            return serves and all(_feeds_product(u) for u in o.users)
        return serves and (o.op.is_elementwise or o.opcode in _MOVES)


def _absent(ctx: PassContext) -> str:
    """Why there are no block kernels at all; the simulated GPU has them without Triton."""
    if ctx.options.triton == "off":
        return "the option triton=off"
    target = ctx.target
    if target is None or target.sim:
        return ""
    if target.kind != "gpu" or int(target.machine.removeprefix("sm_")) < OLDEST:
        return f"block kernels are for GPUs from sm_{OLDEST} on"
    return missing() if ctx.options.triton == "auto" else ""


def locked(fusion: Instruction, ctx: PassContext, target: Target) -> BlockConfig | None:
    """The tiles that the lock file has for a fusion; None without a lock file, or where it has none.

    Raises TUNE002 when it must have some and has not, TUNE003 for what is no choice for this fusion.
    """
    options = ctx.options
    if not options.lock:
        if options.frozen:
            raise HeronError("TUNE002", "the option frozen needs a lock file", hint="-O lock=heron.lock")
        return None
    lock, key = lockfile.read(options.lock), lockfile.digest(fingerprint(fusion.calls))
    found = lock.find(target.machine, key)
    if found is None:
        others = ", ".join(lock.devices) or "no device"
        why = f"'{options.lock}' has no choice for fragment {key} on {target.machine}; it is for {others}"
        if options.frozen:
            hint = f"heron tune FILE --target {target.name} --lock {options.lock}"
            raise HeronError("TUNE002", f"'{fusion.name}' has to be in the lock file", why=why, hint=hint)
        ctx.decide(False, why, subject=fusion.name)
        return None
    config = BlockConfig.parse(found.choice)
    if config is None or len(config.tiles) != fusion.shape.rank:
        why = f"'{found.choice}' are no tiles of {fusion.shape}"
        raise HeronError("TUNE003", f"the lock file's choice for '{fusion.name}' cannot be made", why=why)
    ctx.decide(True, f"measured: {found.microseconds} us", subject=fusion.name, object=found.choice)
    return config


def programs(dims: tuple[int, ...], config: BlockConfig) -> int:
    """How many programs compute a result of these sizes."""
    return prod(-(-n // t) for n, t in zip(dims, config.tiles, strict=True))


def unfit(dot: Instruction) -> str:
    """Why no block kernel computes a product; empty when one may."""
    a, b = (o.shape.element_type for o in dot.operands[:2])
    if a is not b or dot.shape.element_type not in PRODUCTS.get(a, ()):
        return f"matrix units have no product of {a} and {b} to {dot.shape.element_type}"
    if len(dot.operands) != 2 or not is_static(dot) or dot.control_predecessors or dot.control_successors:
        return "it is sparse, of sizes not known, or has an order to keep"
    if dot.attrs.get("algorithm"):
        return "it names its algorithm"
    if len(dot.lhs_contracting_dims) != 1 or len(dot.rhs_contracting_dims) != 1:
        return "it sums over several dimensions"
    if not dot.shape.num_elements or not dot.operands[0].shape.num_elements:
        return "it has no elements"
    if stays_alone(dot):
        return "it is to have a kernel of its own"
    return "" if all(_is_row_major(i) for i in (dot, *dot.operands)) else "its operands do not lie row by row"


def _is_row_major(i: Instruction) -> bool:
    return i.shape.layout is None or i.shape.layout.is_default


def _has_form(i: Instruction) -> bool:
    """Whether an op can be done on tiles."""
    if not i.shape.is_array or i.control_predecessors or i.control_successors or i.extras and stays_alone(i):
        return False
    if not is_static(i) or not _is_row_major(i) or i.op.has_side_effect:
        return False
    known = all(x.shape.is_array and x.shape.element_type in _TYPES | PRODUCTS.keys() for x in (i, *i.operands))
    if not known or i.shape.element_type not in _TYPES:
        return False
    if i.opcode in _MOVES or i.opcode in ("broadcast", "iota", "concatenate"):
        return all(_is_row_major(o) for o in i.operands)
    if i.opcode == "power" and i.shape.element_type.is_integer:
        return False
    return i.op.is_elementwise and i.opcode not in _SCALAR_ONLY


def _goes_behind(i: Instruction) -> bool:
    """Whether an op on a product's result can be done in its kernel."""
    return _has_form(i) and (i.op.is_elementwise or i.opcode in _MOVES)


def _feeds_product(user: Instruction) -> bool:
    return user.opcode in ("dot", "concatenate")


def _shrinks(i: Instruction) -> bool:
    """Whether what an op is computed from is no larger than what it gives: others may compute it, too."""
    return i.operands[0].shape.byte_size <= i.shape.byte_size


def _closed(between: set[Instruction], root: Instruction) -> bool:
    """Whether nothing but `root` is read from outside."""
    return all(u in between for i in between if i is not root for u in i.users)


def _needed(root: Instruction, members: set[Instruction]) -> set[Instruction]:
    found, stack = {root}, [root]
    while stack:
        for o in stack.pop().operands:
            if o in members and o not in found:
                found.add(o)
                stack.append(o)
    return found


# -- whether it is worth it --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Candidate:
    root: Instruction
    members: set[Instruction]
    plan: Plan
    apart: float


def _total(x: _Candidate, last: _Candidate, target: Target) -> float:
    """Seconds of a fusion, and of what the last one has that it has not, until the last one's root is read."""
    return x.plan.seconds + _rest(last.root, last.members - x.members, clock_of(target))


def _weigh(root: Instruction, members: set[Instruction], target: Target) -> _Candidate | Refusal:
    tiling = Tiling(root, members)
    if tiling.refusals:
        return tiling.refusals[0]
    found = plans(tiling, target)
    if isinstance(found, Refusal):
        return found
    return _Candidate(root, members, found[0], _seconds_apart(root, members, target))


def _seconds_apart(root: Instruction, members: set[Instruction], target: Target) -> float:
    """Seconds of the same work by a library and kernels: one for each operand that is computed, one for the rest."""
    clock, dots = clock_of(target), [i for i in members if i.opcode == "dot"]
    seconds = sum(library_seconds(dot, target) for dot in dots)
    for dot in dots:
        for o in dict.fromkeys(dot.operands):
            if o in members and o.opcode not in _FREE:
                seconds += _kernel(o, members, clock)
    return seconds + _rest(root, members - set(dots), clock)


def _rest(root: Instruction, members: set[Instruction], clock: Clock) -> float:
    """Seconds until the readers of `root` have it, when `members` are computed by a loop, or by the readers."""
    readers = len(root.users)
    read = readers * root.shape.byte_size / clock.bandwidth
    if root not in members:
        return read
    alone = _kernel(root, members, clock) + read
    if root.is_root or not all(is_consumer(u) for u in root.users):
        return alone
    return min(alone, readers * _inputs(root, members) / clock.bandwidth)


def _kernel(root: Instruction, members: set[Instruction], clock: Clock) -> float:
    """Seconds of a loop that computes `root`."""
    return clock.launch + (_inputs(root, members) + root.shape.byte_size) / clock.bandwidth


def _inputs(root: Instruction, members: set[Instruction]) -> int:
    """Bytes that `root` is computed from by `members`."""
    read: dict[Instruction, None] = {}
    seen, stack = {root}, [root]
    while stack:
        for o in stack.pop().operands:
            if o not in members:
                read[o] = None
            elif o not in seen:
                seen.add(o)
                stack.append(o)
    return sum(o.shape.byte_size for o in read)
