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


_SECTIONS = [s for f in (HERE, HERE.parent / "text") for s in (f / "instructions.txt").read_text().split("\n== ")[1:]]
#: by name
PROGRAMS = {name: entry(body) for name, _, body in (s.partition("\n") for s in _SECTIONS)}
PROGRAMS["features"] = (HERE.parent / "text" / "features.hlo").read_text()

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
    "one bit": "a = s1[5] constant({0,-1,0,-1,-1})\nb = u1[5] constant({0,1,0,1,1})",
    "two splits": "a = f32[4,4]{1,0:SC(0:1)(1:2,3)} parameter(0)",
}
