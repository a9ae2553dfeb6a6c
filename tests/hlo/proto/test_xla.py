"""XLA (jaxlib) as the oracle: the same message as XLA writes, read by either side as the same module."""

from __future__ import annotations

from typing import Any

import pytest

from heron.hlo.proto import from_proto, to_proto
from heron.hlo.proto.schema import MESSAGES
from heron.hlo.text import parse, print_module
from heron.hlo.tools.compare import difference
from tests.hlo.proto.programs import NOT_IN_MESSAGES, NOT_READ_BY_XLA, PROGRAMS
from tests.support import NAMES, program

xla = pytest.importorskip("jaxlib._hlo")

#: XLA says more of what a short spelling wraps (names, metadata), and keeps an index of statistics that shows none
NOT_ALIKE = [name for name in PROGRAMS if "async" in name or name in ("alias-1", "stat-noindex")]
#: in which XLA takes -0 for an integer
MINUS_ZERO = ["features"]
FILES = [program(name, platform=p) for name in NAMES for p in ("cpu", "cuda")]


def _text(module: Any) -> str:
    options = xla.HloPrintOptions()
    options.print_large_constants = True
    return module.to_string(options)


def _message(data: bytes) -> Any:
    """A message without what XLA writes though it says nothing, computations by number."""
    found = MESSAGES["HloModuleProto"].FromString(data)
    found.DiscardUnknownFields()  # the module's own number
    for name in ("input_output_alias", "buffer_donor", "frontend_attributes", "schedule"):
        _drop_empty(found, name)
    for c in found.computations:
        for i in c.instructions:
            for name in ("metadata", "frontend_attributes", "statistics_viz", "sparsity_config"):
                _drop_empty(i, name)
    ordered = [type(c).FromString(c.SerializeToString()) for c in sorted(found.computations, key=lambda c: c.id)]
    del found.computations[:]
    found.computations.extend(ordered)
    return found


def _drop_empty(message: Any, name: str) -> None:
    if message.HasField(name) and not getattr(message, name).ByteSize():
        message.ClearField(name)


def _read_by_xla(data: bytes) -> str:
    return _text(xla.HloModule.from_serialized_hlo_module_proto(data))


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in (*MINUS_ZERO, *NOT_IN_MESSAGES)])
def test_programs(name: str) -> None:
    text = PROGRAMS[name]
    ours, theirs = parse(text), xla.hlo_module_from_text(text)
    written, original = to_proto(ours), theirs.as_serialized_hlo_module_proto()
    if name not in NOT_ALIKE:
        assert _message(written) == _message(original)
        assert difference(ours, from_proto(original), names=True, metadata=True) is None
    assert print_module(from_proto(original)) == _text(theirs)
    if name not in NOT_READ_BY_XLA:
        assert _read_by_xla(written) == _text(theirs)


@pytest.mark.parametrize("name", NOT_READ_BY_XLA)
def test_not_read_by_xla(name: str) -> None:
    for data in (to_proto(parse(PROGRAMS[name])), xla.hlo_module_from_text(PROGRAMS[name])):
        with pytest.raises(RuntimeError):
            _read_by_xla(data if isinstance(data, bytes) else data.as_serialized_hlo_module_proto())


@pytest.mark.parametrize("name", NOT_IN_MESSAGES)
def test_not_in_messages(name: str) -> None:
    """XLA reads from our message what it reads from its own."""
    theirs = xla.hlo_module_from_text(PROGRAMS[name])
    own = _read_by_xla(theirs.as_serialized_hlo_module_proto())
    assert own != _text(theirs)
    assert _read_by_xla(to_proto(parse(PROGRAMS[name]))) == own


@pytest.mark.parametrize("file", FILES, ids=[f"{f.parent.name}/{f.stem}" for f in FILES])
def test_workloads(file) -> None:
    text = file.read_text()
    ours, theirs = parse(text), xla.hlo_module_from_text(text)
    written, original = to_proto(ours), theirs.as_serialized_hlo_module_proto()
    assert _message(written) == _message(original)
    assert _read_by_xla(written) == _text(theirs)
    assert difference(ours, from_proto(original), names=True, metadata=True) is None


def test_stack_frames() -> None:
    """The text counts parents from 2, 1 being none; the message from 1."""
    tables = (
        '\nFileNames\n1 "f.py"\n\nFunctionNames\n1 "main"\n2 "f"\n\nFileLocations\n'
        "1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=4 end_column=5}\n"
        "2 {file_name_id=1 function_name_id=2 line=7 end_line=8 column=1 end_column=9}\n\n"
        "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=2 parent_frame_id=2}\n\n"
    )
    text = f'HloModule m\n{tables}ENTRY e {{ ROOT x = f32[] parameter(0), metadata={{op_name="x" stack_frame_id=2}} }}'
    ours, theirs = parse(text), xla.hlo_module_from_text(text)
    written = to_proto(ours)
    assert _message(written) == _message(theirs.as_serialized_hlo_module_proto())
    assert _read_by_xla(written) == _text(theirs) == print_module(ours)
    assert print_module(from_proto(written)) == print_module(ours)
