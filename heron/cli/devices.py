"""Shared by `run` and `eval` on several devices: their number, the files of each, and what is printed of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from heron.cli.common import print_json
from heron.cli.job import Job, exit_code
from heron.errors import HeronError

if TYPE_CHECKING:
    import numpy as np

    from heron.hlo.ir.evaluation import Device
    from heron.hlo.ir.module import Module


class Devices(click.ParamType):
    """``8``, or ``2x4``: replicas x partitions."""

    name = "devices"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int | None, int]:
        match = re.fullmatch(r"(?:(\d{1,9})x)?(\d{1,9})", str(value))
        if match is None:
            self.fail(f"{value!r} is neither a number nor like 2x4", param, ctx)
        return int(match[1]) if match[1] else None, int(match[2])


#: the option ``--devices``
devices_option = click.option(
    "--devices",
    type=Devices(),
    metavar="N|RxP",
    help="For N devices, or on R replicas of P partitions (default: the program's own counts).",
)


def counts(module: Module, devices: tuple[int | None, int] | None) -> tuple[int, int]:
    """Replicas and partitions. A number of devices alone are partitions where the program is for such."""
    if devices is None:
        return module.replica_count, module.num_partitions
    replicas, count = devices
    if replicas is not None:
        return replicas, count
    if count == module.replica_count * module.num_partitions:
        return module.replica_count, module.num_partitions
    return (1, count) if module.num_partitions > 1 or _has_partitions(module) else (count, 1)


def _has_partitions(module: Module) -> bool:
    """Whether a program whose header does not say so is for partitions: values are sharded, or channels lead across."""
    from heron.passes.sharding.model import shardy_form, tile_form

    instructions = (i for c in module.computations for i in c.instructions)
    channels = any(i.attrs.get("channel_id") is not None for i in instructions)
    return channels or max(shardy_form.device_count(module), tile_form.device_count(module)) > 1


def with_counts(module: Module, devices: tuple[int | None, int] | None) -> Module:
    """The module with other numbers of devices, where they are asked for."""
    replicas, partitions = counts(module, devices)
    if (replicas, partitions) != (module.replica_count, module.num_partitions):
        module = module.clone()
        module.set_counts(replicas, partitions)
    return module


def own_jobs(job: Job, devices: int) -> list[Job]:
    """The job of each device, or the one of all where no file name holds ``{}``. Raises CLI037."""
    if job.save is not None and "{}" not in job.save:
        what = f"every device would be saved to '{job.save}'"
        raise HeronError("CLI037", what, hint="write {} where the device's number goes")
    jobs = [job.for_device(n) for n in range(devices)]
    return jobs if jobs[0] != jobs[1] else jobs[:1]


def settle(
    devices: Sequence[Device],
    jobs: Sequence[Job],
    given: Sequence[Sequence[np.ndarray]],
    results: Sequence[list[np.ndarray]],
    document: dict[str, Any],
    as_json: bool,
) -> int:
    """Save, compare and print the outputs of each device; the exit code. ``given``: of each device, or of all."""
    documents: list[dict[str, Any]] = []
    code = 0
    for device, job, outputs in zip(devices, jobs, results, strict=True):
        documents.append({"device": device.number, "replica": device.replica, "partition": device.partition})
        rows = job.settle(given[device.number if len(given) > 1 else 0], outputs, documents[-1])
        code = max(code, exit_code(rows))
        if not as_json:
            click.echo(f"\ndevice {device.number} ({device})")
            job.show(outputs, rows)
    if as_json:
        print_json({**document, "devices": documents})
    return code
