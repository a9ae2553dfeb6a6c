"""The GPU's warp intrinsics, each as what the lane leaves behind, what it waits for and what it computes then."""

from __future__ import annotations

import re

from heron.codegen.sim.collectives import REDUCTIONS, SHUFFLES
from heron.codegen.sim.flatten import split_arguments
from heron.records import dataclass

_CALL = re.compile(
    r"^\s*(%[\w.]+) = (?:tail )?call (?:[a-z]+(?:\([^)]*\))? )*?([\w{} ,]+?) @llvm\.nvvm\.([\w.]+)\((.*)$"
)


@dataclass(frozen=True, slots=True)
class Collective:
    """``result`` of ``type_`` = what lanes of ``mask`` compute of ``value`` (of ``value_type``) by ``function``.

    ``extra``: more arguments of that function. ``flag``: where the i1 of a result {value, i1} comes from.
    """

    result: str
    type_: str
    mask: str
    value: str
    value_type: str
    function: str
    extra: str = ""
    flag: str = ""


def collective(text: str) -> Collective | None:
    """The warp intrinsic a line calls, or None."""
    match = _CALL.match(text)
    if match is None:
        return None
    result, type_, name, rest = match.groups()
    arguments = [a.split() for a in split_arguments(rest)]
    types, values = [a[0] for a in arguments], [a[-1] for a in arguments]
    if found := re.fullmatch(r"shfl\.sync\.(\w+)\.(i32|f32)(p?)", name):
        mode, _, pair = found.groups()
        if mode not in SHUFFLES:
            return None
        flag = "shuffle" if pair else ""
        extra = f"{values[2]}, {values[3]}"
        return Collective(result, type_, values[0], values[1], types[1], f"shuffle.{mode}", extra, flag)
    if found := re.fullmatch(r"vote\.(all|any|uni|ballot)\.sync", name):
        return Collective(result, type_, values[0], values[1], "i1", f"vote.{found.group(1)}")
    if re.fullmatch(r"match\.any\.sync\.i(32|64)", name):
        return Collective(result, type_, values[0], values[1], types[1], "match")
    if re.fullmatch(r"match\.all\.sync\.i(32|64)p", name):
        return Collective(result, type_, values[0], values[1], types[1], "match_all", flag="match")
    if (found := re.fullmatch(r"redux\.sync\.(\w+)", name)) and found.group(1) in REDUCTIONS:
        return Collective(result, type_, values[1], values[0], "i32", f"redux.{found.group(1)}")
    return None


def leave(c: Collective, n: int) -> list[str]:
    """The lines that leave the lane's value as 64 bits in ``%sim.w{n}``."""
    bits, source = c.value_type, c.value
    lines = []
    if bits == "float":
        lines.append(f"  %sim.b{n} = bitcast float {source} to i32")
        bits, source = "i32", f"%sim.b{n}"
    if bits == "i64":
        lines.append(f"  %sim.w{n} = add i64 {source}, 0")
    else:
        lines.append(f"  %sim.w{n} = {'zext' if bits == 'i1' else 'sext'} {bits} {source} to i64")
    return lines


def take(c: Collective, n: int) -> list[str]:
    """The lines that compute the result after the lanes met."""
    kind, _, name = c.function.partition(".")
    common = f"ptr %sim.state, i32 %sim.lin, i32 {c.mask}"
    if kind == "shuffle":
        distance, clamp = c.extra.split(", ")
        call = f"@sim.shuffle(ptr %sim.state, i32 {SHUFFLES[name]}, i32 %sim.lin, i32 {c.mask}, i32 {distance}"
        lines = [f"  %sim.x{n} = call i64 {call}, i32 {clamp}, i32 {n})"]
    elif kind == "vote":
        lines = [f"  %sim.x{n} = call i64 @sim.ballot({common}, i64 0)"]
        if name != "ballot":
            return [*lines, *_vote(c, n, name)]
    else:
        lines = [f"  %sim.x{n} = call i64 @sim.{c.function}({common}, i64 %sim.w{n})"]
    lines.append(f"  %sim.y{n} = trunc i64 %sim.x{n} to i32")
    value_type = c.type_.strip("{ }").split(",")[0] if c.flag else c.type_
    value = f"%sim.y{n}"
    if value_type == "float":
        lines.append(f"  %sim.z{n} = bitcast i32 %sim.y{n} to float")
        value = f"%sim.z{n}"
    if not c.flag:
        return [*lines, f"  {c.result} = select i1 true, {value_type} {value}, {value_type} {value}"]
    if c.flag == "shuffle":
        lines += [f"  %sim.h{n} = lshr i64 %sim.x{n}, 32", f"  %sim.f{n} = trunc i64 %sim.h{n} to i1"]
    else:
        lines.append(f"  %sim.f{n} = icmp ne i64 %sim.x{n}, 0")
    return [
        *lines,
        f"  %sim.q{n} = insertvalue {c.type_} poison, {value_type} {value}, 0",
        f"  {c.result} = insertvalue {c.type_} %sim.q{n}, i1 %sim.f{n}, 1",
    ]


def _vote(c: Collective, n: int, name: str) -> list[str]:
    """all, any, uni: of the ballot and of what a full ballot would be."""
    lines = [f"  %sim.any{n} = icmp ne i64 %sim.x{n}, 0"]
    if name == "any":
        return [*lines, f"  {c.result} = and i1 %sim.any{n}, true"]
    lines += [f"  %sim.v{n} = call i64 @sim.members(ptr %sim.state, i32 %sim.lin, i32 {c.mask}, i64 0)"]
    lines.append(f"  %sim.all{n} = icmp eq i64 %sim.x{n}, %sim.v{n}")
    if name == "all":
        return [*lines, f"  {c.result} = and i1 %sim.all{n}, true"]
    return [*lines, f"  %sim.no{n} = xor i1 %sim.any{n}, true", f"  {c.result} = or i1 %sim.all{n}, %sim.no{n}"]
