"""Passes and named pipelines by name. Each registers itself in its own file; there is no list to edit.

A pass called ``constant-folding`` lives in a file ``constant_folding.py`` somewhere under `heron.passes`, so asking for
one pass imports one file. Pipelines of a backend live in ``heron/backends/NAME/pipeline.py``.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from heron.errors import HeronError
from heron.passes.framework.base import Pass
from heron.passes.framework.pipeline import Pipeline

_P = TypeVar("_P", bound=type[Pass])
_F = TypeVar("_F", bound=Callable[..., Pipeline])

_PASSES: dict[str, type[Pass]] = {}
_ALIASES: dict[str, str] = {}
_PIPELINES: dict[str, Callable[..., Pipeline]] = {}


def register(cls: _P) -> _P:
    """Class decorator: make a pass known under its `name`. Raises PASS004 where there is none, or one has it."""
    if not cls.name:
        why = "a pass needs a class variable `name`"
        raise HeronError("PASS004", f"pass '{cls.__name__}' has no name", where=cls.__module__, why=why)
    package, _, file = cls.__module__.rpartition(".")
    for name in (cls.name, *cls.aliases):
        # a file named like the pass has it, and may not be imported yet; to look for it takes as long as to load ten,
        # and what heron itself has twice is seen when both are loaded, as tests do
        is_own = name.replace("-", "_") == file or name in cls.aliases
        if not (package.startswith("heron.passes.") and is_own):
            other = _pass_files().get(name.replace("-", "_"), cls.__module__)
            if other != cls.__module__:
                importlib.import_module(other)
        taken = _PASSES.get(_ALIASES.get(name, name))
        if taken is not None:
            why = f"{taken.__module__} has it"
            raise HeronError("PASS004", f"pass name '{name}' is taken", where=cls.__module__, why=why)
    _PASSES[cls.name] = cls
    _ALIASES.update(dict.fromkeys(cls.aliases, cls.name))
    return cls


def named_pipeline(name: str) -> Callable[[_F], _F]:
    """Decorator: make a function that builds a `Pipeline` known under `name`."""

    def add(build: _F) -> _F:
        if name in _PIPELINES:
            raise HeronError("PASS004", f"pipeline name '{name}' is taken", where=build.__module__)
        _PIPELINES[name] = build
        return build

    return add


def all_passes() -> list[type[Pass]]:
    """Every pass, by name."""
    _import_all()
    return [_PASSES[name] for name in sorted(_PASSES)]


def names() -> tuple[set[str], set[str]]:
    """Names of all passes and pipelines."""
    _import_all()
    return set(_PASSES), set(_PIPELINES)


def forget(passes: Iterable[str], pipelines: Iterable[str] = ()) -> None:
    """Take registered passes and pipelines out again."""
    for name in passes:
        del _PASSES[name]
    for name in pipelines:
        del _PIPELINES[name]


def get(name: str, /, **options: Any) -> Pass:
    """The pass of that name with those options.

    Raises PASS001 for an unknown name, PASS005 for an option the pass does not have or that has another type.
    """
    cls = find(name)
    known = {f.name: f for f in fields(cls)}
    for option, value in options.items():
        if option not in known:
            raise HeronError(
                "PASS005", f"pass '{name}' does not take {option}", hint=f"its options: {', '.join(known) or 'none'}"
            )
        default = known[option].default
        if isinstance(default, (bool, int, str, tuple)) and type(value) is not type(default):
            what = f"option {option} of pass '{name}' cannot be {value!r}"
            raise HeronError("PASS005", what, hint=f"one of the type of {default!r}, which is the default")
    return cls(**options)


def find(name: str) -> type[Pass]:
    """The class of the pass of that name. Raises PASS001 for an unknown one."""
    if name not in _PASSES:
        module = _pass_files().get(name.replace("-", "_"))
        if module is not None:
            importlib.import_module(module)
    if name not in _PASSES:
        _import_all()
        name = _ALIASES.get(name, name)
    if name not in _PASSES:
        raise _unknown("PASS001", "pass", name, _PASSES, "`heron passes` lists all")
    return _PASSES[name]


def pipelines() -> list[str]:
    """Names of all named pipelines."""
    _import_all()
    return sorted(_PIPELINES)


def about_pipeline(name: str) -> str:
    """The purpose of a named pipeline."""
    _import_all()
    return inspect.getdoc(_PIPELINES[name]) or ""


def pipeline(name: str, **settings: Any) -> Pipeline:
    """The named pipeline, built with `settings`, which are its own affair. Raises PASS006 for an unknown name."""
    if name not in _PIPELINES:
        _import_if_there(f"heron.backends.{name.replace('-', '_')}.pipeline")
    if name not in _PIPELINES:
        _import_all()
    if name not in _PIPELINES:
        raise _unknown("PASS006", "pipeline", name, _PIPELINES, f"there are {', '.join(sorted(_PIPELINES))}")
    return _PIPELINES[name](**settings)


def _unknown(code: str, kind: str, name: str, known: dict[str, Any], otherwise: str) -> HeronError:
    near = difflib.get_close_matches(name, known, 1)
    return HeronError(code, f"unknown {kind} '{name}'", hint=f"did you mean '{near[0]}'?" if near else otherwise)


@cache
def _modules() -> tuple[str, ...]:
    """All modules under `heron.passes`, found without importing them."""
    found: list[str] = []

    def scan(paths: list[str], prefix: str) -> None:
        for info in pkgutil.iter_modules(paths):
            full = f"{prefix}.{info.name}"
            if info.ispkg:
                scan([f"{path}/{info.name}" for path in paths], full)
            else:
                found.append(full)

    import heron.passes

    scan(list(heron.passes.__path__), "heron.passes")
    return tuple(found)


@cache
def _pass_files() -> dict[str, str]:
    """Modules by their last name, under which a pass is looked for. Helpers of several folders may share one."""
    return {module.rpartition(".")[2]: module for module in _modules()}


@cache
def _import_all() -> None:
    for module in _modules():
        importlib.import_module(module)
    # backends stand above passes, so they are looked up by name, never imported by a statement
    backends = importlib.util.find_spec("heron.backends")
    if backends is not None and backends.submodule_search_locations:
        for info in pkgutil.iter_modules(list(backends.submodule_search_locations)):
            if info.ispkg:
                _import_if_there(f"heron.backends.{info.name}.pipeline")


def _import_if_there(module: str) -> None:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return
    if spec is not None:
        importlib.import_module(module)
