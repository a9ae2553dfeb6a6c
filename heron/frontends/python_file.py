"""``model.py:function``: a function of a Python file as a module; importing the file runs it.

Shapes of the arguments come from, first found: the text itself, ``model.py:f(f32[2,3], s32[])``; a name beside the
function, ``f_args = (…)``, a tuple of arrays or `jax.ShapeDtypeStruct` or a function that gives one; or from each
parameter, whose annotation is a shape (``x: "f32[2,3]"``) or which has a default value.
"""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from heron import files
from heron.errors import HeronError, Span
from heron.frontends.arguments import SHAPE, listed, one
from heron.frontends.jax import lower, need_jax
from heron.frontends.stablehlo.importer import parse
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.text import parse as parse_hlo
from heron.records import dataclass

_SPEC = re.compile(r"(?P<file>.+\.py)(?::(?P<name>\w[\w.]*)?(?P<shapes>\(.*)?)?", re.DOTALL)
_HINT = "model.py:f(f32[2,3],s32[]), or f_args = (…) in the file, or annotations such as x: 'f32[2,3]'"


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A function named on a command line: file, function (dots for attributes), and shapes in parentheses."""

    file: str
    name: str | None
    shapes: str | None


def named(text: str) -> PythonFunction | None:
    """The function that a text names, or None if it does not name a Python file."""
    match = _SPEC.fullmatch(text)
    return None if match is None else PythonFunction(match["file"], match["name"], match["shapes"])


def from_python(wanted: PythonFunction, platform: str | None = None) -> Module:
    """The module of a function in a Python file.

    Args:
        wanted: the file and function. The function may be plain, jitted by JAX or heron, or already lowered. It may
            also be a module or a program's text, or a function without parameters that returns one of these.
        platform: as for `from_jax`.

    Raises:
        HeronError: CLI010 (no such file), JAX001 (JAX is missing), JAX003 (the file or function raised, with the line),
            JAX004 (no such function), JAX005 (shapes of the arguments are unknown or wrong), JAX006 (no function).
    """
    files.read_bytes(wanted.file)  # says what is wrong with the path
    with _users(wanted, f"'{wanted.file}' cannot be imported"):
        space = _imported(wanted.file)
    value = _find(wanted, space)
    if (module := _as_module(value, wanted)) is not None:
        return module
    if not callable(value):
        _no_function(wanted, value)
    of_jit: Callable[..., Module] | None = getattr(value, "module", None)
    if of_jit is not None:  # heron.jit
        args = _arguments(wanted, space, value)
        with _users(wanted, f"'{wanted.name}' cannot be lowered"):
            return of_jit(*args)
    return _of_function(wanted, space, value, platform)


def _of_function(wanted: PythonFunction, space: ModuleType, value: Callable[..., Any], platform: str | None) -> Module:
    if not hasattr(value, "lower") and not _parameters(value) and wanted.shapes is None:
        with _users(wanted, f"'{wanted.name}' cannot be called"):
            given = value()
        if (module := _as_module(given, wanted)) is not None:
            return module
    args = _arguments(wanted, space, value)
    jax = need_jax()
    wide = any(getattr(a, "dtype", None) in _wide() for a in jax.tree_util.tree_leaves(args))
    with _users(wanted, f"'{wanted.name}' cannot be lowered"), jax.enable_x64(True) if wide else nullcontext():
        if not hasattr(value, "trace"):
            return lower(value, args, {}, platform=platform).module
        lowered = value.trace(*args).lower(lowering_platforms=None if platform is None else (platform,))
    return parse(lowered.as_text(debug_info=True), f"<jax {wanted.name}>")


def _wide() -> set[Any]:
    import numpy as np

    return {np.dtype(name) for name in ("int64", "uint64", "float64", "complex128")}


# -- the file --------------------------------------------------------------------------------------------------------
def _imported(file: str) -> ModuleType:
    """The file as a module, imported anew even if it was imported before; it imports from its own folder."""
    path = Path(file).resolve()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # a name that ends in .py always has them
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # dataclasses look there
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(path.stem, None)
        raise
    finally:
        with suppress(ValueError):  # the file may have changed it, too
            sys.path.remove(str(path.parent))
        if before is not None:
            sys.modules[path.stem] = before
    return module


def _find(wanted: PythonFunction, space: ModuleType) -> Any:
    public = [n for n, v in vars(space).items() if callable(v) and getattr(v, "__module__", None) == space.__name__]
    if wanted.name is None:
        hint = f"heron … {wanted.file}:{public[0]}" if public else "define a function"
        why = f"it has {', '.join(public[:8])}" if public else "it defines none"
        raise HeronError("JAX004", f"which function of '{wanted.file}'?", where=wanted.file, why=why, hint=hint)
    value: Any = space
    for part in wanted.name.split("."):
        if not hasattr(value, part):
            names = public if value is space else [n for n in dir(value) if n[0] != "_"]
            near = difflib.get_close_matches(part, names, 1)
            why = f"it has {', '.join(names[:8])}" if names else "it defines none"
            hint = f"did you mean '{near[0]}'?" if near else None
            raise HeronError("JAX004", f"'{wanted.file}' has no '{part}'", where=wanted.file, why=why, hint=hint)
        value = getattr(value, part)
    return value


def _as_module(value: Any, wanted: PythonFunction) -> Module | None:
    """An object that already is a program, as a module: a module, a function lowered or exported by JAX, or a text."""
    if isinstance(value, Module):
        return value
    if isinstance(value, str):
        from heron.frontends.loading import is_stablehlo

        return parse(value, wanted.file) if is_stablehlo(value) else parse_hlo(value, wanted.file)
    if hasattr(value, "as_text") and hasattr(value, "compiler_ir"):
        return parse(value.as_text(debug_info=True), f"<jax {wanted.name}>")
    if hasattr(value, "mlir_module_serialized"):
        return parse(value.mlir_module(), f"<jax {wanted.name}>")
    return None


def _no_function(wanted: PythonFunction, value: Any) -> NoReturn:
    what = f"'{wanted.name}' is neither a function nor a program"
    raise HeronError("JAX006", what, where=wanted.file, why=f"it is of type {type(value).__name__}")


# -- arguments -------------------------------------------------------------------------------------------------------
def _arguments(wanted: PythonFunction, space: ModuleType, value: Any) -> tuple[Any, ...]:
    if wanted.shapes is not None:
        return tuple(_struct(shape) for shape in listed(wanted.shapes, wanted.file))
    given = getattr(space, f"{str(wanted.name).replace('.', '_')}_args", None)
    if given is None:
        return tuple(_argument(wanted, p) for p in _parameters(value))
    if callable(given):
        with _users(wanted, f"'{wanted.name}_args' cannot be called"):
            given = given()
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def _parameters(value: Any) -> list[inspect.Parameter]:
    try:
        known = inspect.signature(value, eval_str=False).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p for p in known if p.kind not in variadic and p.kind is not inspect.Parameter.KEYWORD_ONLY]


def _argument(wanted: PythonFunction, p: inspect.Parameter) -> Any:
    if isinstance(p.annotation, str) and SHAPE.fullmatch(text := p.annotation.strip("\"' ")):
        return _struct(one(text, wanted.file))
    if p.default is not inspect.Parameter.empty:
        return p.default
    what = f"the shape of argument '{p.name}' of '{wanted.name}' is not known"
    raise HeronError("JAX005", what, where=wanted.file, hint=_HINT)


def _struct(shape: Shape) -> Any:
    return need_jax().ShapeDtypeStruct(shape.dims, shape.element_type.dtype)


# -- what users' code raises -----------------------------------------------------------------------------------------
@contextmanager
def _users(wanted: PythonFunction, what: str) -> Iterator[None]:
    """Raises JAX003 for an exception of the user's code, at the last line of the user's file in its traceback."""
    try:
        yield
    except HeronError:
        raise
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("jax", "jaxlib"):
            need_jax()
        raise _raised(wanted, what, error) from None
    except (Exception, SystemExit) as error:
        raise _raised(wanted, what, error) from None


def _raised(wanted: PythonFunction, what: str, error: BaseException) -> HeronError:
    lines = [line for line in str(error).splitlines() if line.strip()]
    why = f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
    return HeronError("JAX003", what, where=_line(wanted, error) or wanted.file, why=why)


def _line(wanted: PythonFunction, error: BaseException) -> Span | None:
    path = Path(wanted.file).resolve()
    if isinstance(error, SyntaxError) and error.lineno and Path(error.filename or "").resolve() == path:
        text = (error.text or "").rstrip("\n")
        return Span(wanted.file, error.lineno, error.offset or 1, 1, text)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == path]
    line = frames[-1].lineno if frames else None
    if line is None:
        return None
    text = linecache.getline(str(path), line).rstrip("\n")
    column = len(text) - len(text.lstrip()) + 1
    return Span(wanted.file, line, column, max(1, len(text.strip())), text)
