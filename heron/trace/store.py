"""Traces on disk: JSON text, so that any tool can read them and `diff` can compare them."""

from __future__ import annotations

import dataclasses
import json
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heron import files
from heron.errors import HeronError
from heron.trace.record import Decision, KernelRecord, PassRecord, Record, Span, Stage

FORMAT = "heron-trace"
VERSION = 3


def to_json(trace: Record) -> dict[str, Any]:
    """All facts of `trace` as plain JSON values."""
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
        "decisions": _flat(trace.decisions),
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


def from_json(trace: Record, data: Any, name: str = "<trace>") -> None:
    """Fill a new record with the values that `to_json` gave. Raises CLI013 for other data, or another version."""
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
        trace.decisions = [Decision(**d) for d in data["decisions"]]
        trace.became = dict(data["became"])
        trace.memory = dict(data["memory"])
        trace.notes = list(data["notes"])
        trace.program, trace.buffers = str(data["program"]), dict(data["buffers"])
        trace.costs, trace.versions = dict(data["costs"]), dict(data["versions"])
        trace.texts, trace.devices = list(data["texts"]), dict(data["devices"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _no_trace(name, f"a field is missing or of the wrong kind: {error}") from None


def save(trace: Record, path: str | Path) -> None:
    """Write `trace` to `path`, one line a record. Raises CLI012."""
    lines = []
    for key, value in to_json(trace).items():
        if isinstance(value, list) and value:
            body = ",\n".join(f"  {json.dumps(v)}" for v in value)
            lines.append(f"{json.dumps(key)}: [\n{body}\n]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
    files.write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def load(trace: Record, path: str | Path) -> None:
    """Fill a new record from a file that `save` wrote. Raises CLI010, CLI013."""
    text = files.read_text(path)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_trace(str(path), f"it is not JSON: {error}") from None
    from_json(trace, data, str(path))


def _flat(records: Sequence[Any]) -> list[dict[str, Any]]:
    """The fields of records of one class, without the deep copies of `dataclasses.asdict`."""
    if not records:
        return []
    names = records[0].__slots__
    fields = operator.attrgetter(*names)
    return [dict(zip(names, fields(r), strict=True)) for r in records]


def _stage(data: dict[str, Any]) -> Stage:
    return Stage(data["name"], float(data["seconds"]), [_stage(c) for c in data["children"]], data["start"])


def _no_trace(name: str, why: str) -> HeronError:
    hint = "a trace is written by `heron compile FILE -o x.trace`"
    return HeronError("CLI013", f"'{name}' is not a heron trace", why=why, hint=hint)
