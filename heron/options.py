"""Options of a compile, each with a default, one line of documentation and one environment variable.

The page docs/reference/options.md and the checks of ``-O NAME=VALUE`` and ``HERON_*`` are derived from the fields.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from heron import configuration
from heron.errors import HeronError
from heron.records import dataclass

#: which rewrite-rule classes each `math` setting lets fire
_MATH_CLASSES = {
    "ieee": {"exact"},
    "reassociate": {"exact", "reassociating"},
    "fast": {"exact", "reassociating", "finite-only"},
}


#: when sizes known only at run time are checked
SHAPE_CHECKS = ("runtime", "compile-time", "ignore")
#: when products become block kernels
TRITON = ("auto", "on", "off")
#: when TMA, a GPU's copy engine, loads operands
TMA = ("auto", "on", "off", "specialized")
#: what happens when a large part of a program's data moves between devices
RESHARDS = ("note", "warn", "error")
#: whether denormals count in CPU programs
DENORMALS = ("auto", "keep", "flush")
#: the checks of the simulated GPU
SIM_CHECKS = ("races", "bounds", "uninit", "divergence")


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A limit of a run's memory: ``bytes`` of its peak (``exe.memory.peak``), or ``percent`` of its unlimited temp."""

    bytes: int = 0
    percent: float = 0.0

    #: the accepted forms of the text
    RULE: ClassVar[str] = "it is bytes (800000000, 24MiB, 1.5 GB) or a part of temp, above 0 % and up to 100 % (60%)"

    @staticmethod
    def parse(text: str) -> MemoryLimit | None:
        """Parses a limit; None if the text is not one."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%|[KMGT]i?B?|B)?", text.strip(), re.IGNORECASE)
        if found is None or not (number := float(found[1])):
            return None
        unit = (found[2] or "B").upper()
        if unit == "%":
            return MemoryLimit(percent=number) if number <= 100 else None
        power = "BKMGT".index(unit[0])
        return MemoryLimit(bytes=int(number * (1024 if "I" in unit else 1000) ** power))


#: NVIDIA's libraries that programs for GPUs may call
LIBRARIES = ("cublaslt", "cublas", "cudnn", "cusolver", "cufft")


@dataclass(frozen=True, slots=True)
class Libraries:
    """The libraries of NVIDIA that a GPU program may call."""

    names: frozenset[str]

    #: the accepted forms of the text
    RULE: ClassVar[str] = "it is auto, none, or names separated by commas: " + ", ".join(LIBRARIES)

    @staticmethod
    def parse(text: str) -> Libraries | None:
        """Parses a list of libraries; None if a name is unknown."""
        if text == "auto":
            return Libraries(frozenset(LIBRARIES))
        names = frozenset() if text == "none" else frozenset(text.split(","))
        return Libraries(names) if names.issubset(LIBRARIES) else None


def _field(default: Any, doc: str, choices: tuple[Any, ...] = (), names: tuple[str, ...] = (), form: Any = None) -> Any:
    """A field of `Options`.

    Args:
        default: the value when nothing is set.
        doc: one line for docs and error messages.
        choices: the allowed values.
        names: the text is "", "all" or some of these names, separated by commas.
        form: a class whose ``parse`` reads the text and returns None for an invalid one.
    """
    return dataclasses.field(default=default, metadata={"doc": doc, "choices": choices, "names": names, "form": form})


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a compile. Immutable and hashable: a compile is a pure function of (module, target, options)."""

    check: str = _field("", "after every pass, verify the module, or also compare its values", ("", "verify", "values"))
    dump_dir: str | None = _field(None, "write the module into this folder after every pass that changed it")
    math: str = _field(
        "ieee", "the rewrites allowed to change values, and the accuracy of GPU maths", tuple(_MATH_CLASSES)
    )
    denormals: str = _field(
        "auto",
        "keep denormals in CPU programs, or take them for zero, as JAX's CPU does; auto: zero under JAX, else keep",
        DENORMALS,
    )
    threads: int = _field(0, "threads of a CPU program; 0: one for each CPU of the process")
    opt_level: int = _field(3, "LLVM optimisation level", (0, 1, 2, 3))
    deterministic: bool = _field(
        True, "GPU scatters apply their updates in a fixed order, so results repeat bit for bit"
    )
    shape_checks: str = _field(
        "runtime", "check that dynamic sizes fit when the program runs, when it compiles, or never", SHAPE_CHECKS
    )
    sim_check: str = _field("", "checks of the simulated GPU on every kernel", names=SIM_CHECKS)
    libraries: str = _field(
        "auto",
        "NVIDIA's libraries that GPU programs may call: auto, none, or names separated by commas",
        form=Libraries,
    )
    memory_limit: str = _field(
        "", "recompute values to stay below this peak: bytes (24MiB), or a part of temp (60%)", form=MemoryLimit
    )
    profile: bool = _field(False, "CPU programs measure the time of each step (`heron profile`)")
    graphs: bool = _field(True, "GPU programs run as CUDA graphs; off: each kernel is launched by itself")
    triton: str = _field(
        "auto", "fuse products with their neighbours as block kernels: if Triton is installed, always, never", TRITON
    )
    tma: str = _field(
        "auto",
        "load operands of block kernels by TMA (sm_90+): by cost model, wherever legal, never, or with producer warps",
        TMA,
    )
    lock: str = _field("", "a file of choices that `heron tune` measured on a device (docs/understand/triton.md)")
    frozen: bool = _field(False, "a choice that the lock file lacks is an error")
    compile_timeout: int = _field(0, "seconds after which a compile fails with the step in progress; 0: no limit")
    device_timeout: int = _field(600, "seconds that devices wait for others at a collective; 0: no limit")
    large_reshards: str = _field(
        "note", "a collective that moves much of a program's bytes is a note, a warning or an error", RESHARDS
    )
    reshard_share: int = _field(25, "the percentage of a program's bytes from which a reshard is large")
    pipeline_collectives: bool = _field(
        False, "loops gather what their next round needs, and exchange sums of the round before"
    )
    cache: bool = _field(False, "keep machine code and PTX in files for later compiles (docs/use/cache.md)")

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            _check(f, getattr(self, f.name))

    def allows(self, rule_class: str) -> bool:
        """Whether a rewrite rule of that class (``exact``, ``reassociating``, ``finite-only``) may fire."""
        return rule_class in _MATH_CLASSES[self.math]

    def replace(self, **changes: Any) -> Options:
        """A copy with some fields changed. Raises CLI020 for an unknown field and CLI021 for a bad value."""
        for name in changes:
            _field_named(name)
        return dataclasses.replace(self, **changes)

    def changed(self) -> dict[str, str]:
        """The options that differ from their defaults, as text. A trace stores these."""
        return {f.name: str(v) for f in dataclasses.fields(self) if (v := getattr(self, f.name)) != f.default}

    def with_settings(self, settings: Iterable[str]) -> Options:
        """A copy with ``NAME=VALUE`` texts applied, as given on the command line. Raises CLI020, CLI021."""
        changes: dict[str, Any] = {}
        for setting in settings:
            name, equals, value = setting.partition("=")
            f = _field_named(name.strip().replace("-", "_"))
            if not equals:
                raise _bad_value(f, setting, "it has the form NAME=VALUE")
            changes[f.name] = _from_text(f, value.strip())
        return dataclasses.replace(self, **changes) if changes else self

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Options:
        """The defaults, changed by ``heron.toml``, then by ``HERON_*`` variables. Raises CLI021 for an invalid value.

        A variable whose name looks like a misspelt option is an error too (CLI020). Other ``HERON_*`` names are
        ignored: another program may own them.

        Args:
            env: variables in place of the process's; ``heron.toml`` is not read then.
        """
        file = configuration.current() if env is None else configuration.Configuration()
        variables = os.environ if env is None else env
        # to read all variables of a process takes four times as long as to read their names
        named = tuple((name, variables[name]) for name in variables if name.startswith("HERON_"))
        return _from_variables(named, tuple(file.options.items()), file.path)

    @staticmethod
    def table() -> list[tuple[str, str, str, str]]:
        """Rows (name, environment name, default, doc line) for help texts and docs."""
        rows = []
        for f in dataclasses.fields(Options):
            choices = f.metadata["choices"]
            doc = f.metadata["doc"] + (f" ({', '.join(str(c) or 'off' for c in choices)})" if choices else "")
            if names := f.metadata["names"]:
                doc += f" (off, all, or some of {', '.join(names)})"
            shown = f.default if _is_number(f) else f.default or "off"
            rows.append((f.name, env_name(f.name), str(shown), doc))
        return rows


@functools.lru_cache(maxsize=8)
def _from_variables(
    variables: tuple[tuple[str, str], ...], settings: tuple[tuple[str, str], ...] = (), file: str = ""
) -> Options:
    """The defaults, changed by the settings of a file, then by variables; all are the same for most compiles."""
    known = {env_name(f.name): f for f in dataclasses.fields(Options)}
    changes: dict[str, Any] = {}
    for name, value in settings:
        f = _field_named(name.replace("-", "_"), file)
        changes[f.name] = _from_text(f, value, source=f"option '{name}' in {file}")
    for name, value in variables:
        if name == configuration.VARIABLE:
            continue
        if name in known:
            f = known[name]
            changes[f.name] = _from_text(f, value, source=name)
            continue
        near = difflib.get_close_matches(name[6:], [k[6:] for k in known], 1, cutoff=0.8)
        if near:
            raise HeronError("CLI020", f"unknown option {name} in the environment", hint=f"HERON_{near[0]}")
    return Options(**changes)


def env_name(field: str) -> str:
    """The environment variable of an option."""
    return f"HERON_{field.upper()}"


def _field_named(name: str, file: str = "") -> dataclasses.Field[Any]:
    fields = {f.name: f for f in dataclasses.fields(Options)}
    if name in fields:
        return fields[name]
    near = difflib.get_close_matches(name, fields, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"options are {', '.join(fields)}"
    raise HeronError("CLI020", f"unknown option '{name}'", where=file or None, hint=hint)


def _bad_value(f: dataclasses.Field[Any], value: object, why: str, source: str | None = None) -> HeronError:
    name = source or f"option '{f.name}'"
    return HeronError("CLI021", f"{name} cannot be {value!r}", why=why, hint=f"{f.name}: {f.metadata['doc']}")


_SWITCH = {"on": True, "1": True, "true": True, "off": False, "0": False, "false": False, "": False}


def _rule(f: dataclasses.Field[Any]) -> str:
    """The values that a field takes, in words."""
    choices = f.metadata["choices"]
    if choices:
        return "it is one of " + ", ".join(repr(c) if isinstance(c, str) else str(c) for c in choices)
    if names := f.metadata["names"]:
        return "it is off, all, or names separated by commas: " + ", ".join(names)
    if form := f.metadata["form"]:
        return form.RULE
    if _is_number(f):
        return "it is a whole number, 0 or more"
    return "it is on or off" if isinstance(f.default, bool) else "it is text"


def _is_number(f: dataclasses.Field[Any]) -> bool:
    return isinstance(f.default, int) and not isinstance(f.default, bool)


def _check(f: dataclasses.Field[Any], value: object, source: str | None = None) -> None:
    choices = f.metadata["choices"]
    if choices:
        fits = any(value == c and type(value) is type(c) for c in choices)
    elif names := f.metadata["names"]:
        choices = ("all", *names)
        fits = isinstance(value, str) and (value in ("", "all") or all(n in names for n in value.split(",")))
    elif form := f.metadata["form"]:
        fits = isinstance(value, str) and (value == "" or form.parse(value) is not None)
    elif isinstance(f.default, bool):
        fits = isinstance(value, bool)
    elif _is_number(f):
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    else:
        fits = value is None or isinstance(value, str)
    if not fits:
        near = difflib.get_close_matches(str(value), map(str, choices), 1)
        raise _bad_value(f, value, _rule(f) + (f"; did you mean '{near[0]}'?" if near else ""), source)


def _from_text(f: dataclasses.Field[Any], text: str, source: str | None = None) -> Any:
    """Parses a field's value. ``off`` and the empty text give the value that switches the option off."""
    value: Any = text
    if isinstance(f.default, bool):
        value = _SWITCH.get(text.lower(), text)
    elif isinstance(f.default, int):
        value = int(text) if text.isdecimal() else text
    elif text in ("", "off") and f.default in ("", None):
        value = f.default
    _check(f, value, source)
    return value
