"""Every sharded program on rehearsed GPUs, to XLA's values: ``python -m tests.runtime.cuda.sharded [NAME …]``."""

from __future__ import annotations

import sys

from tests.runtime.cuda.test_devices import run_sharded
from tests.sharded_programs import NAMES

if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        print(name, ", ".join(f"{n} {what}" for what, n in run_sharded(name).items()), flush=True)
