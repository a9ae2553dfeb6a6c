"""What cannot be is told in one clear sentence, by a normal exception: targets, devices, versions."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from heron.pjrt.c_api import abi, api, errors, native, slot
from heron.targets import cuda
from tests.pjrt.under_jax import run

_TELL = """
import jax
try:
    jax.devices()
except Exception as error:
    assert isinstance(error, RuntimeError) and type(error).__module__ == "builtins", type(error)
    print(error)
else:
    raise AssertionError
"""


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"HERON_TARGET": "sm_90"}, "error[PJRT010]: no program can run on 'sm_90' here"),
        ({"HERON_TARGET": "cuda"}, "error[PJRT010]: no program can run on 'cuda' here"),
        ({"HERON_TARGET": "nonsense"}, "error[TGT001]: unknown target 'nonsense'"),
        ({"HERON_DEVICES": "none"}, "error[PJRT011]: a client has 1 to 4096 devices, not 'none'"),
        ({"HERON_DEVICES": "1000000"}, "error[PJRT011]: a client has 1 to 4096 devices, not '1000000'"),
    ],
)
def test_targets_that_cannot_be(environment: dict[str, str], said: str) -> None:
    if environment.get("HERON_TARGET") == "cuda" and cuda.capability() is not None:
        pytest.skip("this machine has a GPU")
    assert said in run(_TELL, **environment).stdout


@pytest.mark.parametrize("version", [(0, 10), (1, 0)])
def test_an_interface_that_jaxlib_does_not_take(version: tuple[int, int]) -> None:
    told = run(f"from heron.pjrt.c_api import abi\nabi.version = lambda: {version}\n{_TELL}").stdout
    assert "error[PJRT021]: jaxlib" in told and f"heron's PJRT interface {version[0]}.{version[1]}" in told


def test_a_newer_interface_is_taken() -> None:
    run(
        """
from heron.pjrt.c_api import abi
abi.version = lambda: (0, 999)
import jax
assert jax.jit(lambda x: x + 1)(1) == 2
"""
    )


def test_a_jax_that_is_built_otherwise() -> None:
    """The entry point finds JAX changed: the platform is there, and says why it cannot be used."""
    told = run(
        "",
        check=False,
        head=f"from jax._src.interpreters import mlir\ndel mlir._platforms_with_donation\n{_HEAD}{_TELL}",
    )
    assert "error[PJRT020]: this heron does not fit JAX" in told.stdout, told.stderr[-2000:]


_HEAD = "from heron.pjrt import jax_plugin\njax_plugin.initialize()\n"


def test_a_second_initialisation() -> None:
    run(
        """
import jax, jax.extend
jax_plugin.initialize()
first = jax.devices()[0]
assert (jax.numpy.ones(3) + 1).sum() == 6
jax_plugin.initialize()
assert jax.devices()[0] is first
jax.clear_caches()
jax.extend.backend.clear_backends()
assert jax.devices()[0].platform == "heron" and jax.devices()[0] is not first
assert (jax.numpy.ones(3) + 1).sum() == 6
"""
    )


def test_processes_of_jax_distributed() -> None:
    run(
        """
import socket
import jax
for _ in range(9):
    with socket.socket() as s:
        s.bind(("localhost", 0))
        port = s.getsockname()[1]
    try:
        jax.distributed.initialize(f"localhost:{port}", 1, 0)
        break
    except jax.errors.JaxRuntimeError as error:  # somebody else was given that port meanwhile
        assert "start RPC server" in str(error), error
else:
    raise AssertionError("no port")
assert (jax.process_count(), jax.process_index()) == (1, 0) and jax.jit(lambda x: x + 1)(1) == 2
jax.distributed.shutdown()
"""
    )


# -- the C interface itself ---------------------------------------------------------------------------------------------


def _call(name: str, args: Any) -> None:
    table: Any = abi.struct("PJRT_Api").from_address(api.address())
    error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(getattr(table, name))(ctypes.addressof(args))
    if error:
        raise errors.take(error)


def _args(name: str, extra: int = 0, **values: Any) -> Any:
    """Arguments of a caller whose structure is `extra` bytes longer than ours, or shorter."""
    size = abi.size(f"{name}_Args")
    room = (ctypes.c_uint8 * (size + max(0, extra) + 8))()
    args: Any = abi.struct(f"{name}_Args").from_buffer(room)
    args.struct_size = size + extra
    for field, value in values.items():
        setattr(args, field, value)
    return args


@pytest.mark.parametrize("extra", [-16, 0, 64])
def test_callers_of_other_versions(extra: int) -> None:
    """Structures that end earlier are written up to their end only; longer ones are taken as they are."""
    made = _args("PJRT_Client_Create", 0)
    _call("PJRT_Client_Create", made)
    devices = _args("PJRT_Client_AddressableDevices", client=made.client)
    _call("PJRT_Client_AddressableDevices", devices)
    device = ctypes.c_uint64.from_address(devices.addressable_devices).value
    stats = _args("PJRT_Device_MemoryStats", extra, device=device)
    stats.peak_pool_bytes_is_set = True  # the last field
    _call("PJRT_Device_MemoryStats", stats)
    assert stats.bytes_in_use == 0 and stats.bytes_limit_is_set
    assert stats.peak_pool_bytes_is_set is (extra < 0)
    _call("PJRT_Client_Destroy", _args("PJRT_Client_Destroy", client=made.client))


def test_a_handle_that_is_none() -> None:
    with pytest.raises(errors.PjrtError, match="PJRT014"):
        _call("PJRT_Device_MemoryStats", _args("PJRT_Device_MemoryStats", device=12345))


def test_streams_nobody_is_given() -> None:
    with pytest.raises(errors.PjrtError, match="PJRT018"):
        _call("PJRT_CopyToDeviceStream_AddChunk", _args("PJRT_CopyToDeviceStream_AddChunk"))


def test_every_function_is_there() -> None:
    """None is left that only says it is not implemented."""
    _call("PJRT_Plugin_Initialize", _args("PJRT_Plugin_Initialize"))
    assert set(native.slots()) <= set(slot._SLOTS)
