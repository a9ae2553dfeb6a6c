"""The user's line of Python: where programs are made by calls, errors point at the call."""

from __future__ import annotations

import linecache
import sys
from itertools import islice
from pathlib import Path
from types import FrameType

from heron.errors import HeronError, Span

_HERE = str(Path(__file__).parent.parent)


def caller() -> Span | None:
    """The innermost call that is not made in heron itself; None when there is no such, or its text is not known."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    if frame is None:
        return None
    filename, number = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(filename, number).rstrip("\n")
    if not text:
        return None
    positions = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    first, last, begin, end = positions or (None, None, None, None)
    if first != number or begin is None:  # a call over several lines
        begin, end = len(text) - len(text.lstrip()), len(text)
    column = len(text.encode()[:begin].decode(errors="replace"))  # positions count bytes
    length = len(text) - column if last != first or end is None else max(1, end - begin)
    return Span(filename, number, column + 1, length, text)


def at_caller(error: HeronError) -> HeronError:
    """The same error at the user's line; where it was before becomes part of the reason."""
    span = caller()
    if span is None or isinstance(error.where, Span):
        return error
    reasons = [text for text in (error.why, error.where and f"the instruction is {error.where}") if text]
    return HeronError(error.code, error.what, where=span, why="; ".join(reasons) or None, hint=error.hint)
