"""Traces on disk: JSON text, so that any tool can read them and `diff` can compare them."""

from __future__ import annotations

import dataclasses
import json
import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from heron import files
from heron.errors import HeronError
from heron.trace.record import Decision, KernelRecord, PassRecord, Record, Span, Stage

FORMAT = "heron-trace"
VERSION = 4


def to_json(trace: Record) -> dict[str, Any]:
    """All facts of `trace` as plain JSON values."""
    return _facts(trace, _flat(trace.decisions))


def _facts(trace: Record, decisions: Sequence[Any]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "module": trace.module,
        "target": trace.target,
        "options": dict(trace.options),
        "stages": [dataclasses.asdict(s) for s in trace.stages],
        "spans": _flat(trace.spans),
        "passes": _flat(trace.passes),
        "kernels": _flat(trace.kernels),
        "thunks": dict(trace.thunks),
        "decisions": decisions,
        "became": dict(trace.became),
        "memory": dict(trace.memory),
        "notes": list(trace.notes),
        "program": trace.program,
        "buffers": trace.buffers,
        "costs": trace.costs,
        "versions": trace.versions,
        "texts": trace.texts,
        "devices": trace.devices,
    }


def _fill(trace: Record, data: Any, name: str) -> None:
    """Fill a new record with the values of a file. Raises CLI013 for other data, or another version."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise _no_trace(name, f'its "format" is not "{FORMAT}"')
    if data.get("version") != VERSION:
        raise _no_trace(name, f"its version is {data.get('version')!r}, this heron reads version {VERSION}")
    try:
        trace.module, trace.target = data["module"], data["target"]
        trace.options = dict(data["options"])
        trace.stages = [_stage(s) for s in data["stages"]]
        trace.spans = [Span(**s) for s in data["spans"]]
        trace.passes = [PassRecord(**p) for p in data["passes"]]
        trace.kernels = [KernelRecord(**k) for k in data["kernels"]]
        trace.thunks = dict(data["thunks"])
        trace.decisions = [Decision(*d) for d in data["decisions"]]
        trace.became = dict(data["became"])
        trace.memory = dict(data["memory"])
        trace.notes = list(data["notes"])
        trace.program, trace.buffers = str(data["program"]), dict(data["buffers"])
        trace.costs, trace.versions = dict(data["costs"]), dict(data["versions"])
        trace.texts, trace.devices = list(data["texts"]), dict(data["devices"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _no_trace(name, f"a field is missing or of the wrong kind: {error}") from None


def save(trace: Record, path: str | Path) -> None:
    """Write `trace` to `path`, one line a value. Raises CLI012.

    A decision, of which there are thousands, is a list of its values in the order of `Decision`.
    """
    facts = _facts(trace, list(map(_values_of(Decision), trace.decisions)))
    with files.replacing(path) as out:
        out.write(_encoded(facts))


def load(trace: Record, path: str | Path) -> None:
    """Fill a new record from a file that `save` wrote. Raises CLI010, CLI013."""
    text = files.read_text(path)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_trace(str(path), f"it is not JSON: {error}") from None
    _fill(trace, data, str(path))


def _encoded(facts: dict[str, Any]) -> bytes:
    import orjson  # most compiles write no trace

    try:
        return orjson.dumps(facts, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # names with lone surrogates are no UTF-8; the standard library writes them as escapes
        return json.dumps(facts, indent=2).encode()


def _flat(records: Sequence[Any]) -> list[dict[str, Any]]:
    """The fields of records of one class, without the deep copies of `dataclasses.asdict`."""
    if not records:
        return []
    names = records[0].__slots__
    return [dict(zip(names, values, strict=True)) for values in map(_values_of(type(records[0])), records)]


def _values_of(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of all fields of a record of this class."""
    return operator.attrgetter(*kind.__slots__)


def _stage(data: dict[str, Any]) -> Stage:
    return Stage(data["name"], float(data["seconds"]), [_stage(c) for c in data["children"]], data["start"])


def _no_trace(name: str, why: str) -> HeronError:
    hint = "a trace is written by `heron compile FILE -o x.trace`"
    return HeronError("CLI013", f"'{name}' is not a heron trace", why=why, hint=hint)
