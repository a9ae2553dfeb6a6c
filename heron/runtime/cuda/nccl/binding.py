"""NCCL, each call checked: a result that is no success is an error with the call and with NCCL's own words."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

from heron.errors import HeronError
from heron.once import once
from heron.targets import libnccl


class NcclFailed(HeronError):
    """A call of NCCL that gave no success, or what it found out later (``call`` is empty then)."""

    def __init__(self, call: str, result: int, said: str, where: str | None = None) -> None:
        self.call, self.result, self.said = call, result, said
        what = f"NCCL's {call} failed" if call else "NCCL reports an error"
        name = libnccl.RESULTS.get(result, f"ncclResult {result}")
        why = f"{name}: {said}" if result else said
        super().__init__("RUN095", what, where=where, why=why, hint=_HINTS.get(result, _HINT))

    def at(self, where: str) -> NcclFailed:
        """The same with the collective and the device."""
        return NcclFailed(self.call, self.result, self.said, where)


_HINT = "NCCL_DEBUG=WARN has NCCL say more"
_HINTS = {
    2: "a call of the system failed: NCCL_DEBUG=WARN says which; shared memory of containers is often too small "
    "(--shm-size)",
    5: "two ranks on one GPU, or calls in another order on different devices: NCCL_DEBUG=WARN says which",
    6: "another process has ended or was aborted: see its output",
}


class Nccl:
    """NCCL's functions by name. Raises RUN090 where there is no NCCL, RUN093 where it is too old."""

    def __init__(self, library: Any) -> None:
        if isinstance(library, str):
            raise HeronError(
                "RUN090",
                "programs for several GPUs need NCCL",
                why=library,
                hint="pip install 'heron[nccl]', or name the folder of libnccl.so.2 in LD_LIBRARY_PATH",
            )
        self.library = library
        version = ctypes.c_int()
        missing = [name for name in libnccl.FUNCTIONS if not hasattr(library, name)]
        if not missing and not library.ncclGetVersion(ctypes.byref(version)):
            self.version = version.value
            if self.version >= libnccl.OLDEST:
                return
        lacks = f"it lacks {', '.join(missing[:3])}" if missing else f"it is {dotted(version.value)}"
        why = f"{lacks}; heron needs {dotted(libnccl.OLDEST)} or newer"
        raise HeronError("RUN093", "NCCL is too old", why=why, hint="pip install -U 'heron[nccl]'")

    def call(self, name: str, *arguments: Any, communicator: int = 0) -> None:
        """Call a function. Raises RUN095; ``communicator``: the one whose last error may tell more."""
        result = getattr(self.library, name)(*arguments)
        if result:
            raise NcclFailed(name, result, self.said(result, communicator))

    @contextlib.contextmanager
    def group(self, communicator: int) -> Iterator[None]:
        """Calls inside are enqueued as one, at the end. After an error nothing is, and the group ends all the same."""
        self.call("ncclGroupStart")
        try:
            yield
        except BaseException:
            self.library.ncclGroupEnd()  # it repeats the error
            raise
        self.call("ncclGroupEnd", communicator=communicator)

    def unique_id(self) -> bytes:
        """A new id for a communicator, which all its members need."""
        made = libnccl.UniqueId()
        self.call("ncclGetUniqueId", ctypes.byref(made))
        return bytes(made)

    def join(self, size: int, unique_id: bytes, rank: int) -> int:
        """A communicator of the current device, when all `size` members have come."""
        made = ctypes.c_void_p()
        of = libnccl.UniqueId.from_buffer_copy(unique_id)
        self.call("ncclCommInitRank", ctypes.byref(made), size, of, rank)
        return made.value or 0

    def error_of(self, communicator: int) -> NcclFailed | None:
        """The error of a communicator since its calls were enqueued, if there is one."""
        found = ctypes.c_int()
        self.call("ncclCommGetAsyncError", communicator, ctypes.byref(found))
        if found.value in (0, libnccl.IN_PROGRESS):
            return None
        return NcclFailed("", found.value, self.said(found.value, communicator))

    def said(self, result: int, communicator: int) -> str:
        """A result in NCCL's words, and the last error it has noted."""
        words = libnccl.text_of(self.library.ncclGetErrorString, result)
        last = libnccl.text_of(self.library.ncclGetLastError, communicator)
        return f"{words}: {last.strip()}" if last.strip() else words


def dotted(version: int) -> str:
    """A version as people write it; those up to 2.8 have a digit less."""
    scale = 10_000 if version >= 10_000 else 1000
    return f"{version // scale}.{version % scale // 100}.{version % 100}" if version else "of an unknown version"


_nccl_of = once(Nccl)


def nccl() -> Nccl:
    """NCCL of this process, one for all threads. Raises RUN090 and RUN093."""
    return _nccl_of(libnccl.library())
