"""Slots of the C interface that JAX does not ask for, called as a framework would."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from heron.hlo.proto.schema import MESSAGES
from heron.pjrt.c_api import abi, errors, handles
from heron.pjrt.compile_options import CompileOptions
from tests.pjrt.test_bad_input import _args, _call

F32 = 11
ADD = b"HloModule add\nENTRY e {\n x = f32[2,3]{1,0} parameter(0)\n ROOT y = f32[2,3]{1,0} add(x, x)\n}"


@pytest.fixture(scope="module")
def client() -> Iterator[int]:
    made = _args("PJRT_Client_Create")
    _call("PJRT_Client_Create", made)
    yield made.client
    _call("PJRT_Client_Destroy", _args("PJRT_Client_Destroy", client=made.client))


def _buffer(client: int, array: np.ndarray) -> int:
    devices = _args("PJRT_Client_AddressableDevices", client=client)
    _call("PJRT_Client_AddressableDevices", devices)
    device = ctypes.c_uint64.from_address(devices.addressable_devices).value
    dims = (ctypes.c_int64 * array.ndim)(*array.shape)
    args = _args("PJRT_Client_BufferFromHostBuffer", client=client, data=array.ctypes.data, type=F32, device=device)
    args.dims, args.num_dims = ctypes.addressof(dims), array.ndim
    _call("PJRT_Client_BufferFromHostBuffer", args)
    return args.buffer


def _answer(asked: Any, field: str, kind: str, **values: Any) -> None:
    """Call back what a slot gave, once."""
    told = abi.struct(kind)()
    told.struct_size, told.callback_data = ctypes.sizeof(told), asked.callback_data
    for name, value in values.items():
        setattr(told, name, value)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(getattr(asked, field))(ctypes.addressof(told))


def _is_ready(event: int) -> bool:
    asked = _args("PJRT_Event_IsReady", event=event)
    _call("PJRT_Event_IsReady", asked)
    return bool(asked.is_ready)


def test_a_copy_to_an_address_that_comes_later(client: int) -> None:
    source, target = np.arange(6, dtype=np.float32), np.zeros(4, np.float32)
    asked = _args("PJRT_Buffer_CopyRawToHostFuture", buffer=_buffer(client, source), offset=8, transfer_size=16)
    _call("PJRT_Buffer_CopyRawToHostFuture", asked)
    assert not _is_ready(asked.event)
    kind = "PJRT_Buffer_CopyRawToHostFuture_Callback_Args"
    _answer(asked, "future_ready_callback", kind, dst=target.ctypes.data)
    assert _is_ready(asked.event) and target.tolist() == [2, 3, 4, 5]

    asked = _args("PJRT_Buffer_CopyRawToHostFuture", buffer=_buffer(client, source), offset=0, transfer_size=4)
    _call("PJRT_Buffer_CopyRawToHostFuture", asked)
    keep, at, size = handles.text("no memory")
    _answer(asked, "future_ready_callback", kind, error_code=8, error_message=at, error_message_size=size)
    with pytest.raises(errors.PjrtError, match="no memory") as raised:
        _call("PJRT_Event_Await", _args("PJRT_Event_Await", event=asked.event))
    assert raised.value.status == 8 and keep


def test_a_buffer_that_waits_for_another_thing(client: int) -> None:
    kind = "PJRT_Buffer_DonateWithControlDependency_Callback_Args"
    for code in (0, 13):
        first = _buffer(client, np.arange(3, dtype=np.float32))
        asked = _args("PJRT_Buffer_DonateWithControlDependency", buffer=first)
        _call("PJRT_Buffer_DonateWithControlDependency", asked)
        assert handles.get(first).deleted and not handles.get(asked.out_buffer).ready.is_ready
        _answer(asked, "dependency_ready_callback", kind, error_code=code)
        given = handles.get(asked.out_buffer)
        assert given.ready.is_ready and (given.ready.error is None) == (code == 0)
        if code == 0:
            assert given.array().tolist() == [0, 1, 2]
        with pytest.raises(errors.PjrtError, match="PJRT004"):
            _call(
                "PJRT_Buffer_DonateWithControlDependency",
                _args("PJRT_Buffer_DonateWithControlDependency", buffer=first),
            )


def test_a_shape_in_a_memory(client: int) -> None:
    topology = _args("PJRT_Client_TopologyDescription", client=client)
    _call("PJRT_Client_TopologyDescription", topology)
    name = "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace"
    dims = (ctypes.c_int64 * 2)(2, 3)
    args = _args(name, topology=topology.topology, element_type=F32, dims=ctypes.addressof(dims), num_dims=2)
    _call(name, args)
    shape = MESSAGES["ShapeProto"].FromString(ctypes.string_at(args.serialized_shape, args.serialized_shape_size))
    assert list(shape.dimensions) == [2, 3] and list(shape.layout.minor_to_major) == [1, 0]
    assert shape.element_type == F32
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(args.serialized_shape_deleter)(args.serialized_shape)


def test_a_program_compiled_for_a_topology_runs_on_a_client(client: int) -> None:
    topology = _args("PJRT_TopologyDescription_Create")
    _call("PJRT_TopologyDescription_Create", topology)
    keep, code, size = handles.text(ADD)
    format_, format_at, format_size = handles.text("hlo")
    program: Any = abi.struct("PJRT_Program")()
    program.code, program.code_size, program.format, program.format_size = code, size, format_at, format_size
    options, options_at, options_size = handles.text(CompileOptions().serialize())
    args = _args("PJRT_Compile", topology=topology.topology, program=ctypes.addressof(program))
    args.compile_options, args.compile_options_size = options_at, options_size
    _call("PJRT_Compile", args)
    loaded = _args("PJRT_Client_Load", client=client, executable=args.executable)
    _call("PJRT_Client_Load", loaded)
    executable = handles.get(loaded.loaded_executable)
    assert executable.client is handles.get(client) and keep and format_ and options
    x = handles.get(_buffer(client, np.ones((2, 3), np.float32)))
    assert executable.execute([x])[0].array().tolist() == [[2, 2, 2], [2, 2, 2]]
