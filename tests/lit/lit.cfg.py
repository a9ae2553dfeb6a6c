"""lit's view of this folder: ``lit tests/lit`` with heron and filecheck on the PATH. `tests/test_lit.py` is faster."""

import os
import sys

import lit.formats

config.name = "heron"  # type: ignore[name-defined]  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # type: ignore[name-defined]  # noqa: F821
config.suffixes = [".hlo", ".mlir", ".test"]  # type: ignore[name-defined]  # noqa: F821
config.test_source_root = os.path.dirname(__file__)  # type: ignore[name-defined]  # noqa: F821
config.environment["PATH"] = os.pathsep.join(  # type: ignore[name-defined]  # noqa: F821
    [os.path.dirname(sys.executable), os.environ.get("PATH", "")]
)
