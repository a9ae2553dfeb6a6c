"""Options: defaults, environment, settings on the command line, and every way to get one wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron import HeronError, Options


def test_defaults() -> None:
    options = Options()
    assert (options.check, options.math, options.opt_level, options.dump_dir) == ("", "ieee", 3, None)
    assert options == Options.from_env({})
    assert hash(options) == hash(Options())


def test_every_field_is_documented_and_has_an_environment_name() -> None:
    for name, env, _, doc in Options.table():
        assert env == f"HERON_{name.upper()}"
        assert doc


def test_environment() -> None:
    env = {
        "HERON_CHECK": "values",
        "HERON_OPT_LEVEL": "1",
        "HERON_DUMP_DIR": "d",
        "HERON_SIM_CHECK": "all",
        "HOME": "/",
    }
    assert Options.from_env(env) == Options(check="values", opt_level=1, dump_dir="d", sim_check="all")


def test_other_projects_variables_are_left_alone() -> None:
    assert Options.from_env({"HERON_HOME": "/opt", "HERON_SERVER_PORT": "1"}) == Options()


@pytest.mark.parametrize(
    ("env", "code", "says"),
    [
        ({"HERON_MATH": "fats"}, "CLI021", "did you mean 'fast'"),
        ({"HERON_CHECK": "yes"}, "CLI021", "'verify'"),
        ({"HERON_SIM_CHECK": "maybe"}, "CLI021", "off, all, or names"),
        ({"HERON_SIM_CHECK": "races,bound"}, "CLI021", "divergence"),
        ({"HERON_OPT_LEVEL": "many"}, "CLI021", "0, 1, 2, 3"),
        ({"HERON_OPT_LEVEL": "9"}, "CLI021", "HERON_OPT_LEVEL"),
        ({"HERON_CHEK": "values"}, "CLI020", "HERON_CHECK"),
    ],
)
def test_bad_environment(env: dict[str, str], code: str, says: str) -> None:
    with pytest.raises(HeronError) as caught:
        Options.from_env(env)
    assert caught.value.code == code
    assert says in str(caught.value)


def test_settings_override() -> None:
    options = Options(math="fast").with_settings(["check=verify", "opt-level=1", "dump_dir=here", "sim_check=off"])
    assert options == Options(math="fast", check="verify", opt_level=1, dump_dir="here")


@pytest.mark.parametrize(("setting", "code"), [("mth=fast", "CLI020"), ("math", "CLI021"), ("opt_level=x", "CLI021")])
def test_bad_settings(setting: str, code: str) -> None:
    with pytest.raises(HeronError) as caught:
        Options().with_settings([setting])
    assert caught.value.code == code


def test_replace_and_constructor_check_too() -> None:
    assert Options().replace(math="fast").math == "fast"
    for bad in ({"math": 3}, {"dump_dir": 5}, {"opt_level": True}, {"sim_check": 1}, {"nonsense": 1}):
        with pytest.raises(HeronError):
            Options().replace(**bad)


def test_changed() -> None:
    assert Options().changed() == {}
    assert Options(math="fast", opt_level=0).changed() == {"math": "fast", "opt_level": "0"}


def test_math_says_which_rules_fire() -> None:
    assert [Options(math=m).allows("reassociating") for m in ("ieee", "reassociate", "fast")] == [False, True, True]
    assert [Options(math=m).allows("finite-only") for m in ("ieee", "reassociate", "fast")] == [False, False, True]
    assert Options().allows("exact")


def test_every_option_is_used() -> None:
    sources = [p.read_text() for p in (Path(__file__).parent.parent / "heron").rglob("*.py") if p.name != "options.py"]
    for name, *_ in Options.table():
        assert name == "math" or any(f"options.{name}" in s for s in sources), f"nothing reads the option '{name}'"
