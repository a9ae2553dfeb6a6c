"""Code that many programs call, compiled once in a process, by whoever needs it first."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock

from heron.codegen.llvm.jit import Jit, Object

#: by its symbol, for ever: programs have the address
_CODE: dict[str, Future[Object]] = {}
_LOCK = Lock()


def address_of(symbol: str, text: Callable[[], str]) -> int:
    """The address of the one function a text defines: written as it is to run, so that LLVM only has to put its stack
    slots into registers. Threads may ask side by side; who comes while another compiles it waits.
    """
    return linked(symbol, lambda: Jit(level=1, shaped=True).add(text(), symbol, exports=[symbol]))


def linked(symbol: str, make: Callable[[], Object]) -> int:
    """As `address_of`, where `make` compiles and links it."""
    with _LOCK:
        found, is_first = _CODE.get(symbol), symbol not in _CODE
        if found is None:
            found = _CODE[symbol] = Future()
    if is_first:
        try:
            found.set_result(make())
        except BaseException as error:
            found.set_exception(error)
            with _LOCK:
                del _CODE[symbol]
    return found.result().addresses[symbol]
