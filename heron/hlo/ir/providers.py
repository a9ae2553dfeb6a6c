"""Methods of the data that modules above it provide: `str(module)`, `i.sharding`, pickling, the check of a schedule.

Modules of this folder may not import what is built on them. They call `provided(NAME)`, which imports the provider
on first use.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

_PROVIDERS = {
    "declarations of ops": "heron.hlo.ops:__name__",
    "print_module": "heron.hlo.text.printer:print_module",
    "print_computation": "heron.hlo.text.printer:print_computation",
    "print_instruction": "heron.hlo.text.printer:print_instruction",
    "parse_sharding": "heron.hlo.sharding:parse",
    "to_proto": "heron.hlo.proto:to_proto",
    "from_proto": "heron.hlo.proto:from_proto",
    "schedules_are_orders": "heron.hlo.verifier:schedules_are_orders",
}


@cache
def provided(name: str) -> Any:
    """The function of that name."""
    module, _, attribute = _PROVIDERS[name].partition(":")
    return getattr(import_module(module), attribute)
