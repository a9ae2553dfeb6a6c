"""erf: a polynomial up to 1, 1 - erfc beyond."""

from __future__ import annotations

from heron.codegen.llvm.inline.builder import Body, Value, inline
from heron.codegen.llvm.inline.exp import expm1_reduced, reduce

#: erf(x)/x - 1 in x², |x| <= 1; error 2^-35 and 2^-69
ERF = {
    "f32": (0.12837916612625122, -0.37612637877464294, 0.11283782869577408, -0.02686544507741928,
            0.005221074912697077, -0.0008484712452627718, 0.00011270548566244543, -9.680136827228125e-06),
    "f64": (0.1283791670955126, -0.37612638903183754, 0.1128379167095512, -0.026866170645129868,
            0.005223977625423611, -0.0008548327021956025, 0.000120553329038126, -1.4925647594497853e-05,
            1.646204598055763e-06, -1.636464955146516e-07, 1.479246964452013e-08, -1.216496861716556e-09,
            8.710465336650472e-11, -4.23312952867958e-12),
}  # fmt: skip
#: -log(erfc x) on [1, 4]; absolute error of erfc 2^-35
ERFC_LOG_F32 = (
    -0.00019900138431694359, 1.129634141921997, 0.6330980658531189, 0.10856793820858002, -0.025320563465356827,
    0.004257566761225462, -0.0004566645948216319, 2.4169239623006433e-05, -1.7232771654107637e-07,
)  # fmt: skip
#: e^(x²)·erfc(x) in t = 2/(2+x), x in [1, 6]; absolute error of erfc 2^-66
ERFC_F64 = (
    -2.086238766281505e-06, 0.2821514812285888, 0.28139032480793863, 0.25210636360591443, 0.15002239488133895,
    0.17427118880720238, -0.21751372731903232, 0.25408793685093806, -0.19753933820932232, -0.47901834015547834,
    1.297156166513237, -1.3826652894111515, 0.8082846002670702, -0.258597207764852, 0.03586574932816712,
)  # fmt: skip
#: erf rounds to 1 from here
ONE = {"f32": 4.0, "f64": 6.0}


@inline("erf")
def erf(f: Body, x: Value) -> Value:
    a = x.abs()
    bounded = f.at_most(a, ONE[x.type])
    z = bounded * bounded
    near = f.fma(a, f.poly(z, ERF[x.type]), a)
    n, r = reduce(f, -(f.poly(bounded, ERFC_LOG_F32) if x.type == "f32" else z))
    complement = (expm1_reduced(f, r) + 1.0) * f.pow2(n, x.type)
    if x.type == "f64":
        complement = complement * f.poly(2.0 / (bounded + 2.0), ERFC_F64)
    return f.select(a <= 1.0, near, 1.0 - complement).copysign(x)
