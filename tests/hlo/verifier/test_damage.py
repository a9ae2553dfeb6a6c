"""Damaged programs, in all modes: problems are found, nothing else comes out."""

from __future__ import annotations

import random

from heron.errors import HeronError
from heron.hlo.ir.op import misfits
from heron.hlo.proto import from_proto, to_proto
from heron.hlo.text import parse
from heron.hlo.verifier import in_modes, modes, problems
from tests.hlo.proto.programs import PROGRAMS
from tests.hlo.verifier.cases import ALL

EVERYTHING = in_modes(modes())
SEED = 1
WRONG = (None, 3, -1, 2.5, "", "{", "word", (), (1, 2), ((1, 2), (3,)), {}, True, [[]])


def test_changed_bytes() -> None:
    rand = random.Random(SEED)
    sources = [to_proto(parse(text)) for text in PROGRAMS.values()]
    for _ in range(600):
        data = bytearray(rand.choice(sources))
        for _ in range(rand.choice((1, 1, 2, 5))):
            at = rand.randrange(len(data))
            data[at : at + rand.randrange(3)] = rand.randbytes(rand.randrange(3))
        try:
            module = from_proto(bytes(data))
        except HeronError:
            continue
        for problem in problems(module, EVERYTHING):
            assert str(problem.error())


def test_attributes_and_extras_of_any_type() -> None:
    rand = random.Random(SEED)
    for case in ALL * 4:
        module = parse(case.kept)
        i = rand.choice(list(module.instructions()))
        if i.attrs and rand.random() < 0.7:
            i.attrs[rand.choice(list(i.attrs))] = rand.choice(WRONG)
        elif i.extras:
            name = rand.choice(list(i.extras))
            i.extras[name] = rand.choice(WRONG)
        for problem in problems(module, EVERYTHING):
            assert problem.code
            if not misfits(i) and problem.code != "HLO159":
                assert str(problem.error())
