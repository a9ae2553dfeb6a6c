"""The modules in XLA's tests of its partitioner, partitioned here and compared with their values on one device.

    python -m tests.passes.sharding.xla_modules CHECKOUT/xla/service/spmd/spmd_partitioner_test.cc [--only TEXT] [--largest N] [--seconds S] [--show]

Inputs are small integers. Modules that cannot be compared are counted by reason: arrays too large to evaluate, values
that depend on a random state, transfers to the host, values on one device by number, collectives of their own. They are
partitioned all the same, and their reshards are counted.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from heron.analysis.values.trip_count import trip_count
from heron.errors import HeronError
from heron.evaluator import evaluate, evaluate_devices
from heron.hlo.facts import is_device_id
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.devices import device_pipelines
from heron.passes.framework.checks import difference
from heron.passes.framework.context import PassContext
from heron.passes.framework.shares import joined, shares
from tests.passes.sharding.devices import inputs_of
from tests.passes.sharding.reshards import watched

#: elements of the largest array that is evaluated, and how many times as many all arrays of a module may have
LARGEST, ALL = 1 << 14, 16
_TEST = re.compile(r"TEST_P\(\w+,\s*(\w+)\)|TEST_F\(\w+,\s*(\w+)\)|R\"(\w*)\((.*?)\)\3\"|num_devices=\*/(\d+)", re.S)


def modules(text: str) -> Iterator[tuple[str, str, int]]:
    """The name of the test, the text and the number of devices of every module."""
    name, pending = "", list[str]()
    for match in _TEST.finditer(text):
        if match[1] or match[2]:
            for module in pending:
                yield name, module, 2
            name, pending = match[1] or match[2], []
        elif match[5]:
            for module in pending:
                yield name, module, int(match[5])
            pending = []
        elif "HloModule" in match[4] or "ENTRY" in match[4]:
            pending.append(match[4])


def count(text: str, stated: int) -> int:
    """The devices of a module: those its shardings name where the test that it is from says less."""
    tiles = re.findall(r"devices=\[([\d,]+)\]", text)
    meshes = re.findall(r"mesh\[([^\]]*)\]", text)
    return max([
        stated,
        *(math.prod(map(int, t.split(","))) for t in tiles),
        *(math.prod(int(n) for n in re.findall(r"=(\d+)", m)) for m in meshes),
    ])  # fmt: skip


def unfit(module: Module, largest: int = LARGEST) -> str:
    """The reason for which values cannot be compared; "" when they can."""
    total = 0
    manual = any("manual" in i.extras.get("sharding", "") for i in module.instructions())
    for i in module.instructions():
        size = max((s.num_elements for _, s in i.shape.leaves()), default=0)
        total += size
        if size > largest:
            return "large arrays"
        if Trait.RANDOM in i.op.traits and i.opcode != "rng-bit-generator":
            return "random state"
        if i.opcode in ("infeed", "outfeed", "send", "recv", "send-done", "recv-done"):
            return "transfers"
        if i.opcode == "while" and trip_count(i) is None:
            return "loops of unknown length"
        if "maximal" in i.extras.get("sharding", ""):
            return "one device by number"
        if Trait.COLLECTIVE in i.op.traits or is_device_id(i):
            return "collectives of its own"
    return "large arrays" if total > ALL * largest else "manual" if manual else ""


def partitioned(module: Module) -> Module:
    """The program of one device, which verifies."""
    made, context = module.clone(), PassContext()
    for pipeline in device_pipelines().values():
        pipeline.run(made, context)
    verify(made)
    return made


def compare(module: Module) -> str | None:
    """The difference between the partitioned program's values and the module's own; None when there is none."""
    made = partitioned(module)
    inputs = inputs_of(module)
    want = evaluate(module, *inputs)
    got = joined(module, made, evaluate_devices(made, shares(module, made, inputs)))
    for n, (a, b) in enumerate(zip(want, got, strict=True)):
        found = difference(np.asarray(a), np.asarray(b))
        if found is not None:
            return f"output {n}: {found}"
    return None


def outcome(text: str, devices: int, largest: int = LARGEST) -> tuple[str, str]:
    """What became of a module, in a word, and the details."""
    try:
        module = parse(text)
    except HeronError as error:
        return "not read", error.what
    module.set_counts(num_partitions=max(count(text, devices), module.num_partitions))
    reason, details = unfit(module, largest), ""
    if not reason:
        try:
            evaluate(module, *inputs_of(module))
        except HeronError as error:
            reason, details = "not evaluated", f"{error.code} {error.what}"
    try:
        if reason:
            partitioned(module)
            return reason, details
        found = compare(module)
    except HeronError as error:
        return "refused", f"{error.code} {error.what}"
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        return "failed", f"{type(error).__name__}: {str(error)[:200]} ({Path(at.filename).name}:{at.lineno})"
    return ("differs", found) if found else ("equal", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="tests whose name has this text")
    parser.add_argument("--seconds", type=float, default=0, help="stop after this time; the rest counts as left out")
    parser.add_argument("--largest", type=int, default=LARGEST, help="elements of the largest array that is evaluated")
    parser.add_argument("--show", action="store_true", help="print the modules that differ or fail")
    args = parser.parse_args()
    with watched() as reshards:
        counts = _compared(args)
    print()
    for word, count in counts.most_common():
        print(f"{word:24s} {count:5d}")
    print(f"reshards: {reshards.seen}; a share on the way is larger than both ends in {len(reshards.beyond)}")
    for text in reshards.avoidable:
        print(f"where a way without that exists: {text}")
    sys.exit(bool(counts["differs"] + counts["failed"] or reshards.avoidable))


def _compared(args: argparse.Namespace) -> Counter[str]:
    """What became of the modules of a file, and how many of each."""
    counts: Counter[str] = Counter()
    end = time.monotonic() + (args.seconds or 1e9)
    for name, text, devices in modules(args.file.read_text()):
        if args.only not in name:
            continue
        if time.monotonic() > end:
            counts["left out"] += 1
            continue
        found, details = outcome(text, devices, args.largest)
        counts[found] += 1
        if found in ("differs", "failed", "refused", "not read", "not evaluated"):
            print(
                f"{name} ({devices} devices): {found}: {details.splitlines()[0][:200] if details else ''}", flush=True
            )
            if args.show:
                print(text)
    return counts


if __name__ == "__main__":
    main()
