"""One HLO text through XLA (jaxlib): printed by default options, and its values on XLA's CPU where those are wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.child import serve


def read(job: dict[str, Any]) -> dict[str, Any]:
    """XLA's text of the file; with ``values``, a path, its outputs go there as ``arr_0``, ``arr_1``, …"""
    import jaxlib._hlo as hlo

    text = Path(job["file"]).read_text(encoding="utf-8", errors="replace")
    try:
        printed = hlo.hlo_module_from_text(text).to_string()
    except Exception as error:
        return {"status": "refused", "error": str(error)[:400]}
    answer = {"status": "ok", "text": printed}
    if job.get("values"):
        answer["ran"] = _ran(text, job)
    return answer


def _ran(text: str, job: dict[str, Any]) -> bool:
    from heron.hlo.text import parse
    from tests import xla_cpu
    from tests.hlo.text.corpus.values import inputs, plain

    try:
        arrays = inputs(parse(text), job["file"])
        if arrays is None:
            return False
        outputs = xla_cpu.run(text, *arrays)
    except Exception:
        return False
    with open(job["values"], "wb") as out:
        np.savez(out, *map(plain, outputs))
    return True


if __name__ == "__main__":
    serve(read)
