"""Passes and rules of users: `rewrite` declares a rule in a few lines, `load` takes in a file of them."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from heron import files
from heron.errors import HeronError, Span
from heron.hlo.ir import op
from heron.passes.framework import registry
from heron.passes.rewriting import driver, rules
from heron.passes.rewriting.rules import Apply, Rule
from heron.passes.simplify.algebraic import RULES
from heron.records import dataclass

_MODULE = "heron_loaded_"
_MATH = ("exact", "reassociating", "finite-only")
_LAYOUTS = ("free", "kept", "only")


def rewrite(
    *opcodes: str,
    operand: str | tuple[str, ...] = (),
    math: str = "exact",
    floats: str = "",
    layouts: str = "free",
    into: str = "",
) -> Callable[[Apply], Apply]:
    """Decorator: make a function a rewrite rule for instructions with one of these opcodes.

    The function gets the instruction and a builder, and returns what may stand in its place, or None. The other
    arguments are as in `heron.passes.rewriting.rules`. The rule fires in algebraic-simplifier, or in a pass of
    its own, called ``into``.

    Raises HLO003 for an unknown opcode, PASS009 for an argument that is none of the choices, PASS004 for a taken name.
    """
    if not opcodes:
        raise HeronError("PASS009", "a rule needs the opcodes it is for", hint='@heron.rewrite("add")')
    for name in (*opcodes, *((operand,) if isinstance(operand, str) else operand)):
        if name != rules.ELEMENTWISE:
            op.get(name)
    asked = (("math", math, _MATH), ("floats", floats or math, _MATH), ("layouts", layouts, _LAYOUTS))
    for what, given, choices in asked:
        if given not in choices:
            raise HeronError("PASS009", f"a rule has no {what}={given!r}", hint=f"one of {', '.join(choices)}")

    def add(function: Apply) -> Apply:
        home = _pass_called(into)._rules if into else RULES
        if any(r.name == function.__name__ for r in home):
            raise HeronError("PASS004", f"rule name '{function.__name__}' is taken", hint="give the function another")
        register = rules.rule(*opcodes, operand=operand, math=math, floats=floats, layouts=layouts, home=home)
        return register(function)

    return add


class _Rules(driver.RewritePass):
    """Collects rules with the same ``into``."""

    _rules: list[Rule]

    @classmethod
    def rules(cls) -> list[Rule]:
        return cls._rules


def _pass_called(name: str) -> type[_Rules]:
    if name not in registry.names()[0]:
        made = type(name, (_Rules,), {"name": name, "_rules": [], "__doc__": f"User rules gathered in '{name}'."})
        registry.register(made)
    found = registry.find(name)
    if not issubclass(found, _Rules):
        raise HeronError("PASS004", f"rules cannot join '{name}'", why="it is a pass of another kind")
    return found


@dataclass(frozen=True, slots=True)
class Loaded:
    """The names that a file added: passes, pipelines and rules of algebraic-simplifier."""

    module: ModuleType
    passes: tuple[str, ...]
    pipelines: tuple[str, ...]
    rules: tuple[Rule, ...]

    def unload(self) -> None:
        """Take it all out again."""
        registry.forget(self.passes, self.pipelines)
        for r in self.rules:
            RULES.remove(r)
        driver.forget_tables()
        sys.modules.pop(self.module.__name__, None)


def load(path: str | Path) -> Loaded:
    """Run a Python file that registers passes, pipelines or rules.

    Raises CLI010 or CLI011 when it cannot be read, PASS015 when it is no Python, PASS016 when it fails on the way,
    PASS017 when it adds nothing, PASS004 when a name is taken. A file that fails adds nothing.
    """
    path = Path(path)
    text = files.read_text(path)
    passes, pipelines = registry.names()
    count = len(RULES)
    module = _new_module(path)
    try:
        _execute(module, path, text)
    finally:
        now_passes, now_pipelines = registry.names()
        added = Loaded(
            module,
            tuple(sorted(now_passes - passes)),
            tuple(sorted(now_pipelines - pipelines)),
            tuple(RULES[count:]),
        )
        if sys.exc_info()[0] is not None:
            added.unload()
    if not (added.passes or added.pipelines or added.rules):
        added.unload()
        raise HeronError(
            "PASS017",
            f"'{path}' has no pass, rule or pipeline",
            hint="decorate with @heron.rewrite, or @register or @named_pipeline of heron.passes.framework.registry",
        )
    return added


@contextmanager
def loaded(paths: Iterable[str | Path]) -> Iterator[list[Loaded]]:
    """The files' passes and rules, for as long as the block runs."""
    found: list[Loaded] = []
    try:
        for path in paths:
            found.append(load(path))
        yield found
    except HeronError:
        raise
    except Exception as error:
        place = place_in_loaded(error)
        if place is None:
            raise
        raise HeronError("PASS014", f"a loaded pass or rule failed: {_said(error)}", where=place) from error
    finally:
        for added in reversed(found):
            added.unload()


def _new_module(path: Path) -> ModuleType:
    name = _MODULE + path.stem.replace("-", "_").replace(".", "_")
    spec = importlib.util.spec_from_loader(name, loader=None, origin=str(path))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses look their annotations up there
    return module


def _execute(module: ModuleType, path: Path, text: str) -> None:
    try:
        code = compile(text, str(path), "exec")
    except SyntaxError as error:
        line, column = error.lineno or 1, max(1, error.offset or 1)
        place = _span(str(path), line, column)
        raise HeronError("PASS015", f"'{path}' is not Python: {error.msg}", where=place) from None
    try:
        exec(code, module.__dict__)
    except HeronError as error:
        place = place_in_loaded(error)
        raise HeronError(error.code, error.what, where=place or error.where, why=error.why, hint=error.hint) from error
    except (Exception, SystemExit) as error:
        raise HeronError(
            "PASS016", f"'{path}' failed while it was loaded: {_said(error)}", where=place_in_loaded(error)
        ) from error


def place_in_loaded(error: BaseException) -> Span | None:
    """The innermost line of a loaded file an exception came through."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_globals.get("__name__", "").startswith(_MODULE):
            return _span(frame.f_code.co_filename, line, 0)
    return None


def _span(path: str, line: int, column: int) -> Span:
    lines = Path(path).read_text(errors="replace").splitlines() if Path(path).exists() else []
    text = lines[line - 1] if line <= len(lines) else ""
    blank = len(text) - len(text.lstrip())
    return Span(path, line, column or blank + 1, 1 if column else max(1, len(text.strip())), text)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
