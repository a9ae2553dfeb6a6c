"""What a module answers and how it is changed: computations, copies, hashes, outlining, aliases, schedules, names."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.builder import Builder
from heron.hlo.ir.aliasing import Alias, Donor
from heron.hlo.ir.dynamic_parameters import DynamicDimension, SizeParameter
from heron.hlo.ir.fingerprint import digest
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import F32
from heron.hlo.proto import from_proto, to_proto
from heron.hlo.sharding import Sharding
from heron.hlo.text import parse, print_module
from heron.hlo.tools.cloning import CloneContext
from heron.hlo.tools.compare import difference, equal
from heron.hlo.verifier import verify

TEXT = """HloModule m, entry_computation_layout={(f32[4]{0}, (f32[4]{0}, f32[]))->(f32[4]{0}, f32[])}

inner { x = f32[] parameter(0)
 ROOT n = f32[] negate(x) }

add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 c = f32[] call(b), to_apply=inner
 ROOT s = f32[] subtract(a, c) }

max { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT m = f32[] maximum(a, b) }

unused { ROOT x = f32[] parameter(0) }

ENTRY main {
 x = f32[4] parameter(0)
 p = (f32[4], f32[]) parameter(1)
 y = f32[4] get-tuple-element(p), index=0
 z = f32[] get-tuple-element(p), index=1
 d = f32[4] multiply(x, y)
 e = f32[4] add(d, x)
 f = f32[4] exponential(e)
 t = f32[] reduce(f, z), dimensions={0}, to_apply=add
 ROOT r = (f32[4], f32[]) tuple(f, t)
}
"""


@pytest.fixture
def module() -> Module:
    return parse(TEXT)


def named(module: Module) -> Callable[[str], Instruction]:
    return {i.name: i for i in module.instructions()}.__getitem__


def values(module: Module) -> list[np.ndarray]:
    x = np.arange(4, dtype=np.float32) / 4
    return evaluate(module, x, x + 1, np.float32(0))


def refused(code: str, act: Callable[[], object]) -> str:
    with pytest.raises(HeronError) as caught:
        act()
    assert caught.value.code == code
    return str(caught.value)


# -- questions -------------------------------------------------------------------------------------------------------
def test_counts_and_shapes(module: Module) -> None:
    assert module.instruction_count() == 19
    assert str(module.result_shape) == "(f32[4]{0}, f32[])"
    assert [str(s) for s in module.parameter_shapes] == ["f32[4]{0}", "(f32[4]{0}, f32[])"]
    module.replace_entry(module.entry)
    assert module.entry_layout is None
    assert str(module.result_shape) == "(f32[4]{0}, f32[])"


def test_config() -> None:
    head = "HloModule m, replica_count=2"
    module = parse(head + "\nENTRY e { ROOT x = f32[] parameter(0) }")
    assert (module.replica_count, module.num_partitions) == (2, 1)
    module.set_counts(num_partitions=8)
    assert (module.replica_count, module.num_partitions) == (1, 8)
    assert "num_partitions=8" in print_module(module) and "replica_count" not in print_module(module)
    assert "num_partitions is 0" in refused("HLO025", lambda: module.set_counts(num_partitions=0))


def test_digests_and_comparison_leave_names_aside(module: Module) -> None:
    other = parse(TEXT.replace("subtract(a, c)", 'subtract(a, c), metadata={op_name="s"}').replace("max {", "most {"))
    assert equal(module, other)
    assert digest(module.entry) == digest(other.entry) == digest(module.clone().entry)
    changed = {
        digest(parse(TEXT.replace("exponential", "negate")).entry),
        digest(parse(TEXT.replace("subtract(a, c)", "subtract(c, a)")).entry),
    }
    assert len(changed | {digest(module.entry)}) == 3
    loose = parse(TEXT.replace("f32[4]", "f32[4]{0:S(1)}").replace("{0:S(1)}{0}", "{0:S(1)}"))
    assert digest(loose.entry) != digest(module.entry)
    assert digest(loose.entry, layouts=False) == digest(module.entry, layouts=False)
    assert equal(loose, module, layouts=False) and not equal(loose, module)


# -- computations ----------------------------------------------------------------------------------------------------
def test_replace_computations(module: Module) -> None:
    expected = parse(TEXT.replace("to_apply=add", "to_apply=max"))
    module.replace_computations({module.computation("add"): module.computation("max")})
    assert [c.name for c in module.computations] == ["inner", "max", "unused", "main"]
    np.testing.assert_equal(values(module)[1], values(expected)[1])
    verify(module)


def test_replace_the_entry(module: Module) -> None:
    copy = CloneContext(module, "new").computation(module.entry)
    module.replace_computations({module.entry: copy})
    assert module.entry is copy and copy.name == "main.new"
    module.remove_unused_computations()
    assert sorted(c.name for c in module.computations) == ["add.new", "inner.new", "main.new"]
    verify(module)


def test_unused_computations(module: Module) -> None:
    assert [c.name for c in module.unused_computations()] == ["max", "unused"]
    gone = module.computation("unused")
    module.remove_computation(gone)
    assert gone.module is None
    assert "not in module" in refused("HLO021", lambda: module.remove_computation(gone))
    assert "the entry" in refused("HLO021", lambda: module.remove_computation(module.entry))
    assert "did you mean 'inner'?" in refused("HLO021", lambda: module.computation("iner"))


def test_removed_computations_are_not_scheduled(module: Module) -> None:
    module.set_schedule({c: c.post_order() for c in module.computations})
    assert module.remove_unused_computations()
    assert module.schedule is not None and set(module.schedule) == set(module.computations)


# -- copies ----------------------------------------------------------------------------------------------------------
def test_clone_context(module: Module) -> None:
    context = CloneContext(module)
    copy = context.computation(module.computation("add"))
    assert context.computation(module.computation("add")) is copy
    assert [c.name for c in module.computations][-2:] == ["inner.clone", "add.clone"]
    assert copy.root.operands[1].to_apply is module.computation("inner.clone")
    assert context.instructions[module.computation("add").root] is copy.root
    names = [i.name for i in module.instructions()]
    assert len(set(names)) == len(names)
    verify(module)


def test_clone_a_module(module: Module) -> None:
    became: dict[Instruction, Instruction] = {}
    copy = module.clone("twin", became)
    assert copy.name == "m-twin" and module.clone().name == "m"
    assert len(became) == module.instruction_count()
    assert all(new.parent is not None and new.parent.module is copy for new in became.values())
    assert all(new.name == old.name and new is not old for old, new in became.items())
    copy.name = "m"
    assert difference(copy, module, names=True, metadata=True) is None


def test_clone_an_instruction_with_what_it_calls(module: Module) -> None:
    reduce = named(module)("t")
    context = CloneContext(module, "twin")
    copy = module.entry.attach(context.instruction(reduce))
    assert (copy.name, copy.to_apply.name, copy.operands) == ("t.twin", "add.twin", reduce.operands)
    verify(module)


def test_clone_into_another_module(module: Module) -> None:
    other = Module("other")
    other.entry = CloneContext(other, "").computation(module.entry)
    other.entry_layout = module.entry_layout
    module.remove_unused_computations()
    module.name = "other"
    assert difference(module, other, names=True) is None


# -- schedules -------------------------------------------------------------------------------------------------------
def test_schedule(module: Module) -> None:
    order = {c: c.post_order() for c in module.computations}
    assert not module.is_scheduled
    module.set_schedule(order)
    assert module.is_scheduled
    assert "is_scheduled=true" in print_module(module)
    backwards = {**order, module.entry: order[module.entry][::-1]}
    refused("HLO110", lambda: module.set_schedule(backwards))
    assert module.schedule == order
    module.entry.add("negate", (module.entry.parameters[0],))
    refused("HLO110", module.verify_schedule)
    module.clear_schedule()
    module.verify_schedule()


def test_schedule_after_changes(module: Module) -> None:
    module.set_schedule({c: c.post_order() for c in module.computations})
    entry, find = module.entry, named(module)
    before = module.schedule[entry][::] if module.schedule else []
    new = entry.add("negate", (find("y"),), name="new")
    late = entry.add("multiply", (new, find("d")), name="late")
    find("e").replace_uses_with(late, only=[find("f")])
    entry.remove(find("e"))
    find("y").add_control_predecessor(find("z"))  # which stood behind it
    module.update_schedule()
    module.verify_schedule()
    assert module.schedule is not None
    after = [i.name for i in module.schedule[entry]]
    assert [i.name for i in before if i.name in after and i.name != "y"] == [
        n for n in after if n not in ("new", "late", "y")
    ]
    assert after.index("new") == after.index("y") + 1 and "e" not in after
    entry.add("negate", (late,))
    entry.remove_dead_from(entry.instructions[-1])
    module.clear_schedule()
    module.update_schedule()
    assert module.schedule is None


# -- aliases ---------------------------------------------------------------------------------------------------------
def test_aliases(module: Module) -> None:
    aliases, donors = module.input_output_aliases, module.buffer_donors
    donors.add(1, (0,))
    donors.add(0)
    donors.add(0)
    aliases.set_up((0,), 1, (0,), "must-alias")
    assert list(aliases) == [Alias((0,), 1, (0,), "must-alias")] and len(aliases) == 1
    assert list(donors) == [Donor(0, ())] and len(donors) == 1  # what is aliased is no donor
    assert donors.is_donor(0) and not donors.is_donor(1, (0,))
    assert aliases.aliased_parameter((0,)) == aliases.aliased_output(1, (0,))
    assert aliases.has_alias((0,)) and not aliases.has_alias((1,))
    verify(module)
    again = parse(print_module(module))
    assert list(again.input_output_aliases) == list(aliases) and list(again.buffer_donors) == list(donors)
    aliases.remove((0,))
    donors.remove(0)
    assert module.header == {}


def test_aliases_that_cannot_be(module: Module) -> None:
    aliases, donors = module.input_output_aliases, module.buffer_donors
    aliases.set_up((0,), 0)
    refused("HLO024", lambda: aliases.set_up((0,), 1, (0,)))
    refused("HLO024", lambda: donors.add(0))
    assert "of one size" in refused("HLO024", lambda: aliases.set_up((1,), 1, (0,)))
    assert "no parameter 2" in refused("HLO024", lambda: donors.add(2))
    assert "no part (5,)" in refused("HLO024", lambda: aliases.set_up((5,), 1, (0,)))


def test_dynamic_parameters() -> None:
    head = "HloModule m, dynamic_parameter_binding={(0, {}): (1, {0}, 1), (0, {}): (1, {0}, 0)}\n"
    text = "ENTRY e { n = s32[] parameter(0)\n x = (f32[4,2]) parameter(1)\n ROOT y = f32[4,2] get-tuple-element(x), index=0 }"
    module = parse(head + text)
    found = module.dynamic_parameters
    size = SizeParameter(0)
    assert list(found) == [(DynamicDimension(1, (0,), 1), size), (DynamicDimension(1, (0,), 0), size)]
    assert str(found) == module.header["dynamic_parameter_binding"]
    found.verify()
    assert found.size_of(DynamicDimension(1, (0,), 0)) == size
    again = from_proto(to_proto(module)).dynamic_parameters
    assert list(again) == list(found) == list(module.clone().dynamic_parameters)
    assert "bound already" in refused("HLO028", lambda: found.bind(size, DynamicDimension(1, (0,), 0)))
    assert "no dimension 2" in refused("HLO028", lambda: found.bind(size, DynamicDimension(1, (0,), 2)))
    assert "no part [1] of parameter 1" in refused("HLO028", lambda: found.bind(size, DynamicDimension(1, (1,), 0)))
    free = parse("HloModule m\n" + text).dynamic_parameters
    assert "integer scalar" in refused(
        "HLO028", lambda: free.bind(SizeParameter(1, (0,)), DynamicDimension(1, (0,), 1))
    )
    refused("HLO028", lambda: free.bind(SizeParameter(-1), DynamicDimension(1, (0,), 1)))
    refused("HLO028", lambda: parse(head.replace("(1, {0}, 1)", "(1, {0})") + text).dynamic_parameters)


def test_shardings_of_parameters_and_output() -> None:
    text = (
        "HloModule m\nENTRY e {\n x = f32[4] parameter(0), sharding={devices=[2]<=[2]}\n"
        " ROOT y = f32[4] negate(x), sharding={replicated}\n}"
    )
    module = parse(text)
    assert module.parameter_shardings == (Sharding.tile((2,)),) and module.output_sharding == Sharding.replicated()
    module.spmd_parameter_shardings, module.spmd_output_sharding = ("{manual}",), "{maximal device=1}"
    assert module.parameter_shardings == (Sharding.manual(),) and module.output_sharding == Sharding.maximal(1)


# -- tidying up ------------------------------------------------------------------------------------------------------
def test_cleanup() -> None:
    b = Builder("m")
    x = b.parameter(0, row_major(F32, 4))
    dropped = b.negate(x)
    root = b.abs(b.negate(x, name="kept"), name="root")
    module = b.build(root)
    module.entry.remove(dropped)
    module.entry.reorder(module.entry.instructions[::-1])
    text = print_module(module)
    module.cleanup()
    assert print_module(module) == text
    assert [i.name for i in module.entry.instructions] == ["param_0", "kept", "root"]
    assert b.negate(x).name == "negate"  # the name is free again
