"""The xla_gpu dialect: text round trips, rules are checked."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import f32
from xdsl.ir import Block

from heron.analysis.indexing import Dim, IndexingMap, Sym
from heron.codegen.ir.dialects.context import parse_kernel
from heron.codegen.ir.dialects.xla_gpu import INDEX, IndexingMapAttr, LoopOp
from heron.errors import HeronError

EVERY_OP = """\
builtin.module {
  func.func @k(%a: tensor<4x8xf32>, %o: tensor<4xf32>, %p: !llvm.ptr, %words: tensor<4xi32>) -> tensor<4xf32> attributes {xla_gpu.entry} {
    %i = arith.constant 0 : index
    %x = xla_gpu.loop (%i)[%s] -> (%r, %q) in "(d0)[s0] -> (d0, s0 * 2), domain: d0 in [0, 3], s0 in [0, 7], \
d0 + s0 in [0, 6]" iter_args(%acc = %o) -> (tensor<4xf32>) {
      %j = xla_gpu.apply_indexing "(d0)[s0] -> (d0 + s0), domain: d0 in [0, 3], s0 in [0, 7]"(%i)[%s]
      %v = tensor.extract %a[%r, %q] : tensor<4x8xf32>
      %w = xla_gpu.pure_call @f(%v) : (f32) -> f32
      %y, %z = xla_gpu.shuffle_reduce @g(%w, %w) to 16 : f32, f32
      %u, %v_1 = xla_gpu.shuffle_up (%y, %z) by 4 : f32, f32
      %u_1 = xla_gpu.shuffle_first (%u) of 8 : f32
      %n = tensor.insert %u_1 into %acc[%r] : tensor<4xf32>
      xla_gpu.yield %n : tensor<4xf32>
    }
    xla_gpu.loop (%i)[%s_1] -> () in "(d0)[s0] -> (), domain: d0 in [0, 3], s0 in [0, 7]" {
      xla_gpu.yield
    }
    %m = xla_gpu.allocate_shared : tensor<4xf32>
    %m2 = xla_gpu.sync_threads (%m) : tensor<4xf32>
    xla_gpu.sync_threads ()
    %c = arith.constant 1.000000e+00 : f32
    %old = xla_gpu.llvm_atomicrmw "fadd" "monotonic" "device" %p, %c : !llvm.ptr, f32 -> f32
    %e = arith.constant 1 : i32
    %seen, %ok = xla_gpu.llvm_cmpxchg "monotonic" "" %p, %e, %e : !llvm.ptr, i32, i32 -> i32, i1
    %t = xla_gpu.atomic_rmw %x[%i] : tensor<4xf32> {
    ^bb0(%current: f32):
      %d = arith.addf %current, %current : f32
      xla_gpu.yield %d : f32
    }
    %n0, %n1 = xla_gpu.fetch_add %e, %words[%i] : i32, tensor<4xi32> -> i32, tensor<4xi32>
    %n2 = xla_gpu.atomic_load "acquire" %n1[%i] : tensor<4xi32> -> i32
    %n3 = xla_gpu.atomic_store "release" %n2, %n1[%i] : i32, tensor<4xi32> -> tensor<4xi32>
    %n4 = xla_gpu.match_any %n2
    %n5 = xla_gpu.shuffle_from %n4, %e
    %n7 = xla_gpu.ballot %ok
    %n6 = xla_gpu.llvm_load_atomic "acquire" "device" %p : !llvm.ptr -> i32
    xla_gpu.llvm_store_atomic "release" "device" %n6, %p : i32, !llvm.ptr
    %b = xla_gpu.transpose_block %a[%i, %i], %t[%i] size 2 steps (8, 2) : tensor<4x8xf32>, tensor<4xf32>
    func.return %b : tensor<4xf32>
  }
  func.func private @f(f32) -> f32
  func.func private @g(f32, f32, f32, f32) -> (f32, f32)
}"""


def test_round_trip() -> None:
    text = str(parse_kernel(EVERY_OP))
    assert text == EVERY_OP
    assert str(parse_kernel(text)) == text


def test_map_attribute() -> None:
    attr = IndexingMapAttr(IndexingMap.identity([4]))
    assert str(attr) == '#xla_gpu.indexing_map<"(d0) -> (d0), domain: d0 in [0, 3]">'
    assert attr == IndexingMapAttr(IndexingMap.identity([4]))


def test_loop_build() -> None:
    m = IndexingMap.from_sizes([Dim(0) * 4 + Sym(0)], [2], [4])
    block = Block(arg_types=[INDEX, f32])
    seen = []

    def body(inner: Block, syms: object, results: object, carried: list) -> list:
        seen.append((inner, syms, results, carried))
        return list(carried)

    loop = LoopOp.build(m, [block.args[0]], [block.args[1]], body)
    loop.verify()
    assert [len(x) for x in seen[0][1:]] == [1, 1, 1]
    assert loop.inits[0] is block.args[1]


RULES = [
    # apply_indexing
    ('%r = xla_gpu.apply_indexing "(d0) -> (d0), domain: d0 in [0, 3]"(%i, %i)', "1 variables"),
    ('%r = xla_gpu.apply_indexing "(d0) -> (d1), domain: d0 in [0, 3]"(%i)', "GEN105"),
    ('%r = "xla_gpu.apply_indexing"(%i) <{map = #xla_gpu.indexing_map<"(d0) -> (d0, d0), domain: d0 in [0, 3]">}> '
     ": (index) -> index", "2 results, the op 1"),
    # loop
    ('xla_gpu.loop (%i)[%s] -> () in "(d0)[s0]{rt0} -> (), domain: d0 in [0, 3], s0 in [0, 3], '
     'rt0 in [0, 1]" { xla_gpu.yield }', "runtime variables"),
    ('xla_gpu.loop (%i)[] -> () in "(d0)[s0] -> (), domain: d0 in [0, 3], s0 in [0, 3]" { xla_gpu.yield }',
     "takes the symbols"),
    ('%r = xla_gpu.loop (%i)[%s] -> () in "(d0)[s0] -> (), domain: d0 in [0, 3], s0 in [0, 3]" iter_args(%a = %x) '
     "-> (f32) { xla_gpu.yield %s : index }", "yields the next carried values"),
    ('"xla_gpu.loop"(%x) <{map = #xla_gpu.indexing_map<"(d0) -> (), domain: d0 in [0, 3]">}> '
     "({ xla_gpu.yield }) : (f32) -> ()", "of type index"),
    ('%r = "xla_gpu.loop"(%i, %x) <{map = #xla_gpu.indexing_map<"(d0) -> (), domain: d0 in [0, 3]">}> '
     "({ ^bb0(%a: f32): xla_gpu.yield %a : f32 }) : (index, f32) -> index", "the types of its initial values"),
    # pure_call
    ("%r = xla_gpu.pure_call @nobody(%x) : (f32) -> f32", "no function @nobody"),
    ("%r = xla_gpu.pure_call @f(%i) : (index) -> f32", "it is called as (index) -> f32"),
    ("%r = xla_gpu.pure_call @f(%x) : (f32) -> index", "it is called as (f32) -> index"),
    # allocate_shared, sync_threads
    ("%r = xla_gpu.allocate_shared : tensor<4x?xf32>", "known size"),
    ("%r = xla_gpu.allocate_shared : f32", "attribute tensor"),
    ('%r = "xla_gpu.sync_threads"(%o) : (tensor<4xf32>) -> tensor<5xf32>', "returns its operands"),
    # shuffle_reduce
    ("%r = xla_gpu.shuffle_reduce @g(%x) to 3 : f32", "power of two"),
    ("%r = xla_gpu.shuffle_reduce @g(%x) to 32 : f32", "power of two"),
    ("%r = xla_gpu.shuffle_reduce @f(%x) to 4 : f32", "it is called as (f32, f32) -> f32"),
    ('%r = "xla_gpu.shuffle_reduce"(%x) <{combiner = @g, max_distance = 4 : i64}> : (f32) -> index',
     "its operands' types"),
    # shuffle_up
    ("%r = xla_gpu.shuffle_up (%x) by 32 : f32", "no lane of a warp"),
    ('%r = "xla_gpu.shuffle_up"(%x) <{distance = 4 : i64}> : (f32) -> index', "its operands' types"),
    # shuffle_first
    ("%r = xla_gpu.shuffle_first (%x) of 12 : f32", "groups of 12 lanes"),
    ('%r = "xla_gpu.shuffle_first"(%x) <{lanes = 4 : i64}> : (f32) -> index', "its operands' types"),
    # atomic_rmw
    ("%t = xla_gpu.atomic_rmw %o[%i] : tensor<4xf32> {\n^bb0(%c: f32):\n xla_gpu.yield %i : index }",
     "yields the new element"),
    ("%t = xla_gpu.atomic_rmw %o[%i] : tensor<4xf32> {\n^bb0(%c: index):\n xla_gpu.yield %x : f32 }",
     "takes the current element"),
    ("%t = xla_gpu.atomic_rmw %o[%i, %i] : tensor<4xf32> {\n^bb0(%c: f32):\n xla_gpu.yield %c : f32 }",
     "an index for each dimension"),
    # transpose_block
    ("%t = xla_gpu.transpose_block %o[%i], %o[%i] size 3 steps (1, 1) : tensor<4xf32>, tensor<4xf32>", "halving"),
    ("%t = xla_gpu.transpose_block %o[%i], %o[%i, %i] size 2 steps (1, 1) : tensor<4xf32>, tensor<4xf32>",
     "an index for each dimension"),
    ("%t = xla_gpu.transpose_block %o[%i], %h[%i] size 2 steps (1, 1) : tensor<4xf32>, tensor<4xf16>",
     "one element type"),
    # LLVM's
    ('%r = xla_gpu.llvm_atomicrmw "mul" "monotonic" "" %p, %x : !llvm.ptr, f32 -> f32', "no atomic operation"),
    ('%r = xla_gpu.llvm_atomicrmw "add" "later" "" %p, %x : !llvm.ptr, f32 -> f32', "no memory ordering"),
    ('%r = xla_gpu.llvm_atomicrmw "add" "monotonic" "" %p, %x : !llvm.ptr, f32 -> f64', "returns the old value"),
    ('%r, %q = xla_gpu.llvm_cmpxchg "monotonic" "" %p, %x, %i : !llvm.ptr, f32, index -> f32, i1', "of one type"),
    ('%r, %q = xla_gpu.llvm_cmpxchg "x" "" %p, %x, %x : !llvm.ptr, f32, f32 -> f32, i1', "no memory ordering"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "why"), RULES)
def test_rules(line: str, why: str) -> None:
    text = f"""func.func @k(%i: index, %x: f32, %o: tensor<4xf32>, %h: tensor<4xf16>, %p: !llvm.ptr) {{
{line}
func.return }}
func.func private @f(f32) -> f32
func.func private @g(f32, f32) -> f32"""
    with pytest.raises(HeronError, match="GEN11[01]") as caught:
        parse_kernel(text)
    assert why in str(caught.value)


DAMAGED = [
    ('func.func @k() attributes {a = "} {\n func.return\n}', "1:32", "string does not end"),
    ("func.func @k(%x: f32) {\n  %y = math.expp %x : f32\n}", "2:", "not registered"),
    ("func.func @k() {\n  %y = arith.addi %a, %a : i32\n  func.return\n}", "4:", "not defined"),
    ("scf.if %c {" * 3000, "1:", "too deep"),
    ("module { %a = arith.constant dense<[1, 2]> : tensor<3xi32> }", "1:", "Shape mismatch"),
]


@pytest.mark.parametrize(("text", "place", "why"), DAMAGED, ids=range(len(DAMAGED)))
def test_damaged_text_is_located(text: str, place: str, why: str) -> None:
    with pytest.raises(HeronError, match="GEN110") as caught:
        parse_kernel(text, "k.mlir")
    assert f"k.mlir:{place}" in str(caught.value) and why in str(caught.value)


@settings(max_examples=60)
@given(st.data())
def test_any_damage_is_an_error_or_a_kernel(data: st.DataObject) -> None:
    text = list(EVERY_OP)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 2))] = data.draw(st.sampled_from(["", *'%"()[]{}<>:,-0 x']))
    try:
        parse_kernel("".join(text))
    except HeronError as error:
        assert error.code in ("GEN110", "GEN111")
