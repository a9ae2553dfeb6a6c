"""The few kernels the runtime itself needs: the random state, what tells conditional nodes of a graph what to do, and a
reader of memory for measurements.

Written in PTX, which the driver compiles. ``cudaGraphSetConditional`` is the driver's own: machine code of it has an
open symbol. Modules with it load where the driver has conditional nodes.
"""

from __future__ import annotations

_HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"

#: heron_number(out, number): out = number. heron_mark(counter, word, number): counter += 1; word = number and counter;
#: the word is in the host's memory, where it is seen at once
DEVICES = (
    _HEAD
    + """
.visible .entry heron_number(.param .u64 out, .param .u64 number)
{
  .reg .b64 %o, %n;
  .reg .b32 %w;
  ld.param.u64 %o, [out];
  ld.param.u64 %n, [number];
  cvta.to.global.u64 %o, %o;
  cvt.u32.u64 %w, %n;
  st.global.u32 [%o], %w;
  ret;
}

.visible .entry heron_mark(.param .u64 counter, .param .u64 word, .param .u64 number)
{
  .reg .b64 %c, %p, %n, %count;
  .reg .b32 %w, %k;
  ld.param.u64 %c, [counter];
  ld.param.u64 %p, [word];
  ld.param.u64 %n, [number];
  cvta.to.global.u64 %c, %c;
  ld.global.u64 %count, [%c];
  add.u64 %count, %count, 1;
  st.global.u64 [%c], %count;
  cvt.u32.u64 %w, %n;
  cvt.u32.u64 %k, %count;
  st.volatile.v2.u32 [%p], {%w, %k};
  ret;
}
"""
)

#: heron_random(state, out, delta): out = state; state += delta, as 128-bit numbers, low word first
RANDOM = (
    _HEAD
    + """
.visible .entry heron_random(.param .u64 state, .param .u64 out, .param .u64 delta)
{
  .reg .b64 %s, %o, %d, %low, %high, %low1, %high1;
  ld.param.u64 %s, [state];
  ld.param.u64 %o, [out];
  ld.param.u64 %d, [delta];
  cvta.to.global.u64 %s, %s;
  cvta.to.global.u64 %o, %o;
  ld.global.u64 %low, [%s];
  ld.global.u64 %high, [%s+8];
  st.global.u64 [%o], %low;
  st.global.u64 [%o+8], %high;
  add.cc.u64 %low1, %low, %d;
  addc.u64 %high1, %high, 0;
  st.global.u64 [%s], %low1;
  st.global.u64 [%s+8], %high1;
  ret;
}
"""
)

#: heron_while(predicate, handle): go on while the byte is not 0
#: heron_start(counter, handle, trips): no turn is done yet; begin if there are some
#: heron_count(counter, handle, trips): one turn more is done; go on while there are some left
#: heron_case(selector, handle, case, count, by_predicate): run this branch or not
CONDITIONS = (
    _HEAD
    + """
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

.visible .entry heron_while(.param .u64 predicate, .param .u64 handle)
{
  .reg .b64 %p, %h;
  .reg .b32 %v;
  ld.param.u64 %p, [predicate];
  ld.param.u64 %h, [handle];
  cvta.to.global.u64 %p, %p;
  ld.global.u8 %v, [%p];
  { .param .b64 a; .param .b32 b;
    st.param.b64 [a], %h;
    st.param.b32 [b], %v;
    call.uni cudaGraphSetConditional, (a, b); }
  ret;
}

.visible .entry heron_start(.param .u64 counter, .param .u64 handle, .param .u64 trips)
{
  .reg .b64 %c, %h, %t, %n;
  .reg .b32 %v;
  .reg .pred %more;
  ld.param.u64 %c, [counter];
  ld.param.u64 %h, [handle];
  ld.param.u64 %t, [trips];
  cvta.to.global.u64 %c, %c;
  mov.u64 %n, 0;
  st.global.u64 [%c], %n;
  setp.ne.u64 %more, %t, 0;
  selp.u32 %v, 1, 0, %more;
  { .param .b64 a; .param .b32 b;
    st.param.b64 [a], %h;
    st.param.b32 [b], %v;
    call.uni cudaGraphSetConditional, (a, b); }
  ret;
}

.visible .entry heron_count(.param .u64 counter, .param .u64 handle, .param .u64 trips)
{
  .reg .b64 %c, %h, %n, %t;
  .reg .b32 %v;
  .reg .pred %more;
  ld.param.u64 %c, [counter];
  ld.param.u64 %h, [handle];
  ld.param.u64 %t, [trips];
  cvta.to.global.u64 %c, %c;
  ld.global.u64 %n, [%c];
  add.u64 %n, %n, 1;
  st.global.u64 [%c], %n;
  setp.lt.u64 %more, %n, %t;
  selp.u32 %v, 1, 0, %more;
  { .param .b64 a; .param .b32 b;
    st.param.b64 [a], %h;
    st.param.b32 [b], %v;
    call.uni cudaGraphSetConditional, (a, b); }
  ret;
}

.visible .entry heron_case(.param .u64 selector, .param .u64 handle, .param .u64 case, .param .u64 count,
                           .param .u64 by_predicate)
{
  .reg .b64 %s, %h, %w, %n, %last, %k;
  .reg .b32 %v, %i;
  .reg .pred %p, %out, %is;
  ld.param.u64 %s, [selector];
  ld.param.u64 %h, [handle];
  ld.param.u64 %w, [case];
  ld.param.u64 %n, [count];
  ld.param.u64 %k, [by_predicate];
  cvta.to.global.u64 %s, %s;
  sub.u64 %last, %n, 1;
  setp.ne.u64 %p, %k, 0;
  @%p bra BY_PREDICATE;
  ld.global.u32 %i, [%s];
  cvt.u64.u32 %s, %i;
  setp.ge.u64 %out, %s, %n;
  selp.u64 %s, %last, %s, %out;
  bra DECIDED;
BY_PREDICATE:
  ld.global.u8 %i, [%s];
  setp.eq.u32 %out, %i, 0;
  selp.u64 %s, 1, 0, %out;
DECIDED:
  setp.eq.u64 %is, %s, %w;
  selp.u32 %v, 1, 0, %is;
  { .param .b64 a; .param .b32 b;
    st.param.b64 [a], %h;
    st.param.b32 [b], %v;
    call.uni cudaGraphSetConditional, (a, b); }
  ret;
}
"""
)

#: heron_sweep(from, count, out): reads 16 bytes `count` times, so that caches hold those and nothing that must be
#: written back; what it makes of them goes to `out` if it happens to be one number, so that no compiler drops the reads
SWEEP = (
    _HEAD
    + """
.visible .entry heron_sweep(.param .u64 from, .param .u64 count, .param .u64 out)
{
  .reg .b64 %f, %n, %o, %i, %step, %a, %x, %y, %all;
  .reg .b32 %t, %b, %w, %g;
  .reg .pred %end, %hit;
  ld.param.u64 %f, [from];
  ld.param.u64 %n, [count];
  ld.param.u64 %o, [out];
  cvta.to.global.u64 %f, %f;
  cvta.to.global.u64 %o, %o;
  mov.u32 %t, %tid.x;
  mov.u32 %b, %ctaid.x;
  mov.u32 %w, %ntid.x;
  mov.u32 %g, %nctaid.x;
  cvt.u64.u32 %i, %t;
  mad.wide.u32 %i, %b, %w, %i;
  mul.wide.u32 %step, %w, %g;
  mov.u64 %all, 0;
NEXT:
  setp.ge.u64 %end, %i, %n;
  @%end bra DONE;
  shl.b64 %a, %i, 4;
  add.u64 %a, %a, %f;
  ld.global.v2.u64 {%x, %y}, [%a];
  add.u64 %all, %all, %x;
  xor.b64 %all, %all, %y;
  add.u64 %i, %i, %step;
  bra NEXT;
DONE:
  setp.eq.u64 %hit, %all, 0x123456789abcdef;
  @%hit st.global.u64 [%o], %all;
  ret;
}
"""
)
