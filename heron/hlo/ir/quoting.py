"""Strings in quotes, as XLA's text has them."""

from __future__ import annotations

import re

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPE = re.compile(r"\\(?:[0-7]{1,3}|[xX][0-9a-fA-F]+|.)", re.DOTALL)


def unquote(token: str) -> str:
    """The string a quoted token stands for; escapes are C's, bytes beyond ASCII are UTF-8."""
    body = token[1:-1]
    if "\\" not in body:
        return body
    raw = _ESCAPE.sub(_unescape, body)
    try:
        return raw.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return raw


def _unescape(match: re.Match[str]) -> str:
    text = match.group()[1:]
    if text[0] in "xX" and len(text) > 1:
        return chr(int(text[-2:], 16))
    if text[0] in "01234567":
        return chr(int(text, 8) & 0xFF)
    return _ESCAPES.get(text, text)


def end_of_dictionary(text: str, start: int = 0) -> int:
    """The end of a dictionary whose opening brace is at `start`; -1 if it is not closed.

    As XLA finds it: braces are counted, but those in double quotes; other brackets mean nothing.
    """
    depth = 0
    for found in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    return -1


_BRACE = re.compile(r'[{}]|"(?:[^"\\]|\\.)*+(?:"|\Z)', re.DOTALL)
_PRINTED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}
_SPECIAL = re.compile(r"""[^ -~]|["'\\]""")


def quote(text: str) -> str:
    """A string as XLA prints it: in double quotes with C escapes, bytes beyond ASCII in octal."""
    return '"' + _SPECIAL.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    found = _PRINTED.get(char)
    return found or "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogatepass"))
