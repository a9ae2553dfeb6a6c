"""SciPy's modules, loaded when needed: they are slow to import, and may be missing or broken where heron runs."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

from heron.errors import HeronError


def scipy_part(name: str) -> Any:
    """The module ``scipy.NAME``. Raises RUN022 when it cannot be loaded."""
    try:
        return importlib.import_module(f"scipy.{name}")
    except ImportError as error:
        raise HeronError(
            "RUN022",
            f"scipy.{name} cannot be loaded, which computes this",
            why=str(error),
            hint="pip install --force-reinstall scipy",
        ) from None


def scipy_extension(package: str, name: str) -> Any:
    """The module ``scipy.PACKAGE.NAME`` of native code, without the package around it, which takes seven times as long
    to load as all else. A later import of the package finds the same module. Raises RUN022 as `scipy_part` does.
    """
    full = f"scipy.{package}.{name}"
    try:
        folder = Path(importlib.import_module("scipy").__file__ or "").parent / package
        if full in sys.modules:
            return sys.modules[full]
        spec = FileFinder(str(folder), (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec(full)
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except Exception:  # in an archive, say
        return scipy_part(f"{package}.{name}")
    if f"scipy.{package}" not in sys.modules:
        sys.modules.pop(full, None)  # a package only knows modules that were imported after it
    return module
