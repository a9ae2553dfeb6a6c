"""Code that many programs call, compiled once in a process, by whoever needs it first, or read from the cache.

It depends on the machine and on heron's version, not on programs, so it is kept whether or not programs are: a product
of matrices takes 70 ms to compile and 4 to read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Mapping
from threading import Lock

from heron.codegen.llvm.code_cache import CodeCache, shared_cache
from heron.codegen.llvm.jit import Jit
from heron.outcome import Outcome
from heron.runtime.object_code import Object

#: for ever: programs have the addresses
_CODE: dict[Hashable, Outcome[Object]] = {}
_LOCK = Lock()


def for_good(name: str, text: str, symbols: Mapping[str, int] | None = None) -> Mapping[str, int]:
    """The addresses of a text's functions, which stay for as long as the process lives.

    ``symbols``: where what it uses of elsewhere is; the text has no addresses itself, so that other processes find its
    code in the cache.
    """
    # to optimise more takes longer than it would ever save
    jit = Jit(level=0, symbols=symbols, cache=shared_cache(), shaped=True)
    code = jit.add(text, name)
    for lasting in (jit, code):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(lasting))
    return code.addresses


def address_of(
    symbol: str, text: Callable[[], str], *form: Hashable, cache: CodeCache | None, shaped: bool = False, level: int = 1
) -> int:
    """The address of the one function a text defines, which is told by its symbol and its form; `cache`, `shaped` and
    `level` see `Jit`.
    """
    kept = cache or shared_cache()
    jit = Jit(level=level, cache=kept, shaped=shaped)
    return linked(symbol, lambda: jit.add(text(), symbol, exports=[symbol]), *form)


def linked(symbol: str, make: Callable[[], Object], *form: Hashable) -> int:
    """As `address_of`, where `make` compiles and links it. Threads may ask side by side: one compiles, others wait."""
    key = (symbol, *form)
    with _LOCK:
        is_first = key not in _CODE
        found = _CODE.setdefault(key, Outcome())
    if is_first:
        try:
            found.give(make())
        except BaseException as error:
            with _LOCK:
                del _CODE[key]
            found.fail(error)
    return found.result().addresses[symbol]
