"""The versions and the machine: what another person needs to see the same."""

from __future__ import annotations

import platform
from importlib import metadata

from heron import __version__
from heron.report.document import Section, Table
from heron.report.subject import Subject
from heron.trace.summary import size

#: the packages whose versions matter to code and values
_PACKAGES = ("numpy", "ml_dtypes", "scipy", "xdsl", "llvmlite", "protobuf", "jax", "jaxlib", "nvidia-nvvm", "triton")


def environment(s: Subject) -> Section:
    """Versions of heron and of the packages it uses, the operating system, the target's figures."""
    versions = {"heron": __version__, "Python": platform.python_version(), **_packages()}
    system = {"system": f"{platform.system()} {platform.release()}", "processor": platform.machine()}
    t = s.target
    machine = {
        "target": t.name,
        "description": t.description,
        "cores": str(t.cores),
        "memory": size(t.memory_bytes),
        "memory bandwidth": f"{t.memory_bandwidth / 1e9:,.0f} GB/s",
        "f32 peak": f"{t.flops_of('f32') / 1e12:,.3g} Tflop/s",
    }
    options = s.options.changed()
    rows = [*versions.items(), *system.items(), *machine.items(), *((f"option {k}", v) for k, v in options.items())]
    return Section(
        "Environment",
        [Table.of("", "", rows=[(k, v) for k, v in rows])],
        {"versions": versions, "system": system, "target": machine, "options": options},
    )


def _packages() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
