"""The structures of PJRT's C interface as ctypes classes, made from the table of version 0.112.

Sizes and offsets are those of 64-bit machines. A caller with a newer minor version has longer structures with the same
beginning, one with an older version shorter ones; `struct_size` is therefore never compared for equality.
"""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

from heron.once import once

_SCALARS: dict[str, Any] = {
    "ptr": ctypes.c_uint64,
    "uint64": ctypes.c_uint64,
    "ssize_t": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "bool": ctypes.c_bool,
    "float": ctypes.c_float,
}


@once
def table() -> dict[str, Any]:
    """Version, enumerations, functions in order and structures."""
    return json.loads((Path(__file__).parent / "abi_0_112.json").read_text())


@once
def version() -> tuple[int, int]:
    """Major and minor version of the interface."""
    major, minor = table()["version"]
    return major, minor


@once
def functions() -> tuple[str, ...]:
    """Names of the functions, in the order of `PJRT_Api`."""
    return tuple(table()["functions"])


@once
def struct(name: str) -> type[ctypes.Structure]:
    """A structure by its C name. Raises KeyError for one that is not in the table."""
    facts = _facts(name)
    fields = [(field[0], _kind(field[1])) for field in facts["fields"]]
    made = type(name, (ctypes.Structure,), {"_fields_": fields})
    assert ctypes.sizeof(made) == facts["size"] + -facts["size"] % 8, name
    return made


def size(name: str) -> int:
    """Bytes of a structure up to the end of its last field: what a caller of this version says in `struct_size`."""
    return _facts(name)["size"]


def _facts(name: str) -> dict[str, Any]:
    return _LAYOUTS.get(name) or table()["structs"][name]


def _kind(kind: Any) -> Any:
    if isinstance(kind, str):
        return _SCALARS.get(kind) or struct(kind)
    members = [(name, _kind(member)) for name, member in kind["union"]]
    return type("union", (ctypes.Union,), {"_fields_": members})


def code(name: str) -> int:
    """Number of a status: ``INVALID_ARGUMENT``."""
    return table()["enums"]["PJRT_Error_Code"][f"PJRT_Error_Code_{name}"]


def extension_type(name: str) -> int:
    """Number of an extension: ``Layouts``."""
    return table()["enums"]["PJRT_Extension_Type"][f"PJRT_Extension_Type_{name}"]


def _args(*names: str, **kinds: str) -> dict[str, Any]:
    """An argument structure: its size and extensions, then fields of 8 bytes, pointers unless `kinds` says more."""
    fields = [("struct_size", "uint64", 0), ("extension_start", "ptr", 8)]
    fields += [(n, kinds.get(n, "ptr"), 16 + 8 * k) for k, n in enumerate(names)]
    return {"size": 16 + 8 * len(names), "fields": fields}


#: the functions of the extension for layouts in their order, and their arguments
LAYOUT_FUNCTIONS = (
    "PJRT_Layouts_MemoryLayout_Destroy",
    "PJRT_Layouts_MemoryLayout_Serialize",
    "PJRT_Layouts_PJRT_Client_GetDefaultLayout",
    "PJRT_Layouts_PJRT_Buffer_MemoryLayout",
    "PJRT_Layouts_PJRT_Topology_GetDefaultLayout",
    "PJRT_Layouts_PJRT_Executable_GetOutputLayouts",
    "PJRT_Layouts_PJRT_Executable_GetParameterLayouts",
)
#: those of the extension for shardings
SHARDING_FUNCTIONS = (
    "PJRT_Shardings_PJRT_Executable_ParameterShardings",
    "PJRT_Shardings_PJRT_Executable_OutputShardings",
)
#: the extensions in the order of their list, and the functions of each
EXTENSIONS = {"Layouts": LAYOUT_FUNCTIONS, "Shardings": SHARDING_FUNCTIONS}
_DEFAULT = _args("owner", "type", "dims", "num_dims", "layout", type="int32")
_LAYOUTS: dict[str, Any] = {
    f"{LAYOUT_FUNCTIONS[0]}_Args": _args("layout"),
    f"{LAYOUT_FUNCTIONS[1]}_Args": _args(
        "layout", "serialized_bytes", "serialized_bytes_size", "serialized_layout", "serialized_layout_deleter"
    ),
    f"{LAYOUT_FUNCTIONS[2]}_Args": _DEFAULT,
    f"{LAYOUT_FUNCTIONS[3]}_Args": _args("buffer", "layout"),
    f"{LAYOUT_FUNCTIONS[4]}_Args": _DEFAULT,
    f"{LAYOUT_FUNCTIONS[5]}_Args": _args("executable", "num_outputs", "layouts"),
    f"{LAYOUT_FUNCTIONS[6]}_Args": _args("executable", "num_parameters", "layouts"),
    f"{SHARDING_FUNCTIONS[0]}_Args": _args("executable", "num_parameters", "shardings", "sharding_sizes"),
    f"{SHARDING_FUNCTIONS[1]}_Args": _args("executable", "num_outputs", "shardings", "sharding_sizes"),
}
