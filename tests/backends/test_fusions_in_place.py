"""Outputs of one fusion that lie in its inputs, in any order: none is stored before another one's input is read."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest

from heron.compiling import compile
from heron.hlo.text import parse
from tests.backends.fusions_in_place import TARGETS, check, random_fusion

FUSION = """HloModule m, input_output_alias={ ALIASES }

plus { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }

several {
  x = TYPE parameter(0)
  y = TYPE parameter(1)
  u = ARRAY parameter(2)
  zero = s32[] constant(0)
BODY
  ROOT all = (TYPE, TYPE) tuple(f, g)
}

ENTRY main {
  x = TYPE parameter(0)
  y = TYPE parameter(1)
  u = ARRAY parameter(2)
  ROOT r = (TYPE, TYPE) fusion(x, y, u), kind=kInput, calls=several
}
"""
#: a type, that of what is summed, and the outputs f and g
PROGRAMS = {
    "sums in parts of their own": (
        "s32[]",
        "s32[70]",
        """  v = s32[14,5] reshape(u)
  s = s32[] reduce(u, zero), dimensions={0}, to_apply=plus
  t = s32[] reduce(v, zero), dimensions={0,1}, to_apply=plus
  f = s32[] add(x, s)
  g = s32[] add(y, t)""",
    ),
    "results at other places": (
        "s32[40,40]",
        "s32[40,40,70]",
        """  s = s32[40,40] reduce(u, zero), dimensions={2}, to_apply=plus
  t = s32[40,40] transpose(s), dimensions={1,0}
  f = s32[40,40] add(x, s)
  g = s32[40,40] add(y, t)""",
    ),
    "an output of no result beside one at another place": (
        "s32[40,40]",
        "s32[40,40,70]",
        """  s = s32[40,40] reduce(u, zero), dimensions={2}, to_apply=plus
  t = s32[40,40] transpose(s), dimensions={1,0}
  f = s32[40,40] negate(x)
  g = s32[40,40] add(y, t)""",
    ),
    "a tile for each": (
        "s32[8]",
        "s32[130,8]",
        """  s = s32[8] reduce(u, zero), dimensions={0}, to_apply=plus
  b = s32[130,8] broadcast(s), dimensions={1}
  m = s32[130,8] multiply(u, b)
  t = s32[8] reduce(m, zero), dimensions={0}, to_apply=plus
  f = s32[8] add(x, s)
  g = s32[8] add(y, t)""",
    ),
}


def program(name: str, places: tuple[int, int]) -> str:
    """A program whose outputs may lie in the parameters of these numbers."""
    type_, array, body = PROGRAMS[name]
    aliases = ", ".join(f"{{{n}}}: ({place}, {{}}, may-alias)" for n, place in enumerate(places))
    text = FUSION.replace("ALIASES", aliases).replace("BODY", body)
    return text.replace("TYPE", type_).replace("ARRAY", array)


@pytest.mark.parametrize("places", [*permutations((0, 1))], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_outputs_lie_in_inputs(name: str, places: tuple[int, int]) -> None:
    check(program(name, places))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("name", "places", "shared"),
    [
        ("sums in parts of their own", (0, 1), True),
        ("sums in parts of their own", (1, 0), False),
        ("results at other places", (0, 1), True),
        ("results at other places", (1, 0), False),
        ("a tile for each", (1, 0), True),
    ],
)
def test_buffers_are_shared_where_all_is_read_first(
    name: str, places: tuple[int, int], shared: bool, target: str
) -> None:
    """A result that may not lie in its parameter is copied there by a kernel of its own, or from a temporary."""
    exe = compile(parse(program(name, places)), target)
    assert (len(exe.kernels) == 1 and exe.memory["temp"] == 0) is shared, exe.stage("buffers")


READS_AGAIN = """HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }

plus { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }

several {
  x = s32[2,130] parameter(0)
  y = s32[2,130] parameter(1)
  zero = s32[] constant(0)
  s = s32[2] reduce(y, zero), dimensions={1}, to_apply=plus
  t = s32[2] reduce(x, zero), dimensions={1}, to_apply=plus
  f = s32[2] reverse(t), dimensions={0}
  g = s32[2,130] negate(y)
  ROOT all = (s32[2], s32[2,130], s32[2]) tuple(s, g, f)
}

ENTRY main {
  x = s32[2,130] parameter(0)
  y = s32[2,130] parameter(1)
  ROOT r = (s32[2], s32[2,130], s32[2]) fusion(x, y), kind=kInput, calls=several
}
"""


def test_a_reduction_where_its_result_is_needed_reads_its_array_later() -> None:
    """The reduction of x is no part of the kernel: a result is computed again where it is read, after g is stored."""
    check(READS_AGAIN)


@pytest.mark.parametrize("seed", [*range(20), 70, 139, 182, 245, 252, 288, 430, 442])
def test_random_fusions(seed: int) -> None:
    check(random_fusion(Random(seed)))
