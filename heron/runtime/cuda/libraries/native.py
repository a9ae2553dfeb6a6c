"""A shared library of NVIDIA's: found, its functions called by name, their statuses turned into errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from heron.errors import HeronError
from heron.targets import libraries


class Functions(Protocol):
    """Functions of a C interface, which bindings call by name. Tests use one that records calls instead."""

    def call(self, function: str, *arguments: Any) -> None:
        """Call it. Raises RUN091 unless its status is 0, RUN093 when the library has no such function."""


class Native:
    """The functions of a loaded library."""

    def __init__(self, name: str) -> None:
        self.name = name
        loaded = libraries.load(name)
        if isinstance(loaded, str):
            raise HeronError(
                "RUN090",
                f"the library {name} is not installed",
                why=loaded,
                hint=f"pip install nvidia-{name.removesuffix('lt')}, or name the CUDA toolkit in CUDA_HOME; "
                "`libraries=none` compiles without",
            )
        self._library = loaded

    def call(self, function: str, *arguments: Any) -> None:
        status = self._function(function)(*arguments)
        if status:
            raise HeronError(
                "RUN091", f"{self.name}: {function} failed", why=f"status {status}: {meaning(self.name, status)}"
            )

    def _function(self, name: str) -> Callable[..., int]:
        try:
            return getattr(self._library, name)
        except AttributeError:
            raise HeronError(
                "RUN093",
                f"{self.name} has no function '{name}'",
                why="the installed version is older than the one heron is written for",
            ) from None


_CUBLAS = {
    1: "not initialised", 3: "no memory", 7: "a value it does not take", 8: "the device lacks a feature",
    11: "mapping error", 13: "execution failed", 14: "internal error", 15: "not supported", 16: "licence error",
}  # fmt: skip
#: what statuses mean, from the libraries' headers
_MEANINGS: Mapping[str, Mapping[int, str]] = {
    "cublas": _CUBLAS,
    "cublaslt": _CUBLAS,
    "cusolver": {
        1: "not initialised", 2: "no memory", 3: "a value it does not take", 4: "the device lacks a feature",
        6: "execution failed", 7: "internal error", 8: "matrix type not supported", 9: "not supported",
    },
    "cufft": {
        1: "no such plan", 2: "no memory", 3: "no such type", 4: "a value it does not take", 5: "internal error",
        6: "execution failed", 7: "setup failed", 8: "a size it does not take", 16: "not supported",
    },
}  # fmt: skip


def meaning(name: str, status: int) -> str:
    """A status in words."""
    if name == "cudnn":  # thousands are kinds of failures, the rest details
        kinds = {1: "not initialised or a wrong version", 2: "a parameter it does not take", 3: "not supported",
                 4: "internal error", 5: "execution failed"}  # fmt: skip
        return kinds.get(status // 1000, "unknown")
    return _MEANINGS.get(name, {}).get(status, "unknown")
