"""Lexer: MLIR text to a list of token strings, by one regular expression.

As in HLO text, a token is a plain `str` that shows what it is in its first character. Types, constants, lists of
integers and whole function types come as one token each: programs repeat them, so that reading them can be cached.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from heron.hlo.text import lexer as hlo_lexer

END = hlo_lexer.END

_SKIPPED = r"(?:\s++|//[^\n]*+)*+"
_TENSOR = r"tensor<(?:[^<>]++|<(?:[^<>]++|<[^<>]*+>)*+>)*+>"
_FLAT = r"tensor<[^<>]*+>"
#: what is in the parentheses of nearly every location: ``#loc1``, ``"name"(#loc1)``, ``"file":3:4 to :9`` or
#: ``callsite(#loc1 at #loc2)``
LOCATION = (
    r"(#loc\d*+)"
    r'|"([^"\\\n]*+)"(?:\((#loc\d*+)\)|:(\d{1,18}+):(\d{1,18}+)(?: to (\d{1,18}+)?:(\d{1,18}+))?)?'
    r"|callsite\((#loc\d*+) at (#loc\d*+)\)"
)
_LOCATION = re.sub(r"(?<!\\)\((?!\?)", "(?:", LOCATION)  # tokens have one group
_TOKEN = (
    r"%[\w$.\-]++(?:#\d++)?"
    rf"|{_TENSOR}"
    rf"|\((?:{_FLAT}(?:,[ ])?+)*+\)[ ]->[ ](?:{_FLAT}|\((?:{_FLAT}(?:,[ ])?+)++\))"  # a function type
    r'|dense<(?:"[^"]*+"|[^<>"]++)*+>'
    r"|array<[^<>]*+>"
    r"|\[[\d,\s\-]*+\]"  # integers
    r'|@?"(?:[^"\\\n]|\\.)*+"'
    rf"|loc\((?:{_LOCATION})\)"
    r"|[@^][\w$.\-]++"
    r"|[#!]?[A-Za-z_](?:[\w$]|\.(?=\w))*+"  # a word, the name of an attribute or of a type
    r"|0x[0-9A-Fa-f]++"
    r"|-?\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?"
    r"|->|\S"
)
#: the end is a token, too: blanks before it would else be tried from each of them
_MASTER = re.compile(rf"{_SKIPPED}({_TOKEN}|\Z)", re.DOTALL)


#: what a string escapes: a letter's control character, two hexadecimal digits of a byte, or the character itself
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t"}


def unquote(token: str) -> str:
    """The string a quoted token stands for; bytes beyond ASCII are UTF-8, or else taken one by one."""
    body = token[1:-1]
    if "\\" not in body:
        return body
    raw = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if len(m[1]) == 2 else _CONTROL.get(m[1], m[1]), body)
    try:
        return raw.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return raw


class Source(hlo_lexer.Source):
    """A StableHLO text, its tokens, and where they are; ``elsewhere``: the constants whose values it leaves out."""

    pattern = _MASTER

    def __init__(self, text: str, filename: str, elsewhere: Sequence[np.ndarray] = ()) -> None:
        super().__init__(text, filename)
        self.elsewhere = elsewhere
