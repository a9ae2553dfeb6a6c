"""Generated programs give what the evaluator gives; ``python -m tests.fuzz`` tries thousands."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings

from tests.backends.agreement import check
from tests.hlo.generate import Program, programs

#: shrinking compiles hundreds of programs: `tests.fuzz` does that
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
_SETTINGS = settings(max_examples=40, derandomize=True, phases=_PHASES, suppress_health_check=list(HealthCheck))


@_SETTINGS
@given(programs())
def test_compiled_as_evaluated(program: Program) -> None:
    check(program)


@_SETTINGS
@given(programs())
def test_passes_and_buffers(program: Program) -> None:
    check(program, ["cpu"], buffers=True, passes=True)
