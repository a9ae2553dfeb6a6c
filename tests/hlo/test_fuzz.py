"""Damaged text gives a module or a HeronError with a place, never anything else; what parses survives a round trip."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heron.errors import HeronError, Span
from heron.hlo.text import PrintOptions, parse, print_module
from heron.hlo.tools.compare import difference
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

TEXTS = Path(__file__).parent / "text"
ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"


@cache
def _texts() -> list[str]:
    """Programs, and the tables of small ones that have every attribute."""
    lines = [s.partition("\n")[2] for f in ("instructions", "corners") for s in _sections(f)]
    whole = [s.partition("\n")[2] for s in _sections("modules")]
    entries = [f"HloModule m\n{ADD}ENTRY e {{\n{body}\n}}\n" for body in lines]
    return [
        *((TEXTS / f"{name}.hlo").read_text() for name in ("features", "options")),
        *(program(name).read_text() for name in SMALL),
        *entries,
        *whole,
    ]


def _sections(name: str) -> list[str]:
    return (TEXTS / f"{name}.txt").read_text().split("\n== ")[1:]


_PIECE = re.compile(r"[\w.\-]+|\s+|.", re.DOTALL)
_WORDS = (
    'ROOT ENTRY { } ( ) [ ] , = : -> %x x {} {0} {0,1} " \\ /* */ // HloModule f32[] f32[2]{0} (f32[]) s32[999999999] '
    "f32[<=3] f32[?] constant({...}) constant((1,2)) nan inf -1 99999999999999999999999 0_1x2 3x3 b01f_01io->b01f "
    "dimensions= to_apply= metadata={ sharding={ origin={ statistics={ {{0},{1}} [2,2]<=[4] T(1,0) <=[8] ? constant(1) parameter(0) add tuple while fusion é \x00"
).split(" ")


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
    for options in (PrintOptions(), PrintOptions(operand_shapes=True, async_sugar=False, index_comments=False)):
        again = parse(print_module(module, options))
        assert difference(module, again) is None
    short = print_module(module, PrintOptions.short())
    assert print_module(parse(short), PrintOptions.short()) == short
    for form in (PrintOptions.canonical(), replace(PrintOptions.module_fingerprint(), canonical_order=False)):
        assert print_module(again, form) == print_module(module, form)
    try:
        verify(module)
    except HeronError as error:
        assert error.where is not None or "module" in error.what or "aliased" in error.what


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_damaged_programs(seed: int) -> None:
    texts = _texts()
    rng = random.Random(seed)  # a third of them programs
    which = rng.randrange(len(SMALL) + 2) if rng.random() < 0.3 else rng.randrange(len(texts))
    _accepts_or_explains(_damage(texts[which], seed))


@settings(max_examples=100)
@given(st.text(alphabet='fs32[]{}(),=%x.01<-> \n"/*:ROTENYHloMduc', max_size=60))
def test_noise(text: str) -> None:
    _accepts_or_explains("HloModule m\n" + text)
    _accepts_or_explains("HloModule m\nENTRY e {\n x = f32[2] parameter(0)\n y = " + text)
