"""Forks, signals, threads and the end of the process, under JAX on heron."""

from __future__ import annotations

from tests.pjrt.under_jax import run

_HEAD = """
import os, signal, threading, time, warnings
import jax, jax.numpy as jnp, numpy as np
from jax import lax
warnings.simplefilter("ignore")
small = jax.jit(lambda x: x + 1)
large = jax.jit(lambda a: jnp.tanh(a @ a).sum())
slow = jax.jit(lambda x: lax.fori_loop(0, 20000, lambda i, s: jnp.sin(s) + 1e-3, x))
x, a = jnp.ones(3), jnp.ones((300, 300))
"""


def test_a_forked_child_runs_what_is_compiled() -> None:
    """Work that is under way stays the parent's; to compile a child needs to be spawned, and says so."""
    run(
        _HEAD
        + """
small(x).block_until_ready(), large(a).block_until_ready()
under_way = slow(jnp.ones(1000))
child = os.fork()
if child == 0:
    signal.alarm(300)
    new = jax.device_put(np.ones(3, np.float32))
    ok = all((np.asarray(small(given)) == 2).all() for given in (x, new)) and float(large(a)) == 90000
    try:
        jax.jit(lambda x: x * 3 - 1)(new)
    except jax.errors.JaxRuntimeError as error:
        ok = ok and "PJRT027]: a forked child cannot compile" in str(error)
    else:
        ok = False
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
under_way.block_until_ready()
assert small(x)[0] == 2
"""
    )


def test_an_interrupt_is_a_keyboard_interrupt() -> None:
    """While a program runs behind the caller, and while one is compiled; the platform works on."""
    run(
        _HEAD
        + """
from heron.passes.framework.context import PassContext
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs behind a shell begins without

def interrupted(work):
    try:
        work()
        for _ in range(1000):  # Python looks for signals here, too
            pass
    except KeyboardInterrupt:
        return
    raise AssertionError("no KeyboardInterrupt")

def interrupt(*_):
    os.kill(os.getpid(), signal.SIGINT)
    return np.float32(0)

@jax.jit
def under_way(x):
    return slow(x + jax.pure_callback(interrupt, jax.ShapeDtypeStruct((), np.float32), x))

ready = under_way.lower(jnp.ones(3000)).compile()
interrupted(lambda: ready(jnp.ones(3000)).block_until_ready())
assert small(x)[0] == 2

usual, compiled = PassContext.run_pass, []
def run_pass(self, *given):
    if not compiled:
        compiled.append(interrupt())
    return usual(self, *given)
PassContext.run_pass = run_pass
interrupted(lambda: jax.jit(lambda x: jnp.sin(x) + jnp.sort(x))(jnp.ones(16)).block_until_ready())
assert compiled and jax.jit(lambda x: x + 2)(x)[0] == 3
"""
    )


def test_an_interrupt_on_the_way_in_is_told_when_the_work_is_done() -> None:
    """C++ takes what gives no error for done, so a slot is never left out."""
    run(
        """
import ctypes, signal
import jax
from heron.codegen.llvm.jit import Jit
from heron.pjrt.c_api import abi, errors, native

signal.signal(signal.SIGINT, signal.default_int_handler)
jax.devices()
signal_raise = ctypes.cast(ctypes.CDLL(None)["raise"], ctypes.c_void_p).value
jit = Jit(level=0, symbols={"ask": native.entry("PJRT_Client_LookupDevice"), "raise": signal_raise})
jit.add('''
declare ptr @ask(ptr)
declare i32 @raise(i32)

define ptr @interrupted(ptr %args) {
  call i32 @raise(i32 2)
  %error = call ptr @ask(ptr %args)
  ret ptr %error
}
''', "interrupted")
asked, usual = [], errors.new_error
errors.new_error = lambda *given: asked.append(given) or usual(*given)
args = abi.struct("PJRT_Client_LookupDevice_Args")()  # of no client: an error
interrupted = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(jit.address("interrupted"))
try:
    interrupted(ctypes.addressof(args))
    for _ in range(1000):
        pass
except KeyboardInterrupt:
    assert len(asked) == 1
else:
    raise AssertionError("no KeyboardInterrupt")
"""
    )


def test_an_exception_at_the_end_with_work_under_way() -> None:
    script = _HEAD + "y = slow(jnp.ones(3000))\nz = small(y)\nraise ValueError('at the end')"
    done = run(script, check=False, fresh=True)
    assert done.returncode == 1 and done.stderr.rstrip().endswith("ValueError: at the end"), done.stderr[-2000:]


def test_threads_compile_run_donate_and_call_python() -> None:
    run(
        _HEAD
        + """
failures = []
def work(n):
    try:
        for k in range(6):
            m = 3 + (5 * n + 7 * k) % 20
            given = np.random.default_rng(n * 100 + k).normal(size=(m, m)).astype(np.float32)
            wanted = np.tanh(given @ given.T) * n + k
            y = jax.jit(lambda x: jnp.tanh(x @ x.T) * n + k, donate_argnums=(0,) * (k % 2))(jax.device_put(given))
            np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)
            if k % 3 == 0:
                z = jax.jit(lambda y: jax.pure_callback(np.cos, y, y))(y)
                np.testing.assert_allclose(z, np.cos(wanted), rtol=1e-3, atol=1e-3)
    except Exception as error:
        failures.append(error)
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not failures, failures[0]
"""
    )


def test_only_the_thread_that_ends_python_comes_in_at_the_end() -> None:
    """Python would end other threads by unwinding them, through frames of C++ that do not allow it."""
    run(
        """
import atexit, ctypes, threading
import jax
from heron.pjrt.c_api import abi, api, native

jax.devices()
args = abi.struct("PJRT_Client_LookupDevice_Args")()  # of no client: an error, if it is looked at
ask = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(native.entry("PJRT_Client_LookupDevice"))
answers = {}

def look(who):
    answers[who] = ask(ctypes.addressof(args)) is not None

def looks(who):
    thread = threading.Thread(target=look, args=(who,))
    thread.start()
    thread.join()
    return answers[who]

look("before")
assert answers["before"] and looks("a thread before")
atexit._run_exitfuncs()
look("after")
assert answers["after"] and not looks("a thread after")
"""
    )


def test_a_process_that_ran_its_exit_functions_goes_on() -> None:
    """As tests of such functions do. JAX drops its devices then, and asks for a client again."""
    run(
        _HEAD
        + """
import atexit

for _ in range(2):
    assert small(jnp.ones(3))[0] == 2
    slow(jnp.ones(1000))  # under way
    atexit._run_exitfuncs()
assert jax.jit(lambda x: x * 3 - 1)(jnp.ones(3))[0] == 2
assert float(large(jnp.ones((300, 300)))) == 90000
""",
        fresh=True,
    )
