"""Orders of sends and receives between devices, which all run the same schedule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from heron.errors import HeronError
from heron.hlo.ir import replica_groups
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.verifier.rules import Problem, rule

#: the frontend attribute that tells who sends to whom
PAIRS = "_xla_send_recv_source_target_pairs"
Pairs = list[tuple[int, int]]
#: what a device does: send, or wait until the device it receives from has made a send
Step = tuple[Instruction, Instruction | None, dict[int, int]]


@rule("HLO193", mode="scheduled")
def receives_come_to_an_end(module: Module) -> Iterator[Problem]:
    """In the order of the schedule, no devices wait to receive what the others of them send only later."""
    for order in (module.schedule or {}).values():
        steps = _steps(module, order)
        if steps:
            yield from _stuck(steps)


def _steps(module: Module, order: list[Instruction]) -> list[Step]:
    """The sends of a sequence, and the waits for them; transfers whose other side is elsewhere are left out."""
    own = set(order)
    elsewhere = {_channel(i) for i in module.instructions() if i.opcode == "send" and i not in own}
    sends: dict[int, list[Instruction]] = defaultdict(list)
    for i in order:
        if i.opcode == "send" and _channel(i) not in elsewhere:
            sends[_channel(i)].append(i)
    if not sends:
        return []
    received: dict[int, int] = defaultdict(int)
    steps: list[Step] = []
    for i in order:
        if i.opcode == "send":
            steps.append((i, None, {}))
        elif i.opcode == "recv-done" and i.operands[0].opcode == "recv" and i.operands[0] in own:
            recv = i.operands[0]
            channel = _channel(recv)
            pairs, turn = _pairs(recv), received[channel]
            received[channel] += 1
            if pairs and not recv.attrs.get("is_host_transfer") and turn < len(sends[channel]):
                steps.append((i, sends[channel][turn], {target: source for source, target in pairs}))
    return steps


def _stuck(steps: list[Step]) -> Iterator[Problem]:
    """Let all devices go as far as they can; those that cannot go on wait for each other."""
    devices = {d for _, _, sources in steps for pair in sources.items() for d in pair}
    place = dict.fromkeys(devices, 0)
    number = {i: n for n, (i, _, _) in enumerate(steps)}
    waiting: dict[tuple[int, int], list[int]] = defaultdict(list)  # for a device to get behind a place
    work = list(devices)
    while work:
        d = work.pop()
        while place[d] < len(steps):
            _, send, sources = steps[place[d]]
            if send is not None and (source := sources.get(d)) is not None and place[source] <= number[send]:
                waiting[source, number[send]].append(d)
                break
            place[d] += 1
            work += waiting.pop((d, place[d] - 1), ())
    stuck = sorted(d for d in devices if place[d] < len(steps))
    if stuck:
        first, send, sources = steps[place[stuck[0]]]
        assert send is not None
        what = f"devices {', '.join(map(str, stuck[:8]))} would wait for each other forever"
        why = f"device {stuck[0]} waits in '{first.name}' for '{send.name}' of device {sources[stuck[0]]}"
        yield Problem("HLO193", what, first, why=why, hint="schedule sends ahead of the recv-done of other transfers")


def _channel(i: Instruction) -> int:
    return i.attrs.get("channel_id") or 0


def _pairs(i: Instruction) -> Pairs:
    """(source, target); none where the program does not tell, or in another form."""
    attributes = i.extras.get("frontend_attributes")
    text = attributes.get(PAIRS) if isinstance(attributes, dict) else None
    if not isinstance(text, str):
        return []
    try:
        return [(pair[0], pair[1]) for pair in replica_groups.parse(text) if len(pair) == 2]
    except HeronError:
        return []
