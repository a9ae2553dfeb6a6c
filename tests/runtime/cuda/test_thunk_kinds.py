"""Every kind of thunk that a program for a GPU can hold runs on the CUDA runtime, and every call of a library is bound."""

from __future__ import annotations

from typing import Any, get_args

import pytest

import heron
from heron import targets
from heron.backends.compiler import Compilation
from heron.buffers.assignment import Slice
from heron.hlo.ir.types import C64
from heron.options import Options
from heron.runtime.cuda.libraries.cublas import CuBlas
from heron.runtime.cuda.libraries.cublaslt import CublasLt
from heron.runtime.cuda.libraries.cudnn import CuDnn
from heron.runtime.cuda.libraries.cufft import CuFft
from heron.runtime.cuda.libraries.cusolver import CuSolver
from heron.runtime.cuda.libraries.recording import Recording
from heron.runtime.cuda.library_calls import Calls
from heron.runtime.cuda.plan import plan
from heron.runtime.thunks import (
    CollectiveThunk,
    ConditionalThunk,
    ConvolutionThunk,
    CopiesThunk,
    CopyThunk,
    DeviceNumberThunk,
    FftThunk,
    GemmThunk,
    HostThunk,
    KernelThunk,
    LapackThunk,
    LibraryThunk,
    RandomStateThunk,
    RowBlocksThunk,
    RowCopiesThunk,
    Thunk,
    WhileThunk,
    walk,
)
from heron.trace import Trace
from tests.support import NAMES, program

#: how the CUDA runtime does a kind of thunk; kinds that only programs for CPUs have
SUPPORT = {
    KernelThunk: "a node of a graph",
    CopyThunk: "a node of a graph",
    RandomStateThunk: "a node of a graph",
    LibraryThunk: "captured into a graph",
    WhileThunk: "a conditional node, or driven by the host",
    ConditionalThunk: "conditional nodes, or driven by the host",
    HostThunk: "a step of the host's between graphs",
    DeviceNumberThunk: "a node of a graph",
    CollectiveThunk: "calls of NCCL captured into a graph; a step of the host's where it reads sizes",
    GemmThunk: "",
    LapackThunk: "",
    RowBlocksThunk: "",
    ConvolutionThunk: "",
    FftThunk: "",
    CopiesThunk: "",
    RowCopiesThunk: "",
}
OPTIONS = {
    "as it is": Options(),
    "libraries": Options(triton="off"),
    "all libraries": Options(triton="off", math="fast"),
    "no libraries": Options(triton="off", libraries="none"),
}
#: its layers call what those of the smaller one do
_LARGE = "gpt2_12l_train_step"


def propose(*arguments: Any) -> None:
    """One kernel for a product."""
    arguments[9]._obj.value = 1


def open_recording(name: str) -> Any:
    functions = Recording(name, answers={"cublasLtMatmulAlgoGetHeuristic": propose})
    if name == "cublaslt":
        return CublasLt(lambda stream, size: 0xF000, functions)
    kind = {"cublas": CuBlas, "cudnn": CuDnn, "cufft": CuFft, "cusolver": CuSolver}[name]
    more = {} if name in ("cublas", "cudnn") else {"blas": Recording("cublas")}
    return kind(lambda stream, size: 0xF000, functions, Recording("cuda"), **more)


def test_the_table_has_every_kind() -> None:
    assert set(SUPPORT) == set(get_args(Thunk))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_real_programs(options: Options) -> None:
    libraries: dict[str, Any] = {}
    for name in (n for n in NAMES if n != _LARGE):
        module = heron.parse(program(name, platform="cuda").read_text())
        thunks = Compilation(module, targets.get("sm_90"), options, Trace()).lowered[0]
        assert plan(thunks, {})
        for t in walk(thunks):
            assert SUPPORT[type(t)], f"{name}: nothing on a device does {t}"
            assert not isinstance(t, HostThunk), f"{name}: {t.function} is left to the host"
            if isinstance(t, LibraryThunk):
                found = libraries.get(t.call.library) or open_recording(t.call.library)
                libraries[t.call.library] = found
                found.call(0, range(1, len(t.args) + 1), t.call)


class _Device:
    name = "a device"

    class driver:  # noqa: N801
        library = None


def test_what_only_cpus_have_is_refused() -> None:
    thunk = FftThunk(Slice(0, 0, 64), Slice(1, 0, 64), "FFT", (8,), (8,), C64, "fft.1")
    with pytest.raises(heron.HeronError, match="RUN048") as refused:
        Calls(_Device()).of(thunk)  # type: ignore[arg-type]
    assert "fft" in refused.value.what and refused.value.where == "fft.1"
