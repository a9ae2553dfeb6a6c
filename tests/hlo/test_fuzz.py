"""Damaged text gives a module or a HeronError with a place, never anything else; what parses survives a round trip."""

from __future__ import annotations

import random
import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heron.errors import HeronError, Span
from heron.hlo.compare import difference
from heron.hlo.text import parse, print_module
from heron.hlo.verifier import verify
from tests.support import program

SMALL = (
    "softmax",
    "cond_switch",
    "heat_while",
    "conv_variants",
    "fft",
    "sort_topk",
    "cholesky_solve",
    "gather_scatter",
)

FEATURES = (Path(__file__).parent / "text" / "features.hlo").read_text()

_PIECE = re.compile(r"[\w.\-]+|\s+|.", re.DOTALL)
_WORDS = (
    'ROOT ENTRY { } ( ) [ ] , = : -> %x x {} {0} {0,1} " \\ /* */ // HloModule f32[] f32[2]{0} (f32[]) s32[999999999] '
    "f32[<=3] f32[?] constant({...}) constant((1,2)) nan inf -1 99999999999999999999999 0_1x2 3x3 b01f_01io->b01f "
    "dimensions= to_apply= metadata={ sharding={ parameter(0) add tuple while fusion é \x00"
).split(" ")


def _texts() -> list[str]:
    return [FEATURES, *(program(name).read_text() for name in SMALL)]


def _damage(text: str, seed: int) -> str:
    """Up to four changes to the pieces or characters of a text."""
    rng = random.Random(seed)
    if rng.random() < 0.1:
        return text[: rng.randrange(len(text))]
    pieces = _PIECE.findall(text)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(pieces))
        match rng.randrange(6):
            case 0:
                del pieces[at]
            case 1:
                pieces.insert(at, pieces[at])
            case 2:
                pieces[at] = rng.choice(_WORDS)
            case 3:
                pieces.insert(at, rng.choice(_WORDS))
            case 4:
                pieces[at] = pieces[rng.randrange(len(pieces))]
            case _:
                word = pieces[at]
                cut = rng.randrange(len(word)) if word else 0
                pieces[at] = word[:cut] + rng.choice('09az{}()[],.%"-_\n') + word[cut + 1 :]
        if not pieces:
            break
    return "".join(pieces)


def _accepts_or_explains(text: str) -> None:
    try:
        module = parse(text)
    except HeronError as error:
        assert isinstance(error.where, Span), error
        assert str(error)
        return
    again = parse(print_module(module))
    assert difference(module, again) is None
    try:
        verify(module)
    except HeronError as error:
        assert error.where is not None or "module" in error.what or "aliased" in error.what


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(which=st.integers(0, len(SMALL)), seed=st.integers(0, 2**32))
def test_damaged_programs(which: int, seed: int) -> None:
    _accepts_or_explains(_damage(_texts()[which], seed))


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='fs32[]{}(),=%x.01<-> \n"/*:ROTENYHloMduc', max_size=60))
def test_noise(text: str) -> None:
    _accepts_or_explains("HloModule m\n" + text)
    _accepts_or_explains("HloModule m\nENTRY e {\n x = f32[2] parameter(0)\n y = " + text)
