"""One small program for each op, in HLO text, for docs and tests.

Operands written with their types become parameters of the program. ``T`` stands for any element type, ``R`` for that of
its real part, ``C`` for that of complex numbers made of it, ``U`` for unsigned integers of its width::

    T[2,3] transpose(T[3,2] x), dimensions={1,0}
"""

from __future__ import annotations

import re

from heron.errors import HeronError
from heron.hlo.ir import types
from heron.hlo.ir.op import get
from heron.hlo.ir.types import ElementType
from heron.hlo.text import parse

_COMPUTATIONS = {
    "sum": "a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = T[] add(a, b)",
    "less": "a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT",
    "at_least": "a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=GE",
    "twice": "a = T[4] parameter(0)\n ROOT r = T[4] add(a, a)",
    "same": "ROOT a = T[4] parameter(0)",
    "twice_scalar": "a = T[] parameter(0)\n ROOT r = T[] add(a, a)",
    "below_3": "a = s32[] parameter(0)\n b = s32[] constant(3)\n ROOT r = pred[] compare(a, b), direction=LT",
    "next": "a = s32[] parameter(0)\n b = s32[] constant(1)\n ROOT r = s32[] add(a, b)",
    "running_sum": "a = T[] parameter(0)\n b = T[] parameter(1)\n c = T[] add(a, b)\n ROOT r = (T[], T[]) tuple(c, c)",
}

_ELEMENTWISE = "T[4] {0}(T[4] x)"
_PAIRS = "T[4] {0}(T[4] x, T[4] y)"
_GATHER = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}"
_SCATTER = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,"
    " to_apply=sum"
)
_MATRICES = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"

#: by op; ops that are in no line of their own here are elementwise, of one or of two operands
_LINES: dict[str, str] = {
    # leaves, tuples, copies
    "parameter": "T[4] parameter(0)",
    "constant": "T[] constant(1)",
    "iota": "T[2,3] iota(), iota_dimension=1",
    "tuple": "(T[4], s32[]) tuple(T[4] x, s32[] n)",
    "get-tuple-element": "T[4] get-tuple-element((T[4], s32[]) t), index=0",
    "copy": "T[2,3]{0,1} copy(T[2,3] x)",
    "copy-done": "s = (T[4], T[4], u32[]) copy-start(T[4] x)\nT[4] copy-done(s)",
    # comparison and choice
    "compare": "pred[4] compare(T[4] x, T[4] y), direction=EQ",
    "select": "T[4] select(pred[4] p, T[4] x, T[4] y)",
    "clamp": "T[4] clamp(T[] low, T[4] x, T[] high)",
    "is-finite": "pred[4] is-finite(T[4] x)",
    "abs": "R[4] abs(T[4] x)",
    "complex": "C[4] complex(T[4] x, T[4] y)",
    "real": "R[4] real(T[4] x)",
    "imag": "R[4] imag(T[4] x)",
    # types
    "convert": "f64[4] convert(T[4] x)",
    "bitcast": "T[6]{0} bitcast(T[2,3]{1,0} x)",
    "bitcast-convert": "U[4] bitcast-convert(T[4] x)",
    "reduce-precision": "T[4] reduce-precision(T[4] x), exponent_bits=5, mantissa_bits=2",
    "stochastic-convert": "s8[4] stochastic-convert(T[4] x, U[4] random)",
    # movement
    "broadcast": "T[2,3] broadcast(T[3] x), dimensions={1}",
    "reshape": "T[3,2] reshape(T[2,3] x)",
    "transpose": "T[3,2] transpose(T[2,3] x), dimensions={1,0}",
    "reverse": "T[2,3] reverse(T[2,3] x), dimensions={1}",
    "concatenate": "T[2,5] concatenate(T[2,2] x, T[2,3] y), dimensions={1}",
    "pad": "T[9] pad(T[3] x, T[] value), padding=1_1_2",
    "slice": "T[2,2] slice(T[4,4] x), slice={[1:3], [0:4:2]}",
    "dynamic-slice": "T[2,2] dynamic-slice(T[4,4] x, s32[] i, s32[] j), dynamic_slice_sizes={2,2}",
    "dynamic-update-slice": "T[4,4] dynamic-update-slice(T[4,4] x, T[2,2] update, s32[] i, s32[] j)",
    "gather": f"T[2,3] gather(T[4,3] x, s32[2,1] indices), {_GATHER}",
    "scatter": f"T[4,3] scatter(T[4,3] x, s32[2,1] indices, T[2,3] updates), {_SCATTER}",
    "get-dimension-size": "s32[] get-dimension-size(T[4] x), dimensions={0}",
    "set-dimension-size": "T[<=4] set-dimension-size(T[4] x, s32[] n), dimensions={0}",
    "dynamic-reshape": "T[<=4,2] dynamic-reshape(T[8] x, s32[] n, s32[] m)",
    # control flow
    "call": "T[4] call(T[4] x), to_apply=twice",
    "while": "s32[] while(s32[] n), condition=below_3, body=next",
    "conditional": "T[4] conditional(s32[] n, T[4] x, T[4] y), branch_computations={twice, same}",
    "map": "T[4] map(T[4] x), dimensions={0}, to_apply=twice_scalar",
    "fusion": "T[4] fusion(T[4] x), kind=kLoop, calls=twice",
    # reduction
    "reduce": "T[2] reduce(T[2,3] x, T[] zero), dimensions={1}, to_apply=sum",
    "reduce-window": "T[4] reduce-window(T[4] x, T[] zero), window={size=3 pad=2_0}, to_apply=sum",
    "select-and-scatter": (
        "T[4] select-and-scatter(T[4] x, T[2] source, T[] zero), window={size=2 stride=2}, select=at_least, scatter=sum"
    ),
    "scan": (
        "(T[4], T[]) scan(T[4] x, T[] zero), dimensions={0}, num_carries=1, is_associative=false, to_apply=running_sum"
    ),
    "sort": "T[4] sort(T[4] x), dimensions={0}, to_apply=less",
    "topk": "(T[2], s32[2]) topk(T[4] x), k=2, largest=true",
    # products and libraries
    "dot": f"T[2,4] dot(T[2,3] x, T[3,4] y), {_MATRICES}",
    "ragged-dot": "T[4,5] ragged-dot(T[4,3] x, T[2,3,5] y, s32[2] sizes), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
    "scaled-dot": "f32[2,4] scaled-dot(f8e4m3fn[2,32] x, f8e4m3fn[4,32] y, f8e8m0fnu[2,1] xs, f8e8m0fnu[4,1] ys), "
    "lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    "convolution": "T[1,4,5] convolution(T[1,6,3] x, T[3,3,5] kernel), window={size=3}, dim_labels=b0f_0io->b0f",
    "fft": "T[8] fft(T[8] x), fft_type=FFT, fft_length={8}",
    "cholesky": "T[3,3] cholesky(T[3,3] x), lower=true",
    "triangular-solve": "T[3,2] triangular-solve(T[3,3] a, T[3,2] b), left_side=true, lower=true,"
    " transpose_a=NO_TRANSPOSE",
    "batch-norm-training": "(T[2,3], T[3], T[3]) batch-norm-training(T[2,3] x, T[3] scale, T[3] offset), epsilon=0.5,"
    " feature_index=1",
    "batch-norm-inference": "T[2,3] batch-norm-inference(T[2,3] x, T[3] scale, T[3] offset, T[3] mean, T[3] variance),"
    " epsilon=0.5, feature_index=1",
    "batch-norm-grad": "(T[2,3], T[3], T[3]) batch-norm-grad(T[2,3] x, T[3] scale, T[3] mean, T[3] variance,"
    " T[2,3] grad), epsilon=0.5, feature_index=1",
    "rng": "T[4] rng(T[] low, T[] high), distribution=rng_uniform",
    "rng-bit-generator": "(u64[2], T[4]) rng-bit-generator(u64[2] state), algorithm=rng_three_fry",
    "rng-get-and-update-state": "u64[2] rng-get-and-update-state(), delta=1",
    "custom-call": '(f32[3,3]{0,1}, s32[]) custom-call(f32[3,3]{0,1} x), custom_call_target="lapack_spotrf_ffi",'
    " api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 76 : ui8}",
    # devices
    "all-gather": "T[4] all-gather(T[4] x), replica_groups={{0}}, dimensions={0}",
    "all-gather-done": "s = (T[4], T[4]) all-gather-start(T[4] x), replica_groups={{0}}, dimensions={0}\n"
    "T[4] all-gather-done(s)",
    "all-reduce": "T[4] all-reduce(T[4] x), replica_groups={{0}}, to_apply=sum",
    "all-reduce-done": "s = T[4] all-reduce-start(T[4] x), replica_groups={{0}}, to_apply=sum\nT[4] all-reduce-done(s)",
    "reduce-scatter": "T[4] reduce-scatter(T[4] x), replica_groups={{0}}, dimensions={0}, to_apply=sum",
    "all-to-all": "T[4] all-to-all(T[4] x), replica_groups={{0}}, dimensions={0}",
    "ragged-all-to-all": "T[4] ragged-all-to-all(T[4] x, T[4] output, s32[1] a, s32[1] b, s32[1] c, s32[1] d),"
    " replica_groups={{0}}",
    "collective-broadcast": "T[4] collective-broadcast(T[4] x), replica_groups={{0}}",
    "collective-permute": "T[4] collective-permute(T[4] x), source_target_pairs={{0,0}}",
    "collective-permute-done": "s = (T[4], T[4]) collective-permute-start(T[4] x), source_target_pairs={{0,0}}\n"
    "T[4] collective-permute-done(s)",
    "partition-id": "u32[] partition-id()",
    "replica-id": "u32[] replica-id()",
    # order and communication
    "after-all": "token[] after-all(token[] t)",
    "add-dependency": "T[4] add-dependency(T[4] x, token[] t)",
    "opt-barrier": "T[4] opt-barrier(T[4] x)",
    "domain": 'T[4] domain(T[4] x), domain={kind="sharding", entry={maximal device=0}, exit={replicated}}',
    "infeed": "(T[4], token[]) infeed(token[] t)",
    "outfeed": "token[] outfeed(T[4] x, token[] t), outfeed_shape=T[4]",
    "send-done": "s = (T[4], u32[], token[]) send(T[4] x, token[] t), channel_id=1\ntoken[] send-done(s), channel_id=1",
    "recv-done": "s = (T[4], u32[], token[]) recv(token[] t), channel_id=1\n(T[4], token[]) recv-done(s), channel_id=1",
    "async-done": "s = ((T[4]), T[4], u32[]) async-start(T[4] x), calls=twice\n"
    "u = ((T[4]), T[4], u32[]) async-update(s)\nT[4] async-done(u)",
}

#: an operand with its type: a tuple's one level deep
_TYPED = re.compile(r"(\([^()]*\)|\w+\[[^\]]*\](?:\{[^}]*\})?) (\w+)(?=[,)])")


def line(opcode: str) -> str:
    """The op's example, with ``T`` for the element type; its last line is the root. Raises HLO003 for an unknown op."""
    op = get(opcode)
    found = _LINES.get("async-done" if opcode == "async-update" else op.done or opcode)
    if found is not None:
        return found
    return (_PAIRS if op.max_operands == 2 else _ELEMENTWISE).replace("{0}", opcode)


def program(opcode: str, element_type: ElementType) -> str:
    """A module that uses the op, in HLO text. Not every op takes every type: `element_types` tells."""
    lines = line(opcode).split("\n")
    parameters: dict[str, str] = {}
    body: list[str] = []
    for text in lines:
        head, rest = _call(text)
        for kind, name in _TYPED.findall(rest):
            parameters[name] = kind
        body.append(head + _TYPED.sub(r"\2", rest))
    body[-1] = f"ROOT r = {body[-1]}"
    entry = [f"{name} = {kind} parameter({n})" for n, (name, kind) in enumerate(parameters.items())] + body
    called = [name for name in _COMPUTATIONS if re.search(rf"\b{name}\b", "\n".join(lines))]
    texts = [f"{name} {{\n {_COMPUTATIONS[name]}\n}}\n\n" for name in called]
    text = "HloModule example\n\n" + "".join(texts) + "ENTRY main {\n " + "\n ".join(entry) + "\n}\n"
    for letter, found in _types(element_type).items():
        text = re.sub(rf"\b{letter}(?=\[)", found, text)
    return text


def _types(t: ElementType) -> dict[str, str]:
    pairs = {types.F32: types.C64, types.F64: types.C128}
    width = types.PRED if t is types.PRED else types.find(f"u{t.bits}") or t
    return {"T": t.name, "R": t.component.name, "C": pairs.get(t, t).name, "U": width.name}


def element_types(opcode: str) -> list[ElementType]:
    """The element types with which the example is a valid program; none where it has no ``T``."""
    if not re.search(r"\bT\[", line(opcode)):
        return []
    found: list[ElementType] = []
    for t in types.ALL:
        try:
            parse(program(opcode, t), verify=True)
        except HeronError:
            continue
        found.append(t)
    return found


def usual_program(opcode: str) -> str:
    """The example as a program of f32, or the first of the types it takes."""
    found = element_types(opcode)
    return program(opcode, types.F32 if types.F32 in found or not found else found[0])


def _call(text: str) -> tuple[str, str]:
    """A line cut behind the opening parenthesis: result type and opcode, operands and attributes."""
    found = re.search(r" [a-z][a-z0-9-]*\(", text)
    assert found is not None, text
    return text[: found.end()], text[found.end() :]
