"""``python -m tests.devices [NAME …]``: sharded JAX programs on heron, beside JAX's CPU with eight devices and with one.

Exit code 1 if a value, an element type or a result's sharding differs, or if only one of the two raises an error.
Where a program leaves the sharding of a result open and the two choose differently, that is told, and is no fault.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.devices.comparing import compare, outcomes
from tests.devices.program import library


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.devices", description=__doc__)
    parser.add_argument("names", nargs="*", help="programs, or families; all without any")
    parser.add_argument("--as-cpu", action="store_true", help="heron presents itself as cpu")
    parser.add_argument("--target", default="cpu", help="cpu or a simulated GPU")
    parser.add_argument("--list", action="store_true", help="print the programs")
    parser.add_argument("--trace", action="store_true", help="print where errors were raised")
    args = parser.parse_args()
    known = library()
    names = [n for n, p in known.items() if not args.names or {n, p.family} & set(args.names)]
    if args.list:
        print("\n".join(f"{known[n].family:12} {n}" for n in names))
        return
    with tempfile.TemporaryDirectory() as folder:
        platforms = ("as-cpu" if args.as_cpu else "heron", "cpu", "one")
        found = [outcomes(Path(folder), platform, names, args.target) for platform in platforms]
    bad = other = 0
    for name in names:
        ours, theirs, one = (f[name] for f in found)
        verdict = compare(known[name], ours, theirs, one)
        bad += bool(verdict.faults)
        other += bool(verdict.notes)
        if verdict.faults or verdict.notes:
            print(f"{known[name].family:12} {name:32} {'; '.join([*verdict.faults, *verdict.notes])}")
        if args.trace and verdict.faults:
            print(ours.get("where", ""), theirs.get("where", ""))
    print(f"{len(names)} programs, {bad} at fault, {other} with other choices")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
