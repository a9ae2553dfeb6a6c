"""One line of ``heron doctor``: a part of an installation, its state, and its use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from heron.records import dataclass

State = Literal["ok", "missing", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one part.

    Attributes:
        part: its name.
        state: ``missing`` parts are not installed, ``broken`` ones are and do not work.
        found: a version, a number, or the reason of the state.
        gives: the use of the part.
        cure: a command or a sentence; empty where nothing has to be done.
        is_required: whether heron works without it.
    """

    part: str
    state: State
    found: str
    gives: str = ""
    cure: str = ""
    is_required: bool = False


#: the text of a part that works, or raises an exception with the reason
Check = Callable[[], str]


class Missing(Exception):
    """Raised by a check whose part is not installed; its text is the reason."""


def find(part: str, check: Check, gives: str = "", cure: str = "", is_required: bool = False) -> Finding:
    """Run a check. Whatever it raises makes a finding, never an end: the next part may be the one that matters."""
    try:
        return Finding(part, "ok", check(), gives, "", is_required)
    except Missing as reason:
        return Finding(part, "missing", str(reason), gives, cure, is_required)
    except Exception as error:
        reason = getattr(error, "what", None) or f"{type(error).__name__}: {error}"
        return Finding(part, "broken", " ".join(str(reason).split())[:200], gives, cure, is_required)
