"""Libraries of NVIDIA's: what is said when they are absent, and what a recording keeps."""

from __future__ import annotations

import ctypes

import pytest

from heron.errors import HeronError
from heron.runtime.cuda.libraries import native
from heron.runtime.cuda.libraries.recording import Recording
from heron.targets import libraries


def test_an_absent_library_is_an_error_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(libraries.FILES, "cufft", ("no_such_library", (1,)))  # type: ignore[arg-type]
    libraries.load.cache_clear()
    try:
        assert libraries.missing("cufft")
        with pytest.raises(HeronError) as error:
            native.Native("cufft")
        assert error.value.code == "RUN090"
    finally:
        libraries.load.cache_clear()


def test_a_recording_numbers_handles_and_shows_what_pointers_point_at() -> None:
    lib = Recording("cublas")
    first, second = ctypes.c_void_p(), ctypes.c_void_p()
    lib.call("create", ctypes.byref(first))
    lib.call("create", ctypes.byref(second))
    lib.call("use", second, ctypes.c_int(7), (ctypes.c_int * 2)(1, 2), None)
    assert lib.text == "create(&1)\ncreate(&2)\nuse(2, 7, [1, 2], 0)"


def test_a_recording_fails_on_demand() -> None:
    lib = Recording("cublas", fails={"create": 3})
    with pytest.raises(HeronError) as error:
        lib.call("create")
    assert error.value.code == "RUN091"


def test_statuses_in_words() -> None:
    assert native.meaning("cublaslt", 15) == "not supported"
    assert native.meaning("cudnn", 3007) == "not supported"
    assert native.meaning("cufft", 99) == "unknown"
