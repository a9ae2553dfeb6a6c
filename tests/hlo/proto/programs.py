"""Small programs that between them use every field of an instruction's protocol buffer."""

from __future__ import annotations

from pathlib import Path

_HEAD = """HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = pred[] compare(a, b), direction=LT }
"""

HERE = Path(__file__).parent


def entry(body: str) -> str:
    """A module whose entry computation has these instructions."""
    return f"{_HEAD}ENTRY e {{\n{body}\n}}\n"


def sections(path: Path) -> dict[str, str]:
    """What stands under each ``== title``."""
    found = path.read_text().split("\n== ")[1:]
    return {title: body for title, _, body in (section.partition("\n") for section in found)}


TEXT = HERE.parent / "text"
_OWN = sections(HERE / "instructions.txt")
_SHARED = sections(TEXT / "instructions.txt") | sections(TEXT / "corners.txt")
_BODIES = _OWN | {f"{name} in text" if name in _OWN else name: body for name, body in _SHARED.items()}
#: by name
PROGRAMS = {name: entry(body) for name, body in _BODIES.items()} | sections(TEXT / "modules.txt")
PROGRAMS["features"] = (TEXT / "features.hlo").read_text()

_HEADER = """HloModule m, is_scheduled=true, input_output_alias={ {0}: (1, {1}, must-alias) }, """
PROGRAMS["header"] = (
    _HEADER
    + """buffer_donor={ (1, {0}) }, frontend_attributes={a="b"}

ENTRY e {
 n = s32[] parameter(0)
 x = (f32[2], f32[2]) parameter(1)
 y = f32[2] get-tuple-element(x), index=0
 ROOT r = (f32[2], s32[]) tuple(y, n)
}
"""
)

#: what heron reads and writes, and XLA writes but does not read
OURS = {
    "index types": "a = f32[2,3]{1,0:#(u32)*(u64)} parameter(0)",
    "any tile": "a = f32[2,3]{0,1:T(*,2)} parameter(0)",
    "six bits": "a = f6e2m3fn[3] constant({0.125,-7.5,2})\nb = f6e3m2fn[3] constant({0.0625,-28,2})",
    "one bit": "a = s1[5] constant({0,-1,0,-1,-1})\nb = u1[5] constant({0,1,0,1,1})",
    "two splits": "a = f32[4,4]{1,0:SC(0:1)(1:2,3)} parameter(0)",
}

#: what XLA writes and then refuses to read
NOT_READ_BY_XLA = {
    "f4": "literals of s1 and u1 have no array form there",
    "layouts2": "the * of a tile is negative, which its reader takes for an error",
    "layout-index-types": "types of indices are for sparse arrays only",
    "send-done-pipelined": "what ends a transfer must have the transfer itself as its operand",
}
#: what the text says and HloModuleProto cannot; heron keeps all but the last in its own field
NOT_IN_MESSAGES = {
    "header-spmd": "allow_spmd_sharding_propagation is of the configuration",
    "stack-frames-spmd": "num_partitions is of the configuration",
    "schedule-incomplete": "replica_count is of the configuration",
    "thread-main": "a thread without a name is the main one",
}
