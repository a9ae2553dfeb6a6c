"""Modules as protocol buffers, XLA's binary form: HloModuleProto, HloProto, HloSnapshot.

    data = to_proto(module)         # HloModuleProto, which XLA reads
    module = from_proto(data)
    module = load(data)             # whichever of the three the bytes are

Names are loaded on first use, so that looking at a file (`looks_like`) does not import protobuf.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heron.hlo.proto.messages import (
        from_hlo_proto,
        from_proto,
        load,
        to_hlo_proto,
        to_proto,
        to_proto_with_config,
    )
    from heron.hlo.proto.snapshot import Snapshot, from_snapshot, to_snapshot
    from heron.hlo.proto.sniff import looks_like

__all__ = [
    "Snapshot",
    "from_hlo_proto",
    "from_proto",
    "from_snapshot",
    "load",
    "looks_like",
    "to_hlo_proto",
    "to_proto",
    "to_proto_with_config",
    "to_snapshot",
]

_HOMES = {"looks_like": "sniff", "Snapshot": "snapshot", "from_snapshot": "snapshot", "to_snapshot": "snapshot"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'heron.hlo.proto' has no attribute '{name}'")
    return getattr(import_module(f"heron.hlo.proto.{_HOMES.get(name, 'messages')}"), name)
