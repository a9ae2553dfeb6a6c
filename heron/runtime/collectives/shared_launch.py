"""A launch of a program that several processes share.

Each process says to the others which program it begins, and waits until they have begun the same one: processes that
run different programs, or come in different orders, hear of it before anything runs. While it waits, there or at a
collective, a process listens: where another one has failed or ended, it fails, too. A process that waits long tells the
others its place, for their messages.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

from heron.errors import HeronError
from heron.records import dataclass
from heron.runtime.collectives.channel import Channel, Key, Kind, Patience, Word, named

#: seconds after which who waits tells its place
_TELLS = 0.3
#: seconds in which the last messages of a process that has ended may still come
_GRACE = 1.0


@dataclass(frozen=True, slots=True)
class Title:
    """The facts that the processes' programs must have in common: the name, and digests of others."""

    name: str
    facts: tuple[tuple[str, int], ...]

    @staticmethod
    def of(name: str, **facts: Any) -> Title:
        """With facts whose text is the same in all processes."""
        return Title(name, tuple([(of, zlib.crc32(repr(fact).encode())) for of, fact in facts.items()]))


class SharedLaunch:
    """One launch. ``processes``: the others that take part. ``number``: the same one in all of them.

    The n-th launch of some processes is one launch, whatever becomes of it in each. `begin` comes first, then either
    `end` or `give_up`.
    """

    def __init__(self, channel: Channel, title: Title, processes: Sequence[int], timeout: int) -> None:
        self.channel, self.title, self.timeout = channel, title, timeout
        self.all = tuple(sorted(set(processes)))
        self.processes = [p for p in self.all if p != channel.rank]
        self.key: Key = (self.all, 0)
        self.number = 0

    # -- the beginning and the end -----------------------------------------------------------------------------------
    def begin(self) -> None:
        """Wait until all processes have begun this program.

        Raises RUN081 where one begins another program, RUN082 where one fails or ends, RUN088 where one is too late.
        """
        channel = self.channel
        channel.turn.acquire()
        try:
            self.key = (self.all, channel.counts[self.all])
            channel.counts[self.all] += 1
            self._say(Word(Kind.BEGINS, self.key, channel.next_number, self.title.facts, self.title.name))
            self.wait(self._have_all_begun, "the start", self._missing)
        except BaseException as error:
            self.give_up(error)
            raise
        self.number = max(channel.next_number, *(channel.others[p].begun[self.key].number for p in self.processes))
        channel.next_number = self.number + 1

    def end(self) -> None:
        """All went well."""
        for p in self.processes:
            self.channel.others[p].forget(self.key)
        self.channel.turn.release()

    def give_up(self, error: BaseException) -> None:
        """Tell the others the reason: they fail, too."""
        code = f"{error.code}: {error.what}" if isinstance(error, HeronError) else f"{type(error).__name__}: {error}"
        why = f" ({error.why})" if isinstance(error, HeronError) and error.why else ""
        self._say(Word(Kind.GAVE_UP, self.key, text=code + why))
        self.end()

    def _say(self, word: Word) -> None:
        for p in self.processes:
            self.channel.say(p, word)

    # -- waiting -----------------------------------------------------------------------------------------------------
    def wait(
        self,
        is_over: Callable[[], Any],
        place: str,
        missing: Callable[[], Sequence[int]],
        is_stopped: Callable[[], Any] = lambda: False,
    ) -> bool:
        """Wait at a place until it is over; False where devices of this process were stopped meanwhile.

        Args:
            missing: the processes it waits for.

        Raises RUN082 and RUN088 as `begin` does.
        """
        patience, told = Patience(), False
        while True:
            self.channel.listen()
            self._need_others(place, missing)
            if is_over():
                return True
            if is_stopped():
                return False
            spent = patience.spent
            if spent > _TELLS:
                self.channel.look_after(self.processes)
            if spent > _TELLS and not told:
                told = True
                text = f"waits at {place} of '{self.title.name}' for {named(missing())}"
                self._say(Word(Kind.WAITS, self.key, text=text))
            if self.timeout and spent > self.timeout:
                raise self._late(spent, place, missing())
            patience.pause()

    def _missing(self) -> list[int]:
        return [p for p in self.processes if self.key not in self.channel.others[p].begun]

    def _have_all_begun(self) -> bool:
        for p in self.processes:
            word = self.channel.others[p].begun.get(self.key) or self._elsewhere(p)
            if word is not None:
                self._need_same(p, word)
        return not self._missing()

    def _elsewhere(self, process: int) -> Word | None:
        """Another launch that a process has begun, and in which it waits for this one."""
        other = self.channel.others[process]
        (processes, count), here = other.last.launch, self.channel.rank
        is_open = here in processes and count >= self.channel.counts[processes] and processes != self.all
        return other.last if is_open and other.last.launch not in other.given_up else None

    def _need_same(self, process: int, word: Word) -> None:
        if word.launch == self.key and (word.text, word.program) == (self.title.name, self.title.facts):
            return
        rank, name, is_named_so = self.channel.rank, self.title.name, word.text == self.title.name
        differ = [a[0] for a, b in zip(self.title.facts, word.program, strict=False) if a != b]
        why = f"both are named '{name}', and differ in their {', '.join(differ)}" if is_named_so else None
        raise HeronError(
            "RUN081",
            f"process {rank} runs '{name}', process {process} runs {'another ' * is_named_so}'{word.text}'",
            why=why,
            hint="all processes must run the same programs in the same order",
        )

    def _need_others(self, place: str, missing: Callable[[], Sequence[int]]) -> None:
        """Raise RUN082 where another process has failed in this launch, or has ended."""
        for p in self.processes:
            other = self.channel.others[p]
            if self.key in other.given_up:
                self._need_same(p, other.begun[self.key])
                raise HeronError(
                    "RUN082",
                    f"process {p} has failed in '{self.title.name}'",
                    why=other.given_up[self.key].text,
                    hint=f"see what process {p} printed",
                )
            if other.ended and p in missing() and Patience.since(other.ended) > _GRACE:
                raise HeronError(
                    "RUN082",
                    f"process {p} has ended{' without a word' * other.is_lost}, and '{self.title.name}' needs it",
                    why=f"process {self.channel.rank} waits at {place} of '{self.title.name}'"
                    + "; a signal has killed the other, or it left without its exit functions" * other.is_lost,
                    hint=f"see what process {p} printed",
                )

    def _late(self, spent: float, place: str, missing: Sequence[int]) -> HeronError:
        return HeronError(
            "RUN088",
            f"process {self.channel.rank} has waited {spent:.0f} s for {named(missing)}",
            why="; ".join([f"it waits at {place} of '{self.title.name}'", *map(self._where, missing)]),
            hint="the option device_timeout sets the limit; 0: none",
        )

    def _where(self, process: int) -> str:
        other = self.channel.others[process]
        if other.waits.launch == self.key or self.key not in other.begun and other.waits.launch == other.last.launch:
            if other.waits.text:
                return f"process {process} {other.waits.text}"
        where = "has begun it" if self.key in other.begun else "has not come there"
        return f"process {process} {where}: it computes, or does not answer"
