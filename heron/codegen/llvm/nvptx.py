"""LLVM text -> PTX.

The NVPTX backend ends the process on IR it cannot select, so `check` refuses such IR first, before and after the
optimiser. libdevice functions the text calls are linked in, one small bitcode each, and made internal.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from heron.codegen.llvm import libdevice
from heron.codegen.llvm.optimize import LOCK, Clock, binding, binding_for_gpus, parse, run_pipeline
from heron.errors import HeronError
from heron.records import dataclass
from heron.runtime.object_code import Timing

TRIPLE = "nvptx64-nvidia-cuda"
#: oldest PTX version that has everything heron emits for an architecture; older drivers accept it
PTX_VERSIONS = {70: 70, 75: 70, 80: 70, 86: 71, 87: 74, 89: 78, 90: 78, 100: 86, 101: 86, 103: 88, 120: 87, 121: 88}


@dataclass(frozen=True, slots=True)
class Ptx:
    """PTX text and what making it took."""

    text: str
    sm: str
    timing: Timing


@cache
def machine(sm: str, level: int, features: str) -> Any:
    """The NVPTX target machine of an architecture such as ``sm_90`` or ``sm_90a``. Raises LLVM022 for another name."""
    match = re.fullmatch(r"sm_(\d+)[af]?", sm)
    if match is None or int(match.group(1)) < 70:
        raise HeronError("LLVM022", f"unknown GPU architecture '{sm}'", hint="sm_70 … sm_120, such as sm_90")
    version = PTX_VERSIONS.get(int(match.group(1)))
    if not features and version is not None and not sm.endswith(("a", "f")):
        features = f"+ptx{version}"
    target = binding_for_gpus().Target.from_triple(TRIPLE)
    # 3 would number values anew after addresses were split: it takes longer and makes no kernel's code better
    return target.create_target_machine(cpu=sm, features=features, opt=min(level, 2))


def to_ptx(text: str, sm: str = "sm_90", *, level: int = 3, features: str = "", flush_denormals: bool = False) -> str:
    """PTX of LLVM text.

    Raises:
        HeronError: LLVM011 bad IR, LLVM020 no libdevice, LLVM022 unknown `sm`, LLVM023 IR the backend cannot select.
    """
    return compile_ptx(text, sm, level=level, features=features, flush_denormals=flush_denormals).text


def compile_ptx(
    text: str,
    sm: str = "sm_90",
    *,
    level: int = 3,
    features: str = "",
    flush_denormals: bool = False,
    now: Callable[[], float] = time.perf_counter,
) -> Ptx:
    """`to_ptx` with timings, by the clock `now`."""
    from heron.codegen.llvm.legal import check, check_optimised

    check(text)
    with LOCK:
        clock = Clock(now)
        target = machine(sm, level, features)
        module = parse(text, TRIPLE, str(target.target_data))
        _link_libdevice(module, text, flush_denormals)
        parse_s = clock.lap()
        run_pipeline(module, target, level)
        opt_s = clock.lap()
        check_optimised(module)
        return Ptx(target.emit_assembly(module), sm, Timing(parse_s, opt_s, clock.lap()))


def _link_libdevice(module: Any, text: str, flush_denormals: bool) -> None:
    names = sorted(set(re.findall(r"call [^@\n]*@(__nv_\w+)\(", text)))
    if not names:
        return
    llvm = binding()
    triple, layout = module.triple, module.data_layout
    for name in names:
        other = llvm.parse_bitcode(libdevice.bitcode(name))
        other.triple, other.data_layout = triple, layout
        module.link_in(other)
        module.get_function(name).linkage = "internal"
    reflect = llvm.parse_assembly(
        f'!llvm.module.flags = !{{!0}}\n!0 = !{{i32 4, !"nvvm-reflect-ftz", i32 {int(flush_denormals)}}}\n'
    )
    reflect.triple, reflect.data_layout = triple, layout
    module.link_in(reflect)
