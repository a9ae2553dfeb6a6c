"""Maps composed through whole computations and fusions, against the evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heron.analysis.indexing.computations import (
    MOST_WAYS,
    computation_indexings,
    computation_maps,
    parameter_indexings,
)
from heron.analysis.indexing.operands import input_to_output, output_to_input
from heron.errors import HeronError
from heron.evaluator import Evaluator
from heron.hlo import text
from heron.hlo.ir.instruction import Instruction

from .test_operands import Pairs, changed, differences, named

SUM = "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
#: program, integer parameters, and the ways in which each parameter is read for the (first) result
PROGRAMS: dict[str, tuple[str, dict[int, Any], list[list[str]]]] = {
    "moves": (
        """
  p0 = f32[6,4] parameter(0)
  s = f32[6,2] slice(p0), slice={[0:6], [0:4:2]}
  t = f32[2,6] transpose(s), dimensions={1,0}
  r = f32[12] reshape(t)
  ROOT a = f32[12] add(r, r)""",
        {},
        [["(d0) -> (d0 mod 6, (d0 floordiv 6) * 2), domain: d0 in [0, 11]"]],
    ),
    "there and back": (
        """
  p0 = f32[6,20] parameter(0)
  a = f32[4,30] reshape(p0)
  b = f32[4,5,6] reshape(a)
  c = f32[5,6,4] transpose(b), dimensions={1,2,0}
  d = f32[4,5,6] transpose(c), dimensions={2,0,1}
  ROOT e = f32[6,20] reshape(d)""",
        {},
        [["(d0, d1) -> (d0, d1), domain: d0 in [0, 5], d1 in [0, 19]"]],
    ),
    "two ways": (
        """
  p0 = f32[5,5] parameter(0)
  t = f32[5,5] transpose(p0), dimensions={1,0}
  p1 = f32[5] parameter(1)
  b = f32[5,5] broadcast(p1), dimensions={1}
  a = f32[5,5] add(p0, t)
  ROOT m = f32[5,5] multiply(a, b)""",
        {},
        [
            [
                "(d0, d1) -> (d0, d1), domain: d0 in [0, 4], d1 in [0, 4]",
                "(d0, d1) -> (d1, d0), domain: d0 in [0, 4], d1 in [0, 4]",
            ],
            ["(d0, d1) -> (d1), domain: d0 in [0, 4], d1 in [0, 4]"],
        ],
    ),
    "reduction of a product": (
        """
  p0 = f32[3,4] parameter(0)
  p1 = f32[4,5] parameter(1)
  d = f32[3,5] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[] constant(0)
  ROOT r = f32[3] reduce(d, z), dimensions={1}, to_apply=sum""",
        {},
        [
            ["(d0)[s0] -> (d0, s0), domain: d0 in [0, 2], s0 in [0, 3]"],
            ["(d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 2], s0 in [0, 3], s1 in [0, 4]"],
        ],
    ),
    "padding meets a slice": (
        """
  p0 = f32[4] parameter(0)
  z = f32[] constant(0)
  a = f32[10] pad(p0, z), padding=3_3
  ROOT b = f32[4] slice(a), slice={[5:9]}""",
        {},
        [["(d0) -> (d0 + 2), domain: d0 in [0, 1]"]],
    ),
    "one element": (
        """
  p0 = f32[4,3] parameter(0)
  a = f32[1,3] slice(p0), slice={[2:3], [0:3]}
  b = f32[1,3] negate(a)
  ROOT c = f32[1,1] slice(b), slice={[0:1], [1:2]}""",
        {},
        [["(d0, d1) -> (2, 1), domain: d0 in [0, 0], d1 in [0, 0]"]],
    ),
    "nothing is read": (
        """
  p0 = f32[4] parameter(0)
  z = f32[] constant(0)
  a = f32[10] pad(p0, z), padding=3_3
  ROOT b = f32[2] slice(a), slice={[8:10]}""",
        {},
        [[]],
    ),
    "starts of starts": (
        """
  p0 = f32[9] parameter(0)
  p1 = s32[5] parameter(1)
  p2 = s32[] parameter(2)
  i = s32[3] dynamic-slice(p1, p2), dynamic_slice_sizes={3}
  j = s32[3,1] reshape(i)
  g = f32[3,2] gather(p0, j), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={2}
  z = f32[] constant(0)
  ROOT r = f32[2] reduce(g, z), dimensions={0}, to_apply=sum""",
        {1: [8, 3, 0, 5, 1], 2: 1},
        [
            ["(d0)[s0]{rt0} -> (d0 + rt0), domain: d0 in [0, 1], s0 in [0, 2], rt0 in [0, 7]"],
            ["(d0)[s0]{rt0} -> (s0 + rt0), domain: d0 in [0, 1], s0 in [0, 2], rt0 in [0, 2]"],
            ["(d0) -> (), domain: d0 in [0, 1]"],
        ],
    ),
    "nested fusions": (
        """
  p0 = f32[8,3] parameter(0)
  p1 = f32[3,8] parameter(1)
  ROOT f = f32[24] fusion(p1, p0), kind=kLoop, calls=outer""",
        {},
        [
            ["(d0) -> (d0 mod 8, d0 floordiv 8), domain: d0 in [0, 23]"],
            ["(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 23]"],
        ],
    ),
    "parts of a tuple": (
        """
  p0 = f32[4,2] parameter(0)
  p1 = f32[2,4] parameter(1)
  t = (f32[2,4], f32[2,4]) fusion(p0, p1), kind=kLoop, calls=both
  a = f32[2,4] get-tuple-element(t), index=1
  ROOT n = f32[2,4] negate(a)""",
        {},
        [[], ["(d0, d1) -> (d0, d1), domain: d0 in [0, 1], d1 in [0, 3]"]],
    ),
}  # fmt: skip
FUSIONS = """
inner { a = f32[8,3] parameter(0)
 ROOT t = f32[3,8] transpose(a), dimensions={1,0} }
outer { a = f32[3,8] parameter(0)
 b = f32[8,3] parameter(1)
 c = f32[3,8] fusion(b), kind=kLoop, calls=inner
 d = f32[3,8] add(a, c)
 ROOT r = f32[24] reshape(d) }
both { a = f32[4,2] parameter(0)
 b = f32[2,4] parameter(1)
 c = f32[2,4] transpose(a), dimensions={1,0}
 d = f32[2,4] negate(b)
 ROOT t = (f32[2,4], f32[2,4]) tuple(c, d) }
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    body, given, want = PROGRAMS[name]
    m = text.parse(f"HloModule m\n{SUM}{FUSIONS}ENTRY e {{{body}\n}}\n")
    root = m.entry.root
    rng = np.random.default_rng(0)
    arrays: list[np.ndarray] = []
    for n, p in enumerate(m.entry.parameters):
        dtype = p.shape.element_type.dtype
        arrays.append(np.asarray(given[n] if n in given else rng.random(p.shape.dims), dtype))
    values: dict[Instruction, Any] = {}
    base = Evaluator(m, on_value=values.__setitem__).call(m.entry, *arrays)
    found = computation_indexings(root)
    for n, p in enumerate(m.entry.parameters):
        ways = found.get((p, 0), {})
        assert sorted(str(w and w.map) for w in ways) == sorted(want[n])
        pairs: Pairs = set().union(*(named(w, values) for w in ways if w is not None))
        if n in given:
            continue
        reached: Pairs = set()
        for at in np.ndindex(*p.shape.dims):
            other = [changed(a, at, False) if k == n else a for k, a in enumerate(arrays)]
            reached |= {(o, at) for o in differences(base, Evaluator(m).call(m.entry, *other))}
        assert reached == pairs


def test_origins_follow_composition() -> None:
    body, _, _ = PROGRAMS["starts of starts"]
    m = text.parse(f"HloModule m\n{SUM}ENTRY e {{{body}\n}}\n")
    (way,) = computation_indexings(m.entry.root)[m.entry.parameters[0], 0]
    assert way is not None
    assert [(v.source.name, str(v.index)) for v in way.runtime] == [("i", "(s0,)")]


def test_maps_of_a_fusion() -> None:
    body, _, _ = PROGRAMS["nested fusions"]
    fusion = text.parse(f"HloModule m\n{SUM}{FUSIONS}ENTRY e {{{body}\n}}\n").entry.root
    assert str(output_to_input(fusion, 1)) == "(d0) -> (d0 mod 8, d0 floordiv 8), domain: d0 in [0, 23]"
    assert str(input_to_output(fusion, 1)) == "(d0, d1) -> (d0 + d1 * 8), domain: d0 in [0, 7], d1 in [0, 2]"
    body, _, _ = PROGRAMS["parts of a tuple"]
    fusion = text.parse(f"HloModule m\n{SUM}{FUSIONS}ENTRY e {{{body}\n}}\n").entry.root.operands[0].operands[0]
    assert str(output_to_input(fusion, 0, 0)) == "(d0, d1) -> (d1, d0), domain: d0 in [0, 1], d1 in [0, 3]"
    assert str(output_to_input(fusion, 0, 1)) == "(d0, d1) -> KNOWN EMPTY(2)"
    assert [len(ways) for ways in parameter_indexings(fusion, 1)] == [0, 1]


def test_unknown_ops_are_read_anywhere() -> None:
    source = 'HloModule m\nENTRY e {\n p = f32[4] parameter(0)\n c = f32[4] custom-call(p), custom_call_target="x"\n'
    m = text.parse(source + " ROOT a = f32[4] add(c, p)\n}\n")
    (p,) = m.entry.parameters
    maps = computation_maps(m.entry)[p]
    assert len(maps) == 2 and None in maps


def test_ways_are_limited() -> None:
    """Each step doubles the number of ways; beyond a limit they are no longer told apart."""
    lines = [f"  a{k + 1} = f32[65536] add(a{k}, r{k})" for k in range(12)]
    steps = [f"  s{k} = f32[65536] slice(b{k}), slice={{[{2**k}:{65536 + 2**k}]}}" for k in range(12)]
    body = "".join(
        f"  z{k} = f32[] constant(0)\n  b{k} = f32[{65536 + 2**k}] pad(a{k}, z{k}), padding=0_{2**k}\n{steps[k]}\n"
        + lines[k].replace(f"r{k}", f"s{k}")
        + "\n"
        for k in range(12)
    )
    source = f"HloModule m\nENTRY e {{\n  a0 = f32[65536] parameter(0)\n{body}  ROOT n = f32[65536] negate(a12)\n}}\n"
    m = text.parse(source)
    found = computation_indexings(m.entry.root)
    assert max(map(len, found.values())) <= MOST_WAYS
    assert found[m.entry.parameters[0], 0] == {None: None}


def test_bodies_are_walked_once_and_not_too_deep() -> None:
    """Each of 40 computations calls the one before it twice; the 60th is not looked into."""
    for count, want in ((40, "(d0) -> (d0), domain: d0 in [0, 3]"), (60, "None")):
        bodies = ["c0 {\n ROOT p = f32[4] parameter(0)\n}\n"]
        for k in range(count):
            bodies.append(
                f"c{k + 1} {{\n p = f32[4] parameter(0)\n a = f32[4] call(p), to_apply=c{k}\n "
                f"b = f32[4] call(p), to_apply=c{k}\n ROOT r = f32[4] add(a, b)\n}}\n"
            )
        entry = f"ENTRY e {{\n p = f32[4] parameter(0)\n ROOT r = f32[4] call(p), to_apply=c{count}\n}}\n"
        m = text.parse("HloModule m\n" + "".join(bodies) + entry)
        assert {str(w) for w in computation_maps(m.entry)[m.entry.parameters[0]]} == {want}


def test_long_chains_end() -> None:
    """A map of too many symbols is none; a chain of reshapes that undo one another stays as it is."""
    windows = "".join(
        f"  w{k + 1} = f32[{2000 - k}] reduce-window(w{k}, z), window={{size=2}}, to_apply=sum\n" for k in range(300)
    )
    m = text.parse(
        f"HloModule m\n{SUM}ENTRY e {{\n  w0 = f32[2001] parameter(0)\n  z = f32[] constant(0)\n{windows}"
        "  ROOT n = f32[1701] negate(w300)\n}\n"
    )
    assert computation_maps(m.entry)[m.entry.parameters[0]] == {None}
    shapes = ["6,6,5", "4,9,5"]
    reshapes = "".join(f"  r{k + 1} = f32[{shapes[(k + 1) % 2]}] reshape(r{k})\n" for k in range(800))
    m = text.parse(
        f"HloModule m\nENTRY e {{\n  r0 = f32[6,6,5] parameter(0)\n{reshapes}  ROOT n = f32[6,6,5] negate(r800)\n}}\n"
    )
    (found,) = computation_maps(m.entry)[m.entry.parameters[0]]
    assert found is not None and found.is_identity


def test_tuples_have_no_map() -> None:
    m = text.parse("HloModule m\nENTRY e {\n ROOT t = token[] after-all()\n}\n")
    with pytest.raises(HeronError, match="GEN112"):
        computation_indexings(m.entry.root)
