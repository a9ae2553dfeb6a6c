"""Random programs partitioned and compared with the global program on the evaluator.

python -m tests.passes.sharding --count 20000 [--seed 0] [--only dot,reduce] [--show] [--compiled | --open | --target cpu]

A reshard in which a share on the way is larger than both ends, where a way without that exists, is a failure; others,
of uneven sizes in two dimensions, are counted. With --compiled only parameters and results keep their shardings, and the programs go through the stages of a compile.
With --open results have none either. With --target they are compiled for it and run.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys

from heron.hlo.text import parse
from tests.passes.sharding.cases import FAMILIES, case
from tests.passes.sharding.devices import agree, agree_compiled, agree_on, agree_open, inputs_of
from tests.passes.sharding.indexing import PROGRAMS, check
from tests.passes.sharding.reshards import watched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="families: " + ", ".join([*FAMILIES, *PROGRAMS]))
    parser.add_argument("--show", action="store_true", help="print each program that fails")
    parser.add_argument("--compiled", action="store_true", help="find shardings by propagation, run all passes")
    parser.add_argument("--open", action="store_true", help="the same, without the results' shardings")
    parser.add_argument("--target", help="compile for cpu or sim:sm_90, and run on global arrays")
    args = parser.parse_args()
    only = [name for name in args.only.split(",") if name]
    stages = agree_open if args.open else agree_compiled if args.compiled else agree
    compare = agree_on(args.target) if args.target else stages
    ran: collections.Counter[str] = collections.Counter()
    failed: collections.Counter[str] = collections.Counter()
    with watched() as reshards:
        for seed in range(args.seed, args.seed + args.count):
            name = random.Random(seed).choice(only or [*FAMILIES, *PROGRAMS])
            text = case(seed, [name])[1] if name in FAMILIES else ""
            ran[name] += 1
            try:
                if name in PROGRAMS:
                    check(name, seed, compare)
                else:
                    module = parse(text)
                    compare(module, inputs_of(module, seed), 0.0)
            except Exception as error:
                failed[name] += 1
                first = str(error).strip().splitlines() or [""]
                print(f"seed {seed}: {name}: {type(error).__name__}: {first[0][:150]}", flush=True)
                if args.show:
                    print(text, error)
    for name in [*FAMILIES, *PROGRAMS]:
        print(f"{name:24s} {ran[name]:6d} {failed[name]:6d}")
    print(f"{'all':24s} {ran.total():6d} {failed.total():6d}")
    print(f"reshards: {reshards.seen}; a share on the way is larger than both ends in {len(reshards.beyond)}")
    sys.exit(failed.total() > 0)


if __name__ == "__main__":
    main()
