"""heron's `dataclass` is the standard library's: every method and rule, on classes of each shape."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
from collections.abc import Callable
from dataclasses import KW_ONLY, FrozenInstanceError, InitVar, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

import heron
from heron.records import dataclass

KINDS = [{}, {"slots": True}, {"frozen": True}, {"frozen": True, "slots": True}, {"eq": False}, {"kw_only": True}]


def _classes(
    made: Callable[..., Any], **options: bool
) -> list[tuple[type, list[tuple[Any, ...]], list[dict[str, Any]]]]:
    """Classes of many shapes, each with arguments to make two or three different objects of it."""

    @made(**options)
    class Empty:
        """Nothing."""

    @made(**options)
    class Point:
        x: int
        y: int = 3

        def __repr__(self) -> str:
            return f"<{self.x} {self.y}>"

    @made(**options)
    class Deep(Point):
        z: list[int] = field(default_factory=list)
        shown: int = field(default=1, repr=False)
        other: int = field(default=2, compare=False)
        LIMIT: ClassVar[int] = 7

    @made(**options)
    class Derived:
        a: float
        twice: float = field(init=False)
        always: int = field(default=5, init=False)
        made: dict[str, int] = field(default_factory=dict, init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", 2 * self.a)

    @made(**options)
    class Hashed:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

    @made(**options)
    class Named:
        a: int
        _: KW_ONLY
        b: int = 4

    @made(**options)
    class Given:
        a: int
        b: InitVar[int] = 2

        def __post_init__(self, b: int) -> None:
            object.__setattr__(self, "a", self.a + b)

    return [
        (Empty, [()], []),
        (Point, [(1,), (1, 2), (1, 3)], [{"x": 1}, {"y": 2, "x": 1}]),
        (Deep, [(1, 2), (1, 2, [4]), (1, 2, [4], 5, 6)], [{"x": 1, "other": 3}]),
        (Derived, [(1.5,), (2.0,)], [{"a": 1.5}]),
        (Hashed, [(1,), (2,)], [{"a": 1}]),
        (Named, [(1,), (2,)], [{"a": 1, "b": 2}]),
        (Given, [(1,), (1, 3)], [{"a": 1, "b": 2}]),
    ]


def _tried(what: Callable[[], Any]) -> Any:
    try:
        return what()
    except Exception as error:
        return type(error), re.sub(r"^.*?(?=__init__)", "", str(error))


def _facts(cls: type, positional: list[tuple[Any, ...]], named: list[dict[str, Any]]) -> Any:
    """All that one can see of a class and of objects of it."""
    makers = [lambda a=a: cls(*a) for a in positional] + [lambda n=n: cls(**n) for n in named]
    if any(f.kw_only for f in fields(cls)):
        makers = [lambda n=n: cls(**n) for n in named]
        makers += [lambda a=a: _tried(lambda: cls(*a)) for a in positional]
    objects = [make() for make in makers]
    return [
        [(f.name, f.type, f.init, f.repr, f.compare, f.hash, f.kw_only) for f in fields(cls)],
        [_tried(lambda o=o: repr(o)) for o in objects],
        [[_tried(lambda o=o, p=p: (o == p, o != p)) for p in objects] for o in objects],
        [_tried(lambda o=o: hash(o)) if cls.__eq__ is not object.__eq__ else None for o in objects],
        [_tried(lambda o=o: dataclasses.asdict(o)) for o in objects],
        [_tried(lambda o=o: repr(copy.deepcopy(o))) for o in objects],
        [_tried(lambda o=o: repr(replace(o))) for o in objects],
        [_tried(lambda o=o, f=f: setattr(o, f.name, 1)) for o in objects for f in fields(cls)],
        [_tried(lambda o=o, f=f: delattr(o, f.name)) for o in objects for f in fields(cls)],
        [hasattr(o, "__dict__") for o in objects],
        _tried(lambda: cls(1, 2, 3, 4, 5, 6, 7)),
        getattr(cls, "__match_args__", None),
        dataclasses.is_dataclass(cls),
        cls.__hash__ is None,
    ]


@pytest.mark.parametrize("options", KINDS, ids=lambda kind: " ".join(kind) or "plain")
def test_classes_are_as_those_of_the_standard_library(options: dict[str, bool]) -> None:
    ours, theirs = _classes(dataclass, **options), _classes(dataclasses.dataclass, **options)
    for mine, its in zip(ours, theirs, strict=True):
        assert _facts(*mine) == _facts(*its), mine[0].__name__


def test_a_class_of_either_kind_is_a_base_of_the_other() -> None:
    for below, above in ((dataclass, dataclasses.dataclass), (dataclasses.dataclass, dataclass)):

        @above(frozen=True)
        class Base:
            a: int

        @below(frozen=True)
        class Leaf(Base):
            b: int = 2

        assert Leaf(1) == Leaf(1, 2) and repr(Leaf(1)).endswith("Leaf(a=1, b=2)") and hash(Leaf(1)) == hash(Leaf(1, 2))
        with pytest.raises(FrozenInstanceError):
            Leaf(1).a = 3  # type: ignore[misc]


def test_a_class_made_again_gets_its_methods_once() -> None:
    @dataclass
    class First:
        a: int

    again: Any = type("Again", (First,), dict(First.__dict__))
    again(1)
    assert again.__init__.__code__.co_varnames == ("self", "a")


@dataclass(frozen=True, slots=True)
class Kept:
    """One that is pickled, by its name."""

    a: int
    b: tuple[int, ...] = ()


def test_frozen_objects_with_slots_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept(1, (2,)))) == Kept(1, (2,))


def test_a_mutable_default_is_refused() -> None:
    with pytest.raises(ValueError, match="default_factory"):

        @dataclass
        class Wrong:
            a: list[int] = []  # noqa: RUF008


def test_heron_s_classes_are_made_by_it() -> None:
    here = Path(heron.__file__).parent
    wanted = re.compile(r"^\s*(?:from dataclasses import .*\bdataclass\b|@dataclasses\.dataclass)", re.MULTILINE)
    others = [p.relative_to(here).as_posix() for p in here.rglob("*.py") if wanted.search(p.read_text())]
    assert others == ["records.py"]
