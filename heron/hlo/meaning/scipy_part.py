"""SciPy's modules, loaded when needed: they are slow to import, and may be missing or broken where heron runs."""

from __future__ import annotations

import importlib
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
