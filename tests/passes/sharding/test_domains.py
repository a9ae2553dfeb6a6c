"""The passes domain-isolator, domain-remover and domain-verifier."""

from __future__ import annotations

import pytest

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.sharding.domain_isolator import DomainIsolator
from heron.passes.sharding.domain_remover import DomainRemover
from heron.passes.sharding.domain_verifier import DomainVerifier

PROGRAM = """HloModule m

ENTRY e {
  a = f32[8] parameter(0), sharding={maximal device=0}
  b = f32[8] negate(a), sharding={maximal device=1}
  c = f32[8] add(a, b), sharding={maximal device=1}
  d = f32[8] sine(c)
  t = (f32[8], f32[8]) tuple(a, c), sharding={{maximal device=0}, {maximal device=1}}
  x = f32[8] get-tuple-element(t), index=0, sharding={maximal device=0}
  y = f32[8] get-tuple-element(t), index=1, sharding={maximal device=0}
  u = (f32[8], f32[8], f32[8]) tuple(x, y, d), sharding={{maximal device=0}, {maximal device=0}, {maximal device=1}}
  ROOT r = (f32[8], f32[8], f32[8]) copy(u), sharding={{maximal device=0}, {maximal device=0}, {maximal device=1}}
}
"""


def _run(step: Pass, module: Module) -> bool:
    changed = step.run(module, PassContext())
    verify(module)
    return changed


def test_isolated_verified_and_removed():
    module = parse(PROGRAM)
    before = str(module)
    assert _run(DomainIsolator(), module) and not _run(DomainIsolator(), module)
    domains = [i for i in module.entry.instructions if i.opcode == "domain"]
    assert len(domains) == 2  # one for both uses of a on device 1, one for element 1 on device 0
    assert not _run(DomainVerifier(), module)
    assert str(parse(str(module))) == str(module)
    assert _run(DomainRemover(), module) and not _run(DomainRemover(), module)
    added = ["d = f32[8]{0} sine(%c)", "d = f32[8]{0} sine(%c), sharding={maximal device=1}"]
    assert str(module) in (before, before.replace(*added))


def _error(text: str) -> HeronError:
    with pytest.raises(HeronError) as error:
        DomainVerifier().run(parse(text), PassContext())
    return error.value


def test_refused():
    missing = _error(PROGRAM)
    assert missing.code == "SPMD005" and "'a'" in missing.what and "device=1" in missing.what
    domain = 'domain={kind="sharding", entry={maximal device=1}, exit={maximal device=2}}'
    text = f"""HloModule m

    ENTRY e {{
      a = f32[8] parameter(0), sharding={{maximal device=0}}
      b = f32[8] domain(a), {domain}
      ROOT r = f32[8] negate(b), sharding={{maximal device=1}}
    }}"""
    assert "'b' reads it as {maximal device=2}" in _error(text).what
    other = text.replace("device=2}}", "device=0}}").replace(
        "negate(b), sharding={maximal device=1}", "negate(b), sharding={replicated}"
    )
    assert "'r' reads it as {replicated}" in _error(other).what


def test_a_value_without_a_sharding_gets_its_domains():
    module = parse("""HloModule m

    ENTRY e {
      a = f32[8] parameter(0), sharding={maximal device=0}
      b = f32[8] domain(a), domain={kind="sharding", entry={maximal device=1}, exit={maximal device=0}}
      c = f32[8] negate(b)
      d = f32[8] sine(c)
      ROOT r = f32[8] domain(d), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}
    }""")
    assert _run(DomainRemover(), module)
    assert [i.extras["sharding"] for i in module.entry.post_order()] == ["{maximal device=0}"] + [
        "{maximal device=1}"
    ] * 2
