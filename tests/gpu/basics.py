"""The lowest rungs of `tests.gpu.first`, one a process: ``python -m tests.gpu.basics driver|libraries|copies|load``.

The last line printed is JSON with the facts; ``wrong`` has what does not work.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from heron.errors import HeronError
from heron.targets import libcuda, libraries

#: around the sizes of blocks of pinned memory
SIZES = (0, 1, 3, 255, 4096, 65535, 65536, 65537, 1 << 20, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 9_000_003)


def driver() -> dict[str, Any]:
    """Version, device, attributes, and the functions that heron wants and the driver lacks."""
    from heron.runtime.cuda.allocator import free_and_total
    from heron.runtime.cuda.device import device
    from heron.runtime.cuda.driver import driver as opened

    d, library = opened(), libcuda.library()
    attributes = {n: libcuda.read(library.cuDeviceGetAttribute, number, 0) for n, number in libcuda.ATTRIBUTES.items()}
    found = device()
    with found.at_work():
        memory = free_and_total(found)
    lacks = [n for n in libcuda.FUNCTIONS if not d.has(n)]
    needed = [n for n in lacks if n not in libcuda.OPTIONAL]
    return {
        "version": d.version,
        "device": found.name,
        "capability": found.capability,
        "lacks": lacks,
        "conditional_nodes": d.has_conditional_nodes,
        "attributes": attributes,
        "memory": memory,
        "wrong": [f"the driver has no {n}" for n in needed],
    }


def loaded_libraries() -> dict[str, Any]:
    """Where each library is, or why it is not: programs that need none of them run without."""
    return {"libraries": {n: libraries.missing(n) or "found" for n in libraries.FILES}, "wrong": []}


def copies() -> dict[str, Any]:
    """Round trips of all sizes; and whether small arrays behind long work were read before they changed."""
    from heron.runtime.cuda.array import put
    from heron.runtime.cuda.device import device

    d, random, wrong = device(), np.random.default_rng(0), []
    for size in SIZES:
        x = random.integers(0, 255, size, np.uint8)
        if not np.array_equal(put(x, d).numpy(), x):
            wrong.append(f"{size} bytes come back changed")
    with d.at_work():
        far = d.memory.allocate(1 << 26)
        for size in (16, 4096, 65536):
            x = random.integers(0, 255, size, np.uint8)
            kept, address = x.copy(), d.memory.allocate(size)
            for _ in range(50):
                d.driver.cuMemsetD8Async(far, 1, 1 << 26, d.stream)  # work ahead of the copy
            d.staging.to_device(x, address)
            x[:] = 0
            back = np.empty(size, np.uint8)
            d.staging.to_host(address, back)
            if not np.array_equal(back, kept):
                wrong.append(f"an array of {size} bytes was read after it had changed")
            d.memory.free(address, size)
        d.memory.free(far, 1 << 26)
    return {"sizes": len(SIZES), "wrong": wrong}


def load(prepared: str) -> dict[str, Any]:
    """The code of every prepared program into the device's memory."""
    from heron import archive

    wrong, notes, slowest = [], {}, 0.0
    paths = sorted(Path(prepared).glob("*.heron")) if prepared else []
    for path in paths:
        start = time.perf_counter()
        try:
            made: Any = archive.load_program(str(path))
            made.load()
            if made.trace.notes:
                notes[path.name] = list(made.trace.notes)
            made.unload()
        except HeronError as error:
            wrong.append(f"{path.name}: {error.what} ({error.why})")
        slowest = max(slowest, time.perf_counter() - start)
    return {"programs": len(paths), "slowest": round(slowest, 3), "notes": notes, "wrong": wrong}


@click.command()
@click.argument("name", type=click.Choice(["driver", "libraries", "copies", "load"]))
@click.option("--rehearse", is_flag=True)
@click.option("--prepared", default="")
def main(name: str, rehearse: bool, prepared: str) -> None:
    """Climb one rung."""
    with contextlib.ExitStack() as stack:
        if rehearse:
            from tests.rehearsal.compiling import rehearsed

            stack.enter_context(rehearsed())
        work = {"driver": driver, "libraries": loaded_libraries, "copies": copies, "load": lambda: load(prepared)}
        try:
            facts = work[name]()
        except HeronError as error:
            facts = {"wrong": [error.render()]}
    click.echo(json.dumps(facts))
    sys.exit(1 if facts["wrong"] else 0)


if __name__ == "__main__":
    main()
