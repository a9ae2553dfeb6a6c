"""Native code of slots that need no Python: errors, notes of frameworks in a memory, counts of references."""

from __future__ import annotations

import ctypes

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value, View
from heron.pjrt.c_api import abi, handles

#: slots native code answers alone, beside the getters
NAMES = (
    *("PJRT_Error_Destroy", "PJRT_Error_Message", "PJRT_Error_GetCode", "PJRT_Error_ForEachPayload"),
    *("PJRT_Buffer_IncreaseExternalReferenceCount", "PJRT_Buffer_DecreaseExternalReferenceCount"),
    "PJRT_Layouts_MemoryLayout_Destroy",
)


class Note(ctypes.Structure):
    """A note of a framework in a memory, after the table of `MemoryCell`."""

    _fields_ = [("key", ctypes.c_void_p), ("value", ctypes.c_void_p), ("destroy", ctypes.c_void_p)]


def write(module: Module) -> None:
    """All of them."""
    _write_errors(module)
    _write_notes(module)
    for name, step in (("Increase", 1), ("Decrease", -1)):
        slot = f"PJRT_Buffer_{name}ExternalReferenceCount"
        with module.function(f"ptr @{slot}(ptr %args)") as f:
            buffer = f.view(_args(f, slot).pointer("buffer"), handles.BufferCell)
            f.change("add", "i64", buffer.at("external"), step, "acq_rel")
            f.ret("null", "ptr")
    with module.function("ptr @PJRT_Layouts_MemoryLayout_Destroy(ptr %args)") as f:
        f.ret("null", "ptr")
    with module.function("void @heron_nothing(ptr %thing)"):
        pass


def _args(f: Function, slot: str) -> View:
    return f.view(f.arguments[0], abi.struct(f"{slot}_Args"))


def _write_errors(module: Module) -> None:
    """`ErrorCell`s, made by `errors.py` with malloc."""
    with module.function("void @heron_error_destroy(ptr %error)") as f:
        f.call("void @free(ptr)", f.arguments[0])
    with module.function("void @heron_error_message(ptr %error, ptr %text, ptr %size)") as f:
        error, text, size = f.arguments
        _message(f.view(error, handles.ErrorCell), text, size)
    with module.function("i32 @heron_error_code(ptr %error)") as f:
        f.ret(f.view(f.arguments[0], handles.ErrorCell)["code"])
    with module.function("void @heron_error_payloads(ptr %error, ptr %visitor, ptr %user)"):
        pass
    with module.function("void @PJRT_Error_Destroy(ptr %args)") as f:
        f.call("void @free(ptr)", _args(f, "PJRT_Error_Destroy").pointer("error"))
    with module.function("void @PJRT_Error_Message(ptr %args)") as f:
        args = _args(f, "PJRT_Error_Message")
        _message(f.view(args.pointer("error"), handles.ErrorCell), args.at("message"), args.at("message_size"))
    with module.function("ptr @PJRT_Error_GetCode(ptr %args)") as f:
        args = _args(f, "PJRT_Error_GetCode")
        args["code"] = f.view(args.pointer("error"), handles.ErrorCell)["code"]
        f.ret("null", "ptr")
    with module.function("ptr @PJRT_Error_ForEachPayload(ptr %args)") as f:
        f.ret("null", "ptr")


def _message(error: View, text: Value, size: Value) -> None:
    f = error.function
    f.store("i64", error["message"], text)
    f.store("i64", error["size"], size)


def _write_notes(module: Module) -> None:
    with module.function("ptr @heron_memory_get(ptr %memory, ptr %key)") as f:
        memory, key = f.arguments
        notes = f.view(memory, handles.MemoryCell).at("user_data")
        with f.loop(0, handles.USER_DATA) as n:
            note = f.view(notes, Note, n)
            with f.when(note["key"].eq(key)):
                f.ret(note["value"])
        f.ret("null", "ptr")
    with module.function("void @heron_memory_set(ptr %memory, ptr %key, ptr %value, ptr %destroy)") as f:
        memory, key, value, destroy = f.arguments
        notes = f.view(memory, handles.MemoryCell).at("user_data")
        with f.loop(0, handles.USER_DATA) as n:
            note = f.view(notes, Note, n)
            with f.when(note["key"].eq(key) | note["key"].is_null()):
                old, old_destroy = note["value"], note["destroy"]
                note["value"], note["destroy"], note["key"] = value, destroy, key
                with f.when(old_destroy.ne("null")):
                    f.call(f"void {old_destroy}(ptr)", old)
                f.ret()
