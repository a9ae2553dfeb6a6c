"""Small programs and arrays that native code handles alone: their buffers are as others, whoever asks."""

from __future__ import annotations

from tests.pjrt.under_jax import run

_HEAD = """
import gc, threading
import jax, jax.numpy as jnp, numpy as np
from heron import HeronError
from heron.pjrt.c_api import handles
from heron.pjrt.c_api.slots import quick
device = jax.devices()[0]
f = jax.jit(lambda x, y: (x + y, x * y))
a, b = jnp.full((3, 4), 3.0), jnp.full((3, 4), 2.0)
for _ in range(3):
    f(a, b)
gc.collect()
"""


def test_what_python_is_asked_for_becomes_a_handle() -> None:
    """A call's outputs are native code's; asked for more than it knows, they are counted once, and end once."""
    run(
        _HEAD
        + """
before, live, memory = handles.count(), quick.live_cells(), device.memory_stats()
c, d = f(a, b)
assert (np.asarray(c) == 5).all() and (np.asarray(d) == 6).all()
assert (handles.count(), quick.live_cells()) == (before, live + 2)
now = device.memory_stats()
assert now["bytes_in_use"] == memory["bytes_in_use"] + 96 and now["num_allocs"] == memory["num_allocs"] + 2
assert now["peak_bytes_in_use"] >= now["bytes_in_use"]

copied = jax.device_put(c, jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host"))
assert (np.asarray(copied) == 5).all() and (handles.count(), quick.live_cells()) == (before + 2, live + 1)
assert device.memory_stats()["bytes_in_use"] == now["bytes_in_use"] + 48
kept = np.asarray(c)
del c, copied
gc.collect()
assert (kept == 5).all()
del kept, d
gc.collect()
assert (handles.count(), quick.live_cells()) == (before, live)
assert device.memory_stats()["bytes_in_use"] == memory["bytes_in_use"]

c, d = f(a, b)
c.delete()
for use in (lambda: np.asarray(c), lambda: f(c, b)):
    try:
        use()
    except RuntimeError as error:
        assert "deleted" in str(error)
    else:
        raise AssertionError
assert (np.asarray(f(d, b)[0]) == 8).all()
"""
    )


def test_addresses_that_are_no_buffers() -> None:
    run(
        _HEAD
        + """
slab = min(quick._SLABS)
free = [slab + n * quick._STEP for n in range(quick._IN_SLAB)]
free = [at for at in free if handles.BufferCell.from_address(at).born == handles.FREE]
assert free
for address in (free[0], free[0] + 8, slab + quick._SLAB - 8, 12345, 0):
    try:
        handles.handle(address)
    except HeronError as error:
        assert error.code == "PJRT014"
    else:
        raise AssertionError(address)
"""
    )


def test_more_buffers_than_cells_from_several_threads() -> None:
    """Results are held, dropped and used again by threads that run the same program at the same time."""
    run(
        _HEAD
        + """
kept = [f(a, b) for _ in range(1000)]
assert all(float(c[0, 0]) == 5 and float(d[0, 0]) == 6 for c, d in kept[::100])
failures = []
def work(n):
    try:
        x = jax.device_put(np.full((3, 4), n, np.float32))
        mine = []
        for k in range(300):
            x, _ = f(x, b)
            mine.append(x)
            if k % 50 == 49:
                assert [float(v[1, 1]) for v in mine] == [n + 2 * (k - 49 + j + 1) for j in range(50)], n
                mine.clear()
    except BaseException as error:
        failures.append(error)
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not failures, failures[0]
live = quick.live_cells()
del kept
gc.collect()
assert live > 1500 and quick.live_cells() < 100, (live, quick.live_cells())
"""
    )


def test_arrays_of_all_kinds_come_in() -> None:
    """What native code copies, and what it leaves to Python: strides, many dimensions, large or empty arrays."""
    run(
        _HEAD
        + """
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)
base = rng.normal(size=(6, 5, 4))
given = [
    base, base[::2], base[:, ::-1], base.transpose(2, 0, 1), base[:, :, :1], base[1:1], np.float64(3), base[0, 0],
    np.broadcast_to(base[0], (2, 5, 4)), base.reshape((1,) * 6 + (6, 5, 4)), rng.normal(size=(64, 64)),
    np.asfortranarray(base), np.empty((0, 3)), np.zeros((2, 0, 0)), rng.normal(size=2047), rng.normal(size=2048),
]
for array in given:
    for kind in (np.float64, np.int8, np.uint32, np.complex64, np.bool_, jnp.bfloat16, jnp.int4, jnp.float8_e5m2):
        wanted = np.asarray(array).astype(kind)
        put = jax.device_put(wanted)
        assert put.dtype == wanted.dtype and put.shape == wanted.shape
        np.testing.assert_array_equal(np.asarray(put).astype(np.complex128), wanted.astype(np.complex128))
changing = np.ones(5)
put = jax.device_put(changing)
changing[:] = 2
assert put.tolist() == [1] * 5
"""
    )
