"""Damages messages and reads them: ``python -m tests.hlo.proto.damage --count 100000``.

Whatever is not a module or a HeronError is written to the output folder, with what went wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from heron.errors import HeronError
from heron.hlo.proto import from_proto, to_proto
from heron.hlo.proto.schema import MESSAGES
from heron.hlo.text import parse, print_module
from heron.hlo.verifier import problems
from tests.hlo.proto.programs import PROGRAMS

MODULE = MESSAGES["HloModuleProto"]

_INTS = (0, 1, 2, 3, 5, -1, -2, 7, 100, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63))
_WORDS = ("", "a", "add", "reduce", "tuple", "constant", "while", "fusion", "x y", "%", "parameter", "\0", "9", "é")
_KINDS = {1: "double", 2: "float", 8: "bool", 9: "string", 12: "bytes"}


def survives(data: bytes, read: Callable[[bytes], Any] = from_proto) -> None:
    """Read, verify, print and write the message; HeronErrors are fine."""
    try:
        module = read(data)
        list(problems(module))
        print_module(module)
        from_proto(to_proto(module))
    except HeronError:
        pass


def tries(seed: int, count: int) -> Iterator[bytes]:
    """Messages with some bytes or some fields changed, in turn."""
    rnd = random.Random(seed)
    whole = [to_proto(parse(text)) for text in PROGRAMS.values()]
    for n in range(count):
        data = rnd.choice(whole)
        yield _bytes_changed(data, rnd) if n % 2 else _fields_changed(data, rnd)


def _bytes_changed(original: bytes, rnd: random.Random) -> bytes:
    data = bytearray(original)
    for _ in range(rnd.choice((1, 1, 2, 5))):
        at = rnd.randrange(len(data))
        data[at : at + rnd.randrange(3)] = rnd.randbytes(rnd.randrange(3))
    return bytes(data)


def _fields_changed(data: bytes, rnd: random.Random) -> bytes:
    message = MODULE.FromString(data)
    for _ in range(rnd.choice((1, 1, 2))):
        try:
            _mutate(message, rnd)
        except (ValueError, TypeError):  # a number too large for its field
            continue
    return message.SerializeToString()


def _mutate(message: Any, rnd: random.Random) -> None:
    """Change, add or drop one field, somewhere in the tree."""
    present = [field for field, _ in message.ListFields()]
    field = rnd.choice(present if present and rnd.random() < 0.75 else list(message.DESCRIPTOR.fields))
    value = getattr(message, field.name)
    many = hasattr(value, "append") or hasattr(value, "add")
    if rnd.random() < 0.05:
        message.ClearField(field.name)
    elif field.message_type is None and many:
        value.append(_value(rnd, field.type))
    elif field.message_type is None:
        setattr(message, field.name, _value(rnd, field.type))
    elif not many:
        value.SetInParent()
        _mutate(value, rnd)
    elif len(value) and rnd.random() < 0.9:
        _mutate(rnd.choice(value), rnd)
    else:
        value.add()


def _value(rnd: random.Random, field_type: int) -> Any:
    kind = _KINDS.get(field_type, "int")
    if kind in ("float", "double"):
        return rnd.choice((0.0, 1.0, float("nan"), -1e30))
    if kind == "bool":
        return rnd.random() < 0.5
    if kind == "string":
        return rnd.choice(_WORDS)
    if kind == "bytes":
        return rnd.choice((b"", b"a", b"\xff\xfe", b"{}", b"{"))
    return rnd.choice(_INTS)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=20000, help="messages to try")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--slow", type=float, default=1.0, help="seconds a message may take")
    p.add_argument("--out", type=Path, default=Path("fuzz"))
    a = p.parse_args()
    found, slowest, start = 0, 0.0, time.perf_counter()
    for n, data in enumerate(tries(a.seed, a.count)):
        began, wrong = time.perf_counter(), ""
        try:
            survives(data)
        except Exception:
            wrong = traceback.format_exc()
        seconds = time.perf_counter() - began
        slowest = max(slowest, seconds)
        if not wrong and seconds > a.slow:
            wrong = f"took {seconds:.2f} s"
        if wrong:
            found += 1
            a.out.mkdir(parents=True, exist_ok=True)
            path = a.out / f"damaged_{a.seed}_{n}.pb"
            path.write_bytes(data)
            print(f"{path}: {wrong.strip().splitlines()[-1]}\n{wrong}" if found <= 5 else path, flush=True)
    print(f"{a.count} messages, {found} wrong, slowest {slowest:.2f} s, {time.perf_counter() - start:.0f} s in all")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
