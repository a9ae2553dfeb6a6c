"""The modules in XLA's tests of its passes on collectives: values before and after heron's pass, on all devices.

    python -m tests.passes.collectives.xla_modules CHECKOUT [--only FILE] [--test NAME] [--show]

CHECKOUT is a folder with the files of XLA. Of each module it is checked that it verifies and keeps its values, and told
whether heron's pass changes it where XLA's does. Modules whose values cannot be compared (large arrays, loops of unknown
length, transfers to the host) are still run and verified.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heron.analysis.values.trip_count import trip_count
from heron.errors import HeronError
from heron.hlo.ir import replica_groups
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get

#: elements of all arrays of a module, times devices, that are evaluated
LARGEST = 1 << 22
_SIMPLIFIERS = "xla/hlo/transforms/simplifiers"
_COLLECTIVES = "xla/hlo/transforms/collectives"
_GPU = "xla/backends/gpu/transforms"
#: file of XLA: heron's passes, with options
FILES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "xla/service/all_gather_simplifier_test.cc": [("all-gather-dynamic-slice-simplifier", {})],
    "xla/service/all_gather_decomposer_test.cc": [("all-gather-decomposer", {})],
    "xla/service/all_reduce_promotion_test.cc": [("all-reduce-promotion", {})],
    "xla/service/all_reduce_reassociate_test.cc": [("all-reduce-reassociate", {})],
    "xla/service/all_reduce_reduce_scatter_reorder_test.cc": [("all-reduce-reduce-scatter-reorder", {})],
    "xla/service/all_reduce_simplifier_test.cc": [("all-reduce-simplifier", {})],
    "xla/service/collective_permute_decomposer_test.cc": [("collective-permute-decomposer", {})],
    "xla/service/collective_pipeliner_test.cc": [
        ("collective-pipeliner", {"direction": "early"}),
        ("collective-pipeliner", {"direction": "late"}),
    ],
    "xla/service/p2p_schedule_preparation_test.cc": [("p2p-schedule-preparation", {})],
    "xla/service/reduce_scatter_combiner_test.cc": [("reduce-scatter-combiner", {})],
    "xla/service/reduce_scatter_decomposer_test.cc": [("reduce-scatter-decomposer", {})],
    "xla/service/reduce_scatter_reassociate_test.cc": [("reduce-scatter-reassociate", {})],
    "xla/service/while_loop_all_reduce_code_motion_test.cc": [("while-loop-all-reduce-code-motion", {})],
    "xla/service/spmd/canonicalize_all_gather_for_cse_test.cc": [("canonicalize-all-gather-for-cse", {})],
    "xla/service/spmd/collective_permute_motion_test.cc": [("collective-permute-motion", {})],
    "xla/service/spmd/schedule_aware_collective_ops_cse_test.cc": [("collective-cse", {"distance": 100})],
    f"{_SIMPLIFIERS}/all_gather_pad_ds_simplifier_test.cc": [("all-gather-pad-ds-simplifier", {})],
    f"{_SIMPLIFIERS}/all_gather_permuted_ds_simplifier_test.cc": [
        ("all-gather-dynamic-slice-permuted-offset-simplifier", {})
    ],
    f"{_SIMPLIFIERS}/all_reduce_folder_test.cc": [("all-reduce-folder", {})],
    f"{_COLLECTIVES}/all_gather_broadcast_reorder_test.cc": [("all-gather-broadcast-reorder", {})],
    f"{_COLLECTIVES}/all_gather_combiner_test.cc": [("all-gather-combiner", {})],
    f"{_COLLECTIVES}/all_gather_cse_test.cc": [("collective-cse", {})],
    f"{_COLLECTIVES}/all_gather_remove_degenerate_dims_test.cc": [("all-gather-remove-degenerate-dims", {})],
    f"{_COLLECTIVES}/all_reduce_combiner_test.cc": [("all-reduce-combiner", {})],
    f"{_COLLECTIVES}/all_reduce_contiguous_test.cc": [("all-reduce-contiguous", {})],
    f"{_COLLECTIVES}/async_collective_creator_test.cc": [("async-collective-creator", {})],
    f"{_COLLECTIVES}/collective_permute_combiner_test.cc": [("collective-permute-combiner", {})],
    f"{_COLLECTIVES}/collective_permute_cse_test.cc": [("collective-cse", {})],
    f"{_COLLECTIVES}/collective_quantizer_test.cc": [("collective-quantizer", {})],
    f"{_COLLECTIVES}/collectives_schedule_linearizer_test.cc": [("collectives-schedule-linearizer", {})],
    f"{_COLLECTIVES}/convert_async_collectives_to_sync_test.cc": [("async-to-sync", {})],
    f"{_GPU}/collectives/all_gather_dynamic_slice_simplifier_test.cc": [("all-gather-dynamic-slice-simplifier", {})],
    f"{_GPU}/collectives/all_gather_major_dimension_rewriter_test.cc": [("collective-major-dimension", {"rows": 1})],
    f"{_GPU}/collectives/all_gather_optimizer_test.cc": [("all-gather-optimizer", {})],
    f"{_GPU}/collectives/all_reduce_blueconnect_test.cc": [("all-reduce-blueconnect", {"devices_per_host": 4})],
    f"{_GPU}/collectives/all_reduce_decomposer_test.cc": [("all-reduce-decomposer", {})],
    f"{_GPU}/collectives/all_reduce_splitter_test.cc": [("all-reduce-splitter", {})],
    f"{_GPU}/collectives/collective_permute_cycle_decomposer_test.cc": [("collective-permute-cycle-decomposer", {})],
    f"{_GPU}/collectives/collective_send_recv_combiner_test.cc": [("send-recv-combiner", {})],
    f"{_GPU}/collectives/collective_select_folder_test.cc": [("collective-select-folder", {})],
    f"{_GPU}/ragged_all_to_all_canonicalizer_test.cc": [("ragged-all-to-all-canonicalizer", {})],
    f"{_GPU}/ragged_all_to_all_decomposer_test.cc": [("ragged-all-to-all-decomposer", {})],
    f"{_GPU}/reduce_scatter_creator_test.cc": [("reduce-scatter-creator", {})],
    f"{_GPU}/windowed_einsum_handler_test.cc": [("windowed-einsum", {})],
}
_TEST = re.compile(r"^TEST_[FP]\(\s*\w+,\s*(\w+)\)", re.M)
_TEXT = re.compile(r"R\"(\w*)\((.*?)\)\1\"", re.S)
_YES = re.compile(
    r"IsOkAndHolds\(true\)|(?:EXPECT|ASSERT)_TRUE\(\s*(?:\w*changed\w*|Run|.*\.Run)|change\w*=\*/\s*true|RunPass\(\w+, true"
)
_NO = re.compile(
    r"IsOkAndHolds\(false\)|(?:EXPECT|ASSERT)_FALSE\(\s*(?:\w*changed\w*|Run|.*\.Run)|change\w*=\*/\s*false|RunPass\(\w+, false"
)
_COUNTS = re.compile(r"(replica|partition)\w*=\*/\s*(\d+)")


@dataclass(frozen=True, slots=True)
class Case:
    """A module of a test: its name, text, stated numbers of devices, and whether XLA's pass changes it."""

    name: str
    text: str
    counts: dict[str, int]
    changes: bool | None


def cases(text: str) -> Iterator[Case]:
    """All modules of a file of tests."""
    bounds = [*(m.start() for m in _TEST.finditer(text)), len(text)]
    for start, end in zip(bounds, bounds[1:], strict=False):
        body = text[start:end]
        name = _TEST.match(body)
        found = [t[1] for t in _TEXT.findall(body) if "ENTRY" in t[1] and "CHECK" not in t[1].split("ENTRY")[0]]
        rest = _TEXT.sub('""', body)
        yes, no = bool(_YES.search(rest)), bool(_NO.search(rest))
        counts = {kind: int(n) for kind, n in _COUNTS.findall(rest)}
        for n, module in enumerate(found):
            # with several modules it is not told which of them
            yield Case(
                f"{name[1] if name else '?'}{'' if len(found) == 1 else f'#{n}'}",
                module,
                counts,
                yes if yes != no and len(found) == 1 else None,
            )


def read(case: Case) -> Module:
    """The module, for as many devices as the test or else its collectives say."""
    module = parse(case.text)
    replicas = max(module.replica_count, case.counts.get("replica", 1))
    partitions = max(module.num_partitions, case.counts.get("partition", 1))
    for i in module.instructions():
        ids = [d for g in replica_groups.parse(i.attrs.get("replica_groups") or "{}") for d in g]
        ids += [d for pair in i.attrs.get("source_target_pairs") or () for d in pair]
        needed = max(ids, default=0) + 1
        if i.attrs.get("use_global_device_ids"):
            partitions = max(partitions, -(-needed // replicas))
        elif i.attrs.get("channel_id") is not None and "use_global_device_ids" not in i.op.attributes:
            partitions = max(partitions, needed)
        else:
            replicas = max(replicas, needed)
        if not replica_groups.parse(i.attrs.get("replica_groups") or "{}") and (factor := _factor(i)) > 1:
            others = partitions if i.attrs.get("channel_id") is not None else 1
            replicas = max(replicas, factor // others)
    module.set_counts(replicas, partitions)
    return module


def _factor(i: Instruction) -> int:
    """The devices in the only group of an all-gather or a reduce-scatter, by its shapes."""
    if i.opcode not in ("all-gather", "reduce-scatter", "all-gather-start"):
        return 1
    result = next(s for _, s in i.shape.leaves()) if i.opcode != "all-gather-start" else i.shape.at((1,))
    small, large = sorted(
        (i.operands[0].shape.dims[i.dimensions[0]], (result.tuple_shapes or (result,))[0].dims[i.dimensions[0]])
    )
    return large // small if small else 1


def unfit(module: Module) -> str:
    """The reason for which values cannot be compared; "" when they can."""
    total = sum(s.num_elements for i in module.instructions() for _, s in i.shape.leaves() if s.is_array)
    if total * module.replica_count * module.num_partitions > LARGEST:
        return "large"
    loops = [i for i in module.instructions() if i.opcode == "while"]
    if any((trip_count(i) or 1 << 20) > 200 for i in loops):
        return "long loops"
    return (
        "host"
        if any(i.opcode in ("infeed", "outfeed") or i.attrs.get("is_host_transfer") for i in module.instructions())
        else ""
    )


def outcome(case: Case, passes: list[tuple[str, dict[str, Any]]]) -> tuple[str, bool, str]:
    """The word for what became of the values, whether the module was changed, and details."""
    try:
        module = read(case)
        verify(module)
    except HeronError as error:
        return "not read", False, f"{error.code} {error.what}"
    reason, check = unfit(module), None
    if not reason:
        try:
            check = ValueCheck(module)
        except HeronError as error:
            reason = f"not evaluated: {error.code} {error.what}"
    changed = False
    try:
        for name, options in passes:
            changed |= PassContext().run_pass(get(name, **options), module)
        verify(module)
    except HeronError as error:
        return "refused", changed, f"{error.code} {error.what}"
    if check is None:
        return "not compared", changed, reason
    problem = check.problem(module)
    return ("differs", changed, problem) if problem else ("equal", changed, "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="", help="files whose path has this text")
    parser.add_argument("--test", default="", help="tests whose name has this text")
    parser.add_argument("--show", action="store_true", help="print the modules that are changed otherwise than by XLA")
    args = parser.parse_args()
    total: Counter[str] = Counter()
    words = ("equal", "not compared", "not read", "refused", "differs", "as XLA", "more", "less")
    for path, passes in FILES.items():
        if args.only not in path or not (args.checkout / path).exists():
            continue
        counts: Counter[str] = Counter()
        for case in cases((args.checkout / path).read_text()):
            if args.test not in case.name:
                continue
            word, changed, details = outcome(case, passes)
            counts[word] += 1
            how = (
                ""
                if case.changes is None or word == "not read"
                else "as XLA"
                if changed == case.changes
                else "more"
                if changed
                else "less"
            )
            counts[how] += bool(how)
            if word in ("differs", "refused", "not read") or how in ("more", "less"):
                print(f"  {case.name}: {word}, {how or 'unknown'} {details[:160]}", flush=True)
                if args.show:
                    print(case.text)
        print(
            f"{Path(path).name.removesuffix('_test.cc'):48s}"
            + "".join(f" {w} {counts[w]}," for w in words if counts[w]),
            flush=True,
        )
        total += counts
    print("\nall: " + ", ".join(f"{w} {total[w]}" for w in words))
    sys.exit(bool(total["differs"] + total["refused"]))


if __name__ == "__main__":
    main()
