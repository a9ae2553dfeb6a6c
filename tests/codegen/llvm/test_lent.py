"""Optimizers serve one module after another, and change nothing in them."""

from __future__ import annotations

import pytest

from heron.codegen.llvm import lent
from heron.codegen.llvm.jit import Jit

TEXT = """
define float @f(ptr %x, i64 %n) {{
entry:
  %slot = alloca float
  store float {start}, ptr %slot
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %at
  %s = load float, ptr %slot
  %sum = fadd float %s, %v
  store float %sum, ptr %slot
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %result = load float, ptr %slot
  ret float %result
}}
"""


def optimizer(machine: object = None) -> lent.Optimizer:
    return lent.Optimizer(machine, None, lent.all_passes, "")  # type: ignore[arg-type]


@pytest.mark.parametrize("shaped", [False, True])
def test_a_used_optimizer_makes_the_code_a_new_one_makes(shaped: bool) -> None:
    texts = [TEXT.format(start=float(n)) for n in range(3)]
    jit = Jit(shaped=shaped)
    first = [jit.compile(text).code for text in texts]
    assert len(set(first)) == 3
    for _ in range(3):
        assert [jit.compile(text).code for text in texts] == first


def test_one_serves_many() -> None:
    with lent.lent("one serves many", optimizer) as first:
        pass
    for _ in range(3):
        with lent.lent("one serves many", optimizer) as found:
            assert found is first


def test_two_at_a_time_are_two() -> None:
    with lent.lent("two", optimizer) as first, lent.lent("two", optimizer) as second:
        assert first is not second
    with lent.lent("two", optimizer) as again, lent.lent("another key", optimizer) as other:
        assert again in (first, second) and other not in (first, second)


def test_one_that_failed_is_not_lent_again() -> None:
    with pytest.raises(ZeroDivisionError), lent.lent("failed", optimizer) as failed:
        raise ZeroDivisionError
    with lent.lent("failed", optimizer) as found:
        assert found is not failed
