"""Definitions of ops and attributes that xDSL works out late: every one is right, and its format prints and parses as it did."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from xdsl.ir import Operation

from heron.codegen.ir import late_definitions, quick_ops
from heron.codegen.ir.dialects.context import parse_kernel

LOADED = """
from heron.codegen.ir import late_definitions
from heron.codegen.ir.dialects import context
late = late_definitions.undefined()
for op in late:
    definition = op.get_irdl_definition()
    if isinstance(definition.assembly_format, str):
        late_definitions.LateFormat(definition.assembly_format, definition).program
    assert set(op.traits.traits) == set(definition.traits.traits), op
assert not late_definitions.undefined()
print(len(late))
"""
DEFINED_AT_ONCE = """
from xdsl.irdl import operations
from xdsl.dialects import arith, llvm, scf, tensor, vector
for op in (arith.AddiOp, arith.CmpfOp, scf.ForOp, scf.IfOp, llvm.StoreOp, tensor.InsertOp, vector.StoreOp):
    print(op.name, op.get_irdl_definition(), sorted(map(str, op.traits)))
"""
ATTRIBUTES = """
from xdsl.dialects import builtin, complex, gpu, llvm, vector
from xdsl.ir import ParametrizedAttribute, TypedAttribute
from xdsl.utils.runtime_final import is_runtime_final
count = 0
for dialect in (builtin, complex, gpu, llvm, vector):
    for name, cls in sorted(vars(dialect).items()):
        if isinstance(cls, type) and issubclass(cls, ParametrizedAttribute) and "name" in vars(cls):
            index = cls.get_type_index() if issubclass(cls, TypedAttribute) else None
            print(name, cls.get_irdl_definition(), index, is_runtime_final(cls))
            count += 1
assert count > 40, count
array = builtin.ArrayAttr([builtin.i32, builtin.StringAttr("a")])
print(repr(array), array == builtin.ArrayAttr([builtin.i32, builtin.StringAttr("a")]), hash(builtin.i32) == hash(builtin.IntegerType(32)))
try:
    builtin.ComplexType(builtin.StringAttr("a"))
except Exception as error:
    print(type(error), error)
"""


def _run(text: str) -> str:
    printed = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
    return re.sub(r" at 0x\w+", "", printed)


def test_no_op_is_defined_by_loading_its_dialect() -> None:
    assert int(_run(LOADED)) > 150


def test_definitions_are_those_of_xdsl() -> None:
    late = "from heron.codegen.ir import late_definitions\n"
    assert _run(late + DEFINED_AT_ONCE) == _run(DEFINED_AT_ONCE)


def test_attributes_are_those_of_xdsl() -> None:
    late = "from heron.codegen.ir import late_definitions\n"
    assert _run(late + ATTRIBUTES) == _run(ATTRIBUTES)


def test_threads_that_ask_for_one_definition_get_the_same() -> None:
    from xdsl.irdl import IRDLOperation, operand_def, result_def, traits_def
    from xdsl.traits import Pure

    for _ in range(20):

        @late_definitions.define_late
        class SomeOp(IRDLOperation):
            name = "some.op"
            value = operand_def()
            result = result_def()
            traits = traits_def(Pure())

        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda op: op.get_irdl_definition(), [SomeOp] * 8))
        assert all(f is found[0] for f in found)


def test_an_op_without_traits_has_none() -> None:
    from xdsl.irdl import IRDLOperation

    @late_definitions.define_late
    class BareOp(IRDLOperation):
        name = "some.bare"

    assert not BareOp.traits.traits
    assert isinstance(BareOp.build(), Operation)


def test_an_op_prints_and_parses_by_its_format() -> None:
    text = """builtin.module { func.func @f(%x: f32, %y: f32) -> f32 {
             %z = arith.addf %x, %y : f32
             func.return %z : f32 } }"""
    module = parse_kernel(text)
    assert "arith.addf %x, %y : f32" in str(module)


def test_implicit_terminators_are_made_also_of_ops_that_are_defined() -> None:
    text = """builtin.module { func.func @f(%n: index) {
             scf.for %i = %n to %n step %n { }
             func.return } }"""
    for _ in range(3):  # the first one has xDSL define scf.yield
        loop = next(op for op in parse_kernel(text).walk() if op.name == "scf.for")
        assert [op.name for op in loop.regions[0].block.ops] == ["scf.yield"]


@pytest.mark.parametrize("is_given", [False, True])
def test_ops_have_the_defaults_of_xdsl(is_given: bool) -> None:
    from xdsl.dialects import arith
    from xdsl.irdl import IRDLOperation

    given = {"fastmath": arith.FastMathFlagsAttr("fast")} if is_given else {}
    found = 0
    for cls in vars(arith).values():
        if isinstance(cls, type) and issubclass(cls, IRDLOperation) and "name" in vars(cls):
            for _ in range(2):  # the first defines the class
                made, plain = cls.create(properties=given), object.__new__(cls)
                plain.properties, plain.attributes = dict(given), {}
                IRDLOperation.__post_init__(plain)
                assert (made.properties, made.attributes) == (plain.properties, plain.attributes)
                found += made.properties != given
            assert cls.__post_init__ in quick_ops.settled
    assert found > 5
