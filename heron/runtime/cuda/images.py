"""The code of a program's kernels on a device: machine code where it fits, or the PTX of the same kernels."""

from __future__ import annotations

from heron.errors import HeronError
from heron.runtime.cuda.device import CodeRefused, Device, runs
from heron.runtime.cuda.held import Held
from heron.runtime.cuda.program import Image


def load_image(held: Held, image: Image, notes: list[str]) -> int:
    """A module of the image, in the second form it has where the driver does not load the first, which `notes` says.

    Raises RUN041 if no form runs on the device, RUN045 if the driver refuses all.
    """
    first, *others = _forms(image, held.device)
    name = f"kernels for {image.sm}"
    try:
        return held.load(first, name)
    except CodeRefused as error:
        if not others or not error.may_differ:
            raise
        notes.append(f"machine code of the {name} was refused ({error.why}), and their PTX was loaded")
    return held.load(others[0], name)


def _forms(image: Image, device: Device) -> list[bytes]:
    """The forms of an image that run on a device, machine code first. Raises RUN041 if none does."""
    has = device.capability
    forms = ((image.code, True), (image.ptx, False))
    found = [code for code, is_machine_code in forms if code and runs(has, image.sm, machine_code=is_machine_code)]
    if found:
        return found
    raise HeronError(
        "RUN041",
        f"code for {image.sm} does not run on {device.name}",
        why=f"its compute capability is {has[0]}.{has[1]}" + ("" if image.ptx else ", and there is no PTX"),
        hint="--target cuda compiles for the GPU of this machine",
    )
