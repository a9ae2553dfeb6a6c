"""Any program, a dimension of it made dynamic, gives what it gives at the actual size: garbage beyond is never seen."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from heron.errors import HeronError
from heron.evaluator import Evaluator
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.tools.cloning import CloneContext
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.checks import difference, random_inputs
from heron.passes.framework.context import PassContext
from tests.hlo.generate import ALL_TYPES, Program, programs
from tests.passes.dynamic.made_dynamic import made_dynamic
from tests.passes.dynamic.test_dynamic_padder import flat, meant
from tests.support import NAMES, program


def assert_same_at(module: Module, fixed: Module, arrays: list[np.ndarray], number: int, d: int, size: int) -> None:
    """A program that is dynamic in one dimension and its padded form agree at a size, with garbage beyond it."""
    given = [a.copy() for a in arrays]
    beyond = (slice(None),) * d + (slice(size, None),)
    given[number][beyond] = np.nan if given[number].dtype.kind == "f" else np.ones((), given[number].dtype)
    given.append(np.array(size, np.int32))
    wanted = meant(module, given)
    if wanted is None:
        with pytest.raises(HeronError):
            Evaluator(fixed).run(*given)
        return
    for n, (old, new) in enumerate(zip(wanted, flat(Evaluator(fixed).run(*given)), strict=True)):
        assert (wrong := difference(old, new)) is None, f"output {n} at size {size}: {wrong}\n{module}"


def padded(module: Module) -> Module:
    verify(module)
    fixed = module.clone()
    ctx = PassContext()
    for name in ("call-inliner", "batchnorm-expander", "topk-decomposer", "dynamic-padder"):
        ctx.run_pass(registry.get(name), fixed)
    verify(fixed)
    return fixed


@given(programs(ALL_TYPES, 8), st.data())
@settings(max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck))
def test_generated_programs(program: Program, data: st.DataObject) -> None:
    shapes = [p.shape for p in program.module.entry.parameters]
    places = [(n, d) for n, s in enumerate(shapes) for d in range(s.rank)]
    assume(places)
    number, d = data.draw(st.sampled_from(places))
    module = made_dynamic(program.module, number, d, lambda dims: data.draw(st.sampled_from(dims)))
    fixed = padded(module)
    bound = shapes[number].dims[d]
    for size in sorted({0, bound // 2, bound}):
        assert_same_at(module, fixed, list(program.inputs), number, d, size)


#: ops of the workloads that look at elements beside each other, or move them
LOOKED_AT = frozenset(
    "reduce reduce-window select-and-scatter dot convolution sort topk scatter gather concatenate pad slice reverse "
    "reshape dynamic-slice dynamic-update-slice".split()
)


def alone(i: Instruction) -> Module:
    """A program of one instruction."""
    module = Module("alone")
    entry = module.add_computation(Computation("e"), entry=True)
    operands = [entry.add_parameter(n, o.shape.with_default_layout()) for n, o in enumerate(i.operands)]
    entry.root = entry.attach(CloneContext(module).instruction(i, operands))
    return module


def distinct_instructions(opcodes: frozenset[str]) -> dict[str, list[Instruction]]:
    """The instructions of all workloads on arrays of not too many elements, by opcode, each kind once."""
    found: dict[str, dict[str, Instruction]] = {}
    for name in NAMES:
        for i in parse(program(name).read_text()).instructions():
            if i.opcode in opcodes and all(o.shape.is_array and o.shape.num_elements < 5000 for o in i.operands):
                text = str(alone(i))
                found.setdefault(i.opcode, {}).setdefault(text, i)
    return {opcode: list(kinds.values()) for opcode, kinds in sorted(found.items())}


@cache
def workload_instructions() -> dict[str, list[Instruction]]:
    return distinct_instructions(LOOKED_AT)


@pytest.mark.parametrize("opcode", sorted(LOOKED_AT))
def test_instructions_of_workloads(opcode: str) -> None:
    """Each kind of instruction, each operand in turn dynamic: in every dimension for reductions, else in one."""
    for n, i in enumerate(workload_instructions()[opcode]):
        program = alone(i)
        arrays = random_inputs(program)
        for number, p in enumerate(program.entry.parameters):
            for d, bound in enumerate(p.shape.dims):
                if opcode != "reduce" and d != n % p.shape.rank:
                    continue
                module = made_dynamic(program, number, d)
                try:
                    fixed = padded(module)
                except HeronError as error:
                    assert error.code == "PASS020" and error.why in REFUSED, f"{error}"
                    continue
                for size in {0, bound // 2} if d == 0 else {bound // 2}:
                    assert_same_at(module, fixed, arrays, number, d, size)


#: what cannot be given fixed sizes
REFUSED = {
    "the size of the window is part of the op",
    "the sizes of its groups are dynamic",
    "the length of an index is dynamic",
}
