"""Programs made to break compilers: reducers that do not commute, loop state that changes places, counters that wrap,
indices computed from counters, values beyond a type, data in places that must not be read."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest

import heron
from heron.hlo.ir.types import by_name
from tests.backends.agree import TARGETS, assert_agrees

REDUCERS = """affine { a=s32[] parameter(0) b=s32[] parameter(1) c=s32[] parameter(2) d=s32[] parameter(3)
 ac=s32[] multiply(a,c) bc=s32[] multiply(b,c) e=s32[] add(bc,d) ROOT t=(s32[],s32[]) tuple(ac,e) }
last { x=s32[] parameter(0) y=s32[] parameter(1) z=s32[] constant(0) p=pred[] compare(y,z),direction=NE
 ROOT s=s32[] select(p,y,x) }
"""
#: shape, result, reduced dimensions
REDUCED = (
    ("5000", "", "0"), ("37,65", "37", "1"), ("65,37", "37", "0"), ("64,3,64", "3", "0,2"),
    ("", "", ""), ("7", "7", ""), ("3,5", "3,5", ""), ("0", "0", ""),
)  # fmt: skip
#: shape, window of a cumulative reduction
CUMULATIVE = (
    ("300", "size=300 pad=299_0"),
    ("3,130", "size=1x130 pad=0_0x0_129"),
    ("130,3", "size=130x1 pad=129_0x0_0"),
)
#: counter's type, first value, bound, step, comparison, op
COUNTERS = (
    ("s8", "-128", "100", "100", "LT", "add"),  # -128 -28 72 -84 16
    ("u8", "250", "4", "1", "NE", "add"),
    ("u8", "3", "250", "1", "NE", "subtract"),
    ("s8", "120", "-120", "7", "GT", "add"),
    ("s8", "0", "100", "60", "LT", "add"),
    ("s32", "2147483645", "-2147483648", "1", "NE", "add"),
    ("u32", "4294967290", "3", "1", "NE", "add"),
    ("s64", "9223372036854775800", "-9223372036854775808", "2", "NE", "add"),
    ("s8", "1", "0", "3", "GT", "multiply"),
    ("u8", "200", "100", "100", "GE", "add"),
    ("bf16", "0", "100", "1.25", "LT", "add"),
)
#: an index `x` from a counter `i`, with constants three and forty
INDICES = (
    "x=T[] subtract(i,three)", "x=T[] subtract(three,i)", "x=T[] multiply(i,forty)", "x=T[] remainder(i,three)",
    "d=T[] subtract(i,forty) x=T[] remainder(d,three)", "d=T[] subtract(i,forty) x=T[] divide(d,three)",
    "x=T[] xor(i,three)", "x=T[] shift-left(i,three)",
)  # fmt: skip


def check(entry: str, target: str, inputs: list[np.ndarray], before: str = "", header: str = "HloModule m") -> None:
    assert_agrees(heron.parse(f"{header}\n{before}\nENTRY e {{\n{entry}\n}}\n"), target, inputs)


def whole(shape: str, seed: int, few: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    dims = tuple(int(n) for n in shape.split(",") if n)
    found = rng.integers(-9, 10, dims).astype(np.int32)
    return np.where(rng.random(dims) < 0.02, found, 0).astype(np.int32) if few else found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "result", "dims"), REDUCED)
def test_reducers_that_do_not_commute(shape: str, result: str, dims: str, target: str) -> None:
    entry = f"""a=s32[{shape}] parameter(0) b=s32[{shape}] parameter(1) one=s32[] constant(1) zero=s32[] constant(0)
 r=(s32[{result}],s32[{result}]) reduce(a,b,one,zero), dimensions={{{dims}}}, to_apply=affine
 l=s32[{result}] reduce(a,zero), dimensions={{{dims}}}, to_apply=last
 ROOT t=((s32[{result}],s32[{result}]),s32[{result}]) tuple(r,l)"""
    check(entry, target, [whole(shape, 1, few=True), whole(shape, 2)], REDUCERS)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "window"), CUMULATIVE)
def test_cumulative_reducers_that_do_not_commute(shape: str, window: str, target: str) -> None:
    entry = f"""a=s32[{shape}] parameter(0) b=s32[{shape}] parameter(1) one=s32[] constant(1) zero=s32[] constant(0)
 ROOT r=(s32[{shape}],s32[{shape}]) reduce-window(a,b,one,zero), window={{{window}}}, to_apply=affine"""
    check(entry, target, [whole(shape, 1) | 1, whole(shape, 2)], REDUCERS)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("last", "times"), list(product(("a", "d"), (1, 100))))
def test_loop_state_that_changes_places(last: str, times: int, target: str) -> None:
    state = "(s32[],f32[5],f32[5],f32[5])"
    before = f"""body {{ s={state} parameter(0) i=s32[] get-tuple-element(s),index=0
 a=f32[5] get-tuple-element(s),index=1 b=f32[5] get-tuple-element(s),index=2 c=f32[5] get-tuple-element(s),index=3
 one=s32[] constant(1) j=s32[] add(i,one) d=f32[5] add(a,b) ROOT t={state} tuple(j,b,c,{last}) }}
cond {{ s={state} parameter(0) i=s32[] get-tuple-element(s),index=0 n=s32[] constant({times})
 ROOT p=pred[] compare(i,n),direction=LT }}"""
    entry = f"""i=s32[] constant(0) a=f32[5] parameter(0) b=f32[5] parameter(1) s={state} tuple(i,a,b,a)
 ROOT w={state} while(s),condition=cond,body=body"""
    check(entry, target, [np.arange(5, dtype=np.float32), np.arange(5, 10).astype(np.float32)], before)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("type_", "start", "bound", "step", "direction", "op"), COUNTERS)
def test_counters_that_wrap(
    type_: str, start: str, bound: str, step: str, direction: str, op: str, target: str
) -> None:
    state = f"({type_}[],s32[2])"
    before = f"""body {{ s={state} parameter(0) i={type_}[] get-tuple-element(s),index=0
 a=s32[2] get-tuple-element(s),index=1 k={type_}[] constant({step}) j={type_}[] {op}(i,k)
 three=s32[] constant(3) b=s32[2] broadcast(three),dimensions={{}} m=s32[2] multiply(a,b) c=s32[] convert(i)
 d=s32[2] broadcast(c),dimensions={{}} n=s32[2] add(m,d) ROOT t={state} tuple(j,n) }}
cond {{ s={state} parameter(0) i={type_}[] get-tuple-element(s),index=0 n={type_}[] constant({bound})
 ROOT p=pred[] compare(i,n),direction={direction} }}"""
    entry = f"""i={type_}[] constant({start}) a=s32[2] parameter(0) s={state} tuple(i,a)
 ROOT w={state} while(s),condition=cond,body=body"""
    check(entry, target, [np.arange(2, dtype=np.int32)], before)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("type_", ["s32", "u8", "s8", "u32", "s64"])
def test_indices_computed_from_counters(type_: str, target: str) -> None:
    """The bounds of an index are known only if nothing on the way to it wraps."""
    state = f"({type_}[],s32[10],s32[3])"
    steps = []
    for n, index in enumerate(INDICES):
        named = (
            index.replace("x=", f"x{n}=").replace("d=", f"d{n}=").replace("(d,", f"(d{n},").replace("T[]", f"{type_}[]")
        )
        steps.append(
            f" {named} v{n}=s32[3] dynamic-slice(o,x{n}),dynamic_slice_sizes={{3}} a{n + 1}=s32[3] add(a{n},v{n})"
        )
    body = "\n".join(steps)
    last = len(INDICES)
    before = f"""body {{ s={state} parameter(0) i={type_}[] get-tuple-element(s),index=0
 o=s32[10] get-tuple-element(s),index=1 a0=s32[3] get-tuple-element(s),index=2
 one={type_}[] constant(1) three={type_}[] constant(3) forty={type_}[] constant(40)
{body}
 u=s32[10] dynamic-update-slice(o,a{last},x0) j={type_}[] add(i,one) ROOT t={state} tuple(j,u,a{last}) }}
cond {{ s={state} parameter(0) i={type_}[] get-tuple-element(s),index=0 n={type_}[] constant(7)
 ROOT p=pred[] compare(i,n),direction=LT }}"""
    entry = f"""i={type_}[] constant(0) o=s32[10] parameter(0) z=s32[] constant(0) a=s32[3] broadcast(z),dimensions={{}}
 s={state} tuple(i,o,a) ROOT w={state} while(s),condition=cond,body=body"""
    check(entry, target, [np.arange(10, dtype=np.int32)], before)


@pytest.mark.parametrize("target", TARGETS)
def test_sub_byte_loop_state(target: str) -> None:
    state = "(s32[],s4[7])"
    before = f"""body {{ s={state} parameter(0) i=s32[] get-tuple-element(s),index=0 a=s4[7] get-tuple-element(s),index=1
 one=s32[] constant(1) j=s32[] add(i,one) m=s4[7] add(a,a) r=s4[7] reverse(m),dimensions={{0}}
 x=s4[1] slice(a),slice={{[3:4]}} u=s4[7] dynamic-update-slice(r,x,i) ROOT t={state} tuple(j,u) }}
cond {{ s={state} parameter(0) i=s32[] get-tuple-element(s),index=0 n=s32[] constant(5)
 ROOT p=pred[] compare(i,n),direction=LT }}
yes {{ a=s4[7] parameter(0) b=s4[3] slice(a),slice={{[1:7:2]}} ROOT t=(s4[7],s4[3]) tuple(a,b) }}
no {{ a=s4[7] parameter(0) n=s4[7] negate(a) b=s4[3] slice(n),slice={{[0:6:2]}} ROOT t=(s4[7],s4[3]) tuple(n,b) }}"""
    entry = f"""a=s4[7] parameter(0) p=pred[] parameter(1) i=s32[] constant(0) s={state} tuple(i,a)
 w={state} while(s),condition=cond,body=body b=s4[7] get-tuple-element(w),index=1
 ROOT c=(s4[7],s4[3]) conditional(p,b,a),true_computation=yes,false_computation=no"""
    for taken in (True, False):
        check(entry, target, [np.array([1, -8, 7, 3, -2, 0, 5]).astype(ml_dtypes.int4), np.array(taken)], before)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE"])
def test_the_unused_triangle_is_not_read(transpose: str, target: str) -> None:
    rng = np.random.default_rng(4)
    a = np.tril(rng.normal(size=(9, 9))) + 3 * np.eye(9) + np.triu(np.full((9, 9), np.nan), 1)
    entry = f"""a=f32[9,9] parameter(0) b=f32[9,4] parameter(1)
 ROOT x=f32[9,4] triangular-solve(a,b),left_side=true,lower=true,transpose_a={transpose}"""
    check(entry, target, [a.astype(np.float32), rng.normal(size=(9, 4)).astype(np.float32)])


@pytest.mark.parametrize("target", TARGETS)
def test_outputs_that_trade_places_with_donated_inputs(target: str) -> None:
    header = "HloModule m, input_output_alias={ {0}: (1, {}, may-alias), {1}: (0, {}, may-alias) }"
    inputs = [np.arange(5, dtype=np.float32), np.arange(5, 10).astype(np.float32)]
    check("a=f32[5] parameter(0) b=f32[5] parameter(1) ROOT t=(f32[5],f32[5]) tuple(a,b)", target, inputs, "", header)
    entry = """a=f32[5] parameter(0) b=f32[5] parameter(1) r=f32[5] reverse(b),dimensions={0} c=f32[5] add(a,r)
 d=f32[5] reverse(a),dimensions={0} e=f32[5] subtract(d,b) ROOT t=(f32[5],f32[5]) tuple(c,e)"""
    check(entry, target, inputs, "", header)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("t", ["f32", "s8", "pred", "c64"])
def test_windows_of_nothing_that_collapse(t: str, target: str) -> None:
    """There is no element to read, whatever the index: zeros come out, and no memory beside the array."""
    numbers = "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1"
    batched = (
        "collapsed_slice_dims={}, start_index_map={1}, index_vector_dim=1, operand_batching_dims={0}, "
        "start_indices_batching_dims={0}"
    )
    check(
        f"""x={t}[3,9] parameter(0) n=s32[3,1] parameter(1)
 g={t}[3,9] gather(x,n), offset_dims={{1}}, {numbers}, slice_sizes={{0,9}}
 h={t}[3,2] gather(x,n), offset_dims={{1}}, {batched}, slice_sizes={{0,2}}
 ROOT t=({t}[3,9],{t}[3,2]) tuple(g,h)""",
        target,
        [np.ones((3, 9), by_name(t).dtype), np.array([[0], [3], [9]], np.int32)],
    )
