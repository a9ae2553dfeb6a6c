"""A child that dies or hangs costs its job only."""

from __future__ import annotations

import os
import time
from typing import Any

from tests.child import Child, serve


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    if job["do"] == "die":
        os.write(2, b"too bad")
        os._exit(3)
    if job["do"] == "hang":
        time.sleep(60)
    print("said aloud")
    return {"status": "ok", "pid": os.getpid(), "text": "x" * job.get("size", 1)}


def test_a_child_that_dies_is_replaced() -> None:
    with Child("tests.test_child", limit=30) as child:
        first = child.ask({"do": "work"})
        assert child.ask({"do": "work", "size": 200_000})["pid"] == first["pid"]
        died = child.ask({"do": "die"})
        assert died["status"] == "crash" and "too bad" in died["error"] and "3" in died["error"]
        assert child.ask({"do": "work"})["pid"] != first["pid"]


def test_a_child_that_hangs_is_replaced() -> None:
    with Child("tests.test_child", limit=5) as child:
        assert child.ask({"do": "work"})["status"] == "ok"
        child.limit = 0.2
        assert child.ask({"do": "hang"})["status"] == "timeout"
        child.limit = 30
        assert child.ask({"do": "work"})["status"] == "ok"


if __name__ == "__main__":
    serve(_answer)
