"""The programs of `tests.gpu.reach` as HLO, with ``{n}`` for the size and ``{n-1}`` for one less."""

from __future__ import annotations

LESS = """less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
"""
SORT = (
    "HloModule sort\n\n" + LESS + "\nENTRY main {\n  x = s32[{n}] parameter(0)\n"
    "  ROOT r = s32[{n}] sort(x), dimensions={0}, to_apply=less\n}\n"
)
PAIRS = """HloModule pairs

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER
}

ENTRY main {
  x = f32[{n}] parameter(0)
  i = s32[{n}] iota(), iota_dimension=0
  ROOT r = (f32[{n}], s32[{n}]) sort(x, i), dimensions={0}, to_apply=less, is_stable=true
}
"""
SCAN = """HloModule scan

add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}

ENTRY main {
  x = s32[{n}] parameter(0)
  zero = s32[] constant(0)
  ROOT y = s32[{n}] reduce-window(x, zero), window={size={n} pad={n-1}_0}, to_apply=add
}
"""
HISTOGRAM = """HloModule histogram

add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}

ENTRY main {
  i = s32[{n},1] parameter(0)
  zero = s32[] constant(0)
  zeros = s32[256] broadcast(zero), dimensions={}
  one = s32[] constant(1)
  ones = s32[{n}] broadcast(one), dimensions={}
  ROOT r = s32[256] scatter(zeros, i, ones), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
}
"""
ATOMICS = HISTOGRAM.replace("s32[256]", "f32[256]").replace("s32[] ", "f32[] ").replace("ones = s32", "ones = f32")
GELU = """HloModule product

ENTRY main {
  x = bf16[{n},{n}] parameter(0)
  w = bf16[{n},{n}] parameter(1)
  y = bf16[{n},{n}] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = bf16[{n},{n}] tanh(y)
}
"""
F8 = """HloModule f8

ENTRY main {
  x = f8e4m3fn[{n},{n}] parameter(0)
  w = f8e4m3fn[{n},{n}] parameter(1)
  ROOT y = f32[{n},{n}] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
HOST = """HloModule host

ENTRY main {
  x = f32[{n},{n}] parameter(0)
  t = f32[{n},{n}] transpose(x), dimensions={1,0}
  s = f32[{n},{n}] add(x, t)
  c = f32[{n},{n}] cholesky(s), lower=true
  ROOT e = f32[{n},{n}] exponential(c)
}
"""
OFFLOADED = """HloModule offloaded

ENTRY main {
  x = f32[{n}] parameter(0)
  y = f32[{n}] exponential(x)
  kept = f32[{n}]{0:S(5)} custom-call(y), custom_call_target="annotate_device_placement", frontend_attributes={_xla_buffer_placement="pinned_host"}
  z = f32[{n}] sine(x)
  back = f32[{n}]{0} custom-call(kept), custom_call_target="annotate_device_placement", frontend_attributes={_xla_buffer_placement="device"}
  away = f32[{n}]{0:S(5)} custom-call(z), custom_call_target="MoveToHost"
  again = f32[{n}]{0} custom-call(away), custom_call_target="MoveToDevice"
  ROOT r = f32[{n}] multiply(back, again)
}
"""

#: a branch with nothing to do, whose graph has no nodes, inside a loop that is a node
EMPTY_BRANCH = """HloModule empty

kept {
  ROOT x = f32[{n}] parameter(0)
}

moved {
  x = f32[{n}] parameter(0)
  ROOT y = f32[{n}] sine(x)
}

body {
  p = (s32[], s32[], f32[{n}]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  which = s32[] get-tuple-element(p), index=1
  x = f32[{n}] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  other = s32[] xor(which, one)
  y = f32[{n}] conditional(which, x, x), branch_computations={kept, moved}
  ROOT r = (s32[], s32[], f32[{n}]) tuple(j, other, y)
}

more {
  p = (s32[], s32[], f32[{n}]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  most = s32[] constant(300)
  ROOT c = pred[] compare(i, most), direction=LT
}

ENTRY main {
  which = s32[] parameter(0)
  x = f32[{n}] parameter(1)
  zero = s32[] constant(0)
  begin = (s32[], s32[], f32[{n}]) tuple(zero, which, x)
  end = (s32[], s32[], f32[{n}]) while(begin), condition=more, body=body
  ROOT y = f32[{n}] get-tuple-element(end), index=2
}
"""
#: as a checkpoint policy has it: the states of a loop wait on the host for a second loop, which goes backwards
LAYERS = """HloModule layers

forth {
  p = (s32[], f32[{n}], f32[300,{n}]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[{n}] get-tuple-element(p), index=1
  all = f32[300,{n}] get-tuple-element(p), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] add(i, one)
  y = f32[{n}] sine(x)
  h = f32[{n}] custom-call(x), custom_call_target="MoveToHost"
  row = f32[1,{n}] reshape(h)
  more = f32[300,{n}] dynamic-update-slice(all, row, i, zero)
  ROOT r = (s32[], f32[{n}], f32[300,{n}]) tuple(j, y, more)
}

before {
  p = (s32[], f32[{n}], f32[300,{n}]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  most = s32[] constant(300)
  ROOT c = pred[] compare(i, most), direction=LT
}

back {
  p = (s32[], f32[{n}], f32[300,{n}]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  g = f32[{n}] get-tuple-element(p), index=1
  all = f32[300,{n}] get-tuple-element(p), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] subtract(i, one)
  row = f32[1,{n}] dynamic-slice(all, j, zero), dynamic_slice_sizes={1,{n}}
  flat = f32[{n}] reshape(row)
  x = f32[{n}] custom-call(flat), custom_call_target="MoveToDevice"
  d = f32[{n}] cosine(x)
  h = f32[{n}] multiply(g, d)
  ROOT r = (s32[], f32[{n}], f32[300,{n}]) tuple(j, h, all)
}

left {
  p = (s32[], f32[{n}], f32[300,{n}]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  zero = s32[] constant(0)
  ROOT c = pred[] compare(i, zero), direction=GT
}

ENTRY main {
  x = f32[{n}] parameter(0)
  none = f32[] constant(0)
  zeros = f32[300,{n}] broadcast(none), dimensions={}
  first = s32[] constant(0)
  last = s32[] constant(300)
  one = f32[] constant(1)
  ones = f32[{n}] broadcast(one), dimensions={}
  begin = (s32[], f32[{n}], f32[300,{n}]) tuple(first, x, zeros)
  done = (s32[], f32[{n}], f32[300,{n}]) while(begin), condition=before, body=forth
  all = f32[300,{n}] get-tuple-element(done), index=2
  again = (s32[], f32[{n}], f32[300,{n}]) tuple(last, ones, all)
  end = (s32[], f32[{n}], f32[300,{n}]) while(again), condition=left, body=back
  ROOT g = f32[{n}] get-tuple-element(end), index=1
}
"""
