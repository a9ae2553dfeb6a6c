"""Custom calls: functions of the user's in Python, handlers of XLA's FFI, and routines of linear algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.calls import lapack
from heron.backends.calls.host import call, memory_order
from heron.backends.calls.radix_sort import radix_sort as sort
from heron.backends.calls.scan import single_scan
from heron.errors import HeronError
from heron.hlo.calls import radix_sort, scan, solvers
from heron.hlo.calls.ffi_attributes import read_attributes
from heron.hlo.calls.markers import BORDERS
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.runtime.host import ffi
from heron.runtime.host.callbacks import BufferCallback, Callback, find
from heron.runtime.host.evaluated import Evaluated
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

#: routines that the evaluator's own code, LAPACK's and NumPy's, computes on the host: no library here has them, and a
#: call takes long beside the way there. Nothing else goes to the evaluator
_BY_MEANING = frozenset(
    (
        *("csrlsvqr", "gees", "geev", "gehrd", "geqp3", "gtsv", "hetrd", "ormqr", "syrk", "sytrd", "unmqr"),
        *("cuhybrid_eig_comp", "cuhybrid_eig_real", "cuhybrid_geqp3", "cusparse_gtsv2_ffi"),
        *("cu_cholesky_update_ffi", "cu_threefry2x32_ffi"),
        *("cu_tridiagonal_solve_perturbed", "tridiagonal_solve_perturbed_ffi"),
    )
)
_SPARSE = "sizes and transposes are in cuSPARSE's descriptor; jax_bcoo_cusparse_lowering=False writes it as HLO"
#: what JAX's programs for CUDA may call and nobody here computes, by how the target begins
_REFUSED = {
    "triton_kernel_call": "its kernel is machine code that Triton made for one GPU; heron compiles what is HLO",
    "mosaic_gpu": "its kernel is code of Mosaic's; heron compiles what is HLO",
    "__cudnn$fusion": "cuDNN alone knows what that fusion computes",
    "__cudnn$blockScaledDot": "scales of blocks are no part of heron's products; a scaled-dot is",
    "cudnn_rnn": "the layout of cuDNN's weights is its own secret; a scan over the cells is HLO",
    "cusparse_csr": _SPARSE,
    "cusparse_coo": _SPARSE,
    "xla_buffer_python_": "such a function takes memory of a GPU; jax.pure_callback takes arrays",
}


def custom_call(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """By the name of its target. Raises GEN011 for a target not known."""
    target = i.custom_call_target
    if solvers.calls_python(i):
        return _callback(lowering, i)
    if target == solvers.PIVOTS and lowering.target.kind == "gpu":
        return lowering.alone(i)
    if target == radix_sort.TARGET:
        return sort(lowering, i)
    if target == scan.TARGET:
        return single_scan(lowering, i)
    if target in BORDERS:
        shapes = f"{', '.join(str(o.shape.bare) for o in i.operands)} to {i.shape.bare}"
        raise HeronError(
            "GEN011",
            f"'{target}' parts values among several devices, and heron has no partitioner",
            where=str(i),
            why=f"its shapes change from {shapes}; on one device both are the whole value",
            hint="`heron eval --devices N` runs such a program, or compile what XLA's partitioner made of it",
        )
    if lapack.knows(target):
        return lapack.custom_call(lowering, i)
    if (address := ffi.find(target)) is not None:
        return _handler(lowering, i, address)
    for begin, why in _REFUSED.items():
        if target.startswith(begin):
            raise HeronError("GEN011", f"unsupported custom call target '{target}'", where=str(i), why=why)
    if solvers.routine(target) in _BY_MEANING:
        return _evaluated(lowering, i)
    return lapack.custom_call(lowering, i)


def _evaluated(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """By what the call means, on the host: no library here has it."""
    c = Computation("main")
    operands = [c.add_parameter(n, o.shape.bare) for n, o in enumerate(i.operands)]
    c.root = c.attach(i.clone(operands))
    c.root.attrs.pop("output_to_operand_aliasing", None)
    module = Module("call")
    module.add_computation(c, entry=True)
    routine = Evaluated(i.custom_call_target, str(module), sum(o.shape.is_array for o in i.operands))
    return call(lowering, i, routine, "evaluator")


def _handler(lowering: Lowering, i: Instruction, address: int) -> list[Thunk]:
    """A handler gets the addresses of arrays, which must lie in the layouts the call asks for. Raises GEN018 where one
    does not."""
    constraints: tuple[Shape, ...] = i.attrs.get("operand_layout_constraints") or ()
    for n, (o, stated) in enumerate(zip(i.operands, constraints, strict=False)):
        for index, leaf in stated.leaves():
            lies = o.shape.at(index)
            if leaf.is_array and _places(lies) != _places(leaf):
                why = f"operand {n} is {lies}, and the call wants {leaf}"
                raise HeronError("GEN018", f"'{i.name}' cannot read '{o.name}' in its layout", where=str(i), why=why)
    leaves = [s for o in (*i.operands, i) for _, s in o.shape.leaves() if s.is_array]
    operands = sum(1 for o in i.operands for _, s in o.shape.leaves() if s.is_array)
    attributes = read_attributes(str(i.extras.get("backend_config", "")))
    numbers = [s.element_type.proto_id for s in leaves]
    return call(lowering, i, ffi.Handler(i.custom_call_target, address, numbers, operands, attributes), "ffi")


def _places(shape: Shape) -> list[int]:
    """The dimensions of more than one element, slowest first."""
    return [d for d in memory_order(shape) if shape.dims[d] != 1]


def _callback(lowering: Lowering, i: Instruction) -> list[Thunk]:
    number = solvers.options(i).get("index")
    if not isinstance(number, int):
        raise HeronError("GEN011", "a call of a Python function does not say which", where=str(i))
    filed = find(number)
    tokens = any(s.element_type.name == "token" for o in i.operands for _, s in o.shape.leaves())
    operands = sum(1 for o in i.operands for _, s in o.shape.leaves() if s.is_array)
    on_buffers = i.custom_call_target == solvers.PYTHON_ON_BUFFERS
    routine = BufferCallback(filed, operands) if on_buffers else Callback(filed, operands, tokens)
    return call(lowering, i, routine, "python")
