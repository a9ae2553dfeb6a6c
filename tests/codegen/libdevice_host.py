"""NVIDIA's libdevice on this machine: each function's own bitcode, with the instructions of a GPU written for the host.

What is measured is libdevice's arithmetic. Instructions that a GPU only approximates (``ex2.approx``, ``lg2.approx``,
``rcp.approx``, ``rsqrt.approx``, ``div.approx``) are correctly rounded here; denormals are kept.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence

import numpy as np

from heron.codegen.llvm import libdevice
from heron.codegen.llvm.jit import Jit
from heron.codegen.llvm.optimize import binding

#: HLO's name of a function -> libdevice's
NAMES = {
    "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atan2": "atan2",
    "atanh": "atanh",
    "cbrt": "cbrt", "cosh": "cosh", "cosine": "cos", "erf": "erf", "exponential": "exp",
    "exponential-minus-one": "expm1", "log": "log", "log-plus-one": "log1p", "power": "pow", "rsqrt": "rsqrt",
    "sine": "sin", "sinh": "sinh", "tan": "tan", "tanh": "tanh",
}  # fmt: skip

#: an NVVM intrinsic without its type and rounding -> its value as LLVM instructions on %a, %b, %c of type T
_BODIES = {
    "fma.rn": "%r = call T @llvm.fma.S(T %a, T %b, T %c)",
    "add.rn": "%r = fadd T %a, %b",
    "mul.rn": "%r = fmul T %a, %b",
    "div.rn": "%r = fdiv T %a, %b",
    "div.approx": "%r = fdiv T %a, %b",
    "fabs": "%r = call T @llvm.fabs.S(T %a)",
    "floor": "%r = call T @llvm.floor.S(T %a)",
    "trunc": "%r = call T @llvm.trunc.S(T %a)",
    "round": "%r = call T @llvm.roundeven.S(T %a)",
    "ex2.approx": "%r = call T @llvm.exp2.S(T %a)",
    "lg2.approx": "%r = call T @llvm.log2.S(T %a)",
    "rcp.approx": "%r = fdiv T 1.0, %a",
    "rsqrt.approx": "%q = call T @llvm.sqrt.S(T %a)\n  %r = fdiv T 1.0, %q",
    "saturate": "%q = call T @llvm.maxnum.S(T %a, T 0.0)\n  %r = call T @llvm.minnum.S(T %q, T 1.0)",
}
_OTHERS = """
define internal i32 @host.d2i.lo(double %a) { %w = bitcast double %a to i64  %r = trunc i64 %w to i32  ret i32 %r }
define internal i32 @host.d2i.hi(double %a) {
  %w = bitcast double %a to i64  %h = lshr i64 %w, 32  %r = trunc i64 %h to i32  ret i32 %r }
define internal double @host.lohi.i2d(i32 %a, i32 %b) {
  %l = zext i32 %a to i64  %h = zext i32 %b to i64  %s = shl i64 %h, 32  %w = or i64 %s, %l
  %r = bitcast i64 %w to double  ret double %r }
define internal i32 @host.f2i.rn(float %a) {
  %q = call float @llvm.roundeven.f32(float %a)  %r = call i32 @llvm.fptosi.sat.i32.f32(float %q)  ret i32 %r }
define internal i32 @host.f2i.rz(float %a) { %r = call i32 @llvm.fptosi.sat.i32.f32(float %a)  ret i32 %r }
define internal i32 @host.d2i.rn(double %a) {
  %q = call double @llvm.roundeven.f64(double %a)  %r = call i32 @llvm.fptosi.sat.i32.f64(double %q)  ret i32 %r }
define internal float @host.toward.zero(double %d) {
  %f = fptrunc double %d to float  %w = fpext float %f to double
  %aw = call double @llvm.fabs.f64(double %w)  %ad = call double @llvm.fabs.f64(double %d)
  %far = fcmp ogt double %aw, %ad  %i = bitcast float %f to i32  %j = sub i32 %i, 1  %g = bitcast i32 %j to float
  %r = select i1 %far, float %g, float %f  ret float %r }
define internal float @host.add.rz.f(float %a, float %b) {
  %x = fpext float %a to double  %y = fpext float %b to double  %s = fadd double %x, %y
  %r = call float @host.toward.zero(double %s)  ret float %r }
define internal float @host.fma.rm.f(float %a, float %b, float %c) {
  %x = fpext float %a to double  %y = fpext float %b to double  %z = fpext float %c to double
  %p = fmul double %x, %y  %d = fadd double %p, %z  %f = fptrunc double %d to float  %w = fpext float %f to double
  %over = fcmp ogt double %w, %d  %i = bitcast float %f to i32  %up = icmp slt i32 %i, 0
  %k = select i1 %up, i32 1, i32 -1  %j = add i32 %i, %k  %g = bitcast i32 %j to float
  %r = select i1 %over, float %g, float %f  ret float %r }
define internal {i32, i32} @host.mad32(i32 %a, i32 %b, i32 %c) {
  %x = zext i32 %a to i64  %y = zext i32 %b to i64  %z = zext i32 %c to i64  %p = mul i64 %x, %y  %s = add i64 %p, %z
  %l = trunc i64 %s to i32  %t = lshr i64 %s, 32  %h = trunc i64 %t to i32
  %q = insertvalue {i32, i32} poison, i32 %l, 0  %r = insertvalue {i32, i32} %q, i32 %h, 1  ret {i32, i32} %r }
define internal {i64, i64} @host.halves(i128 %s) {
  %l = trunc i128 %s to i64  %t = lshr i128 %s, 64  %h = trunc i128 %t to i64
  %q = insertvalue {i64, i64} poison, i64 %l, 0  %r = insertvalue {i64, i64} %q, i64 %h, 1  ret {i64, i64} %r }
define internal {i64, i64} @host.mad64(i64 %a, i64 %b, i64 %c) {
  %x = zext i64 %a to i128  %y = zext i64 %b to i128  %z = zext i64 %c to i128
  %p = mul i128 %x, %y  %s = add i128 %p, %z  %r = call {i64, i64} @host.halves(i128 %s)  ret {i64, i64} %r }
define internal {i64, i64} @host.mul64(i64 %a, i64 %b) {
  %r = call {i64, i64} @host.mad64(i64 %a, i64 %b, i64 0)  ret {i64, i64} %r }
define internal i128 @host.whole(i64 %a, i64 %b) {
  %w = zext i64 %a to i128  %x = zext i64 %b to i128  %s = shl i128 %x, 64  %r = or i128 %w, %s  ret i128 %r }
define internal {i64, i64} @host.sub128(i64 %a, i64 %b, i64 %c, i64 %d) {
  %m = call i128 @host.whole(i64 %a, i64 %b)  %n = call i128 @host.whole(i64 %c, i64 %d)  %s = sub i128 %m, %n
  %r = call {i64, i64} @host.halves(i128 %s)  ret {i64, i64} %r }
define internal {i64, i64} @host.add128(i64 %a, i64 %b, i64 %c, i64 %d) {
  %m = call i128 @host.whole(i64 %a, i64 %b)  %n = call i128 @host.whole(i64 %c, i64 %d)  %s = add i128 %m, %n
  %r = call {i64, i64} @host.halves(i128 %s)  ret {i64, i64} %r }
define internal double @host.select(double %a, double %b, double %c, double %d) {
  %t = fcmp ueq double %a, %b  %r = select i1 %t, double %c, double %d  ret double %r }
define internal float @host.rcp32(float %a) { %r = fdiv float 1.0, %a  ret float %r }
define internal float @host.sub32(float %a, float %b) { %r = fsub float %a, %b  ret float %r }
define internal double @host.rsqrt64(double %a) {
  %q = call double @llvm.sqrt.f64(double %a)  %r = fdiv double 1.0, %q  ret double %r }
declare i32 @llvm.fptosi.sat.i32.f32(float)
declare i32 @llvm.fptosi.sat.i32.f64(double)
"""
#: what an asm string contains -> the function that does the same; the first that fits
_ASSEMBLY = (
    ("sub.cc.u32", "sub128"), ("addc.cc.u32", "add128"), ("{clo,chi}", "mad64"), ("mul.hi.u32", "mul64"),
    ("mad.lo.cc.u32", "mad32"),
    ("setp.equ.f64", "select"), ("rcp.approx.ftz.f32", "rcp32"), ("rsqrt.approx.ftz.f64", "rsqrt64"),
    ("sub.rn", "sub32"),
)  # fmt: skip
_INTRINSIC = re.compile(r"@llvm\.nvvm\.([\w.]+?)(?:\.ftz)?(?:\.(f|d|f32|f64))?\(")


def function(name: str, bits: int) -> str:
    """libdevice's name of an HLO function of f32 or f64."""
    return f"__nv_{NAMES[name]}" + ("f" if bits == 32 else "")


def _host_text(name: str) -> str:
    """The function and what it calls, for this machine."""
    text = str(binding().parse_bitcode(libdevice.bitcode(name)))
    text = re.sub(r"^(target |declare .*@(llvm\.nvvm\.|__nvvm_reflect)).*$", "", text, flags=re.M)
    text = re.sub(r"call i32 @__nvvm_reflect\([^)]*\)( #\d+)?", "add i32 0, 0", text)
    text = re.sub(r'asm (?:sideeffect )?"((?:[^"])*)", "[^"]*"\(', _assembly, text)
    found: dict[str, str] = {}

    def host(match: re.Match[str]) -> str:
        kind, type_ = match[1], match[2] or ""
        if kind not in _BODIES:
            return f"@host.{kind}{'.' + type_ if type_ else ''}("
        letter = "d" if type_ in ("d", "f64") else "f"
        found[f"host.{kind}.{letter}"] = _definition(kind, letter)
        return f"@host.{kind}.{letter}("

    text = _INTRINSIC.sub(host, text)
    return "\n".join([text, *found.values(), _OTHERS])


def _assembly(match: re.Match[str]) -> str:
    name = next(name for mark, name in _ASSEMBLY if mark in match[1])
    return f"@host.{name}("


def _definition(kind: str, letter: str) -> str:
    type_, suffix = ("double", "f64") if letter == "d" else ("float", "f32")
    body = _BODIES[kind].replace("T ", f"{type_} ").replace(".S(", f".{suffix}(")
    operands = [v for v in ("%a", "%b", "%c") if v in body]
    signature = ", ".join(f"{type_} {v}" for v in operands)
    return f"define internal {type_} @host.{kind}.{letter}({signature}) {{\n  {body}\n  ret {type_} %r\n}}"


def run(name: str, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The values of an HLO function by libdevice."""
    bits = 8 * arrays[0].dtype.itemsize
    callee, type_ = function(name, bits), "float" if bits == 32 else "double"
    inputs = "".join(f", ptr %p{n}" for n in range(len(arrays)))
    loads = "".join(
        f"  %q{n} = getelementptr {type_}, ptr %p{n}, i64 %i\n  %v{n} = load {type_}, ptr %q{n}\n"
        for n in range(len(arrays))
    )
    values = ", ".join(f"{type_} %v{n}" for n in range(len(arrays)))
    loop = f"""
define void @sweep(ptr %out, i64 %n{inputs}) {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
{loads}  %r = call {type_} @{callee}({values})
  %o = getelementptr {type_}, ptr %out, i64 %i
  store {type_} %r, ptr %o
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %done
done:
  ret void
}}
"""
    text = _host_text(callee) + loop
    for intrinsic, operands in (("fma", 3), ("fabs", 1), ("floor", 1), ("trunc", 1), ("roundeven", 1), ("exp2", 1),
                                ("log2", 1), ("sqrt", 1), ("maxnum", 2), ("minnum", 2)):  # fmt: skip
        for suffix, t in (("f32", "float"), ("f64", "double")):
            line = f"declare {t} @llvm.{intrinsic}.{suffix}({', '.join([t] * operands)})"
            if f"@llvm.{intrinsic}.{suffix}(" not in "".join(re.findall(r"^declare .*$", text, re.M)):
                text += line + "\n"
    code = Jit(level=1).add(text, exports=["sweep"])
    out = np.empty_like(arrays[0])
    types = [ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * len(arrays)]
    contiguous = [np.ascontiguousarray(a) for a in arrays]
    ctypes.CFUNCTYPE(None, *types)(code.addresses["sweep"])(
        out.ctypes.data, out.size, *[a.ctypes.data for a in contiguous]
    )
    return out
