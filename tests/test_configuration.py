"""``heron.toml``: where it is found, what comes before it, and entries that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron import configuration
from heron.cli.main import invoke
from heron.errors import HeronError
from heron.options import Options

SOFTMAX = str(Path(__file__).parent.parent / "examples" / "softmax.small.hlo")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file but those a test writes; a process's memory of them is dropped."""
    monkeypatch.delenv("HERON_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "project" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "deep")
    configuration._found.cache_clear()


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    configuration._found.cache_clear()
    return path


def test_without_a_file_options_are_the_defaults() -> None:
    assert Options.from_env() == Options()


def test_the_nearest_file_above_counts(tmp_path: Path) -> None:
    _write(tmp_path / "heron.toml", '[options]\nmath = "fast"\n')
    assert Options.from_env().math == "fast"
    _write(tmp_path / "project" / "heron.toml", '[options]\nmath = "reassociate"\n')
    assert Options.from_env().math == "reassociate"


def test_the_users_file_comes_last(tmp_path: Path) -> None:
    _write(tmp_path / "home" / "heron" / "heron.toml", "[options]\nthreads = 3\n")
    assert Options.from_env().threads == 3
    _write(tmp_path / "heron.toml", "[options]\ngraphs = false\n")
    assert Options.from_env() == Options(graphs=False)


def test_a_variable_names_the_file_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "heron.toml", "[options]\nthreads = 3\n")
    monkeypatch.setenv("HERON_CONFIG", str(_write(tmp_path / "other.toml", "[options]\nthreads = 5\n")))
    assert Options.from_env().threads == 5
    monkeypatch.setenv("HERON_CONFIG", "")
    assert Options.from_env() == Options()


def test_the_environment_and_settings_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "heron.toml", '[options]\nthreads = 3\nmath = "fast"\nopt-level = 1\n')
    monkeypatch.setenv("HERON_MATH", "ieee")
    options = Options.from_env().with_settings(["opt_level=2"])
    assert (options.threads, options.math, options.opt_level) == (3, "ieee", 2)


def test_given_variables_stand_alone(tmp_path: Path) -> None:
    _write(tmp_path / "heron.toml", "[options]\nthreads = 3\n")
    assert Options.from_env({}) == Options()


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("[options", "CLI082", "is not TOML"),
        ("[option]\n", "CLI082", "unknown entry 'option'"),
        ("threads = 2\n", "CLI082", "unknown entry 'threads'"),
        ("[options]\nthreads = 1.5\n", "CLI082", "1.5"),
        ("[commands]\nrun = 3\n", "CLI082", "[commands]"),
        ("[options]\nthread = 1\n", "CLI020", "unknown option 'thread'"),
        ('[options]\nmath = "quick"\n', "CLI021", "option 'math' in"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, code: str, said: str) -> None:
    _write(tmp_path / "heron.toml", text)
    with pytest.raises(HeronError) as failed:
        Options.from_env()
    assert failed.value.code == code and said in failed.value.what
    assert "heron.toml" in failed.value.render()


def test_commands_have_defaults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(tmp_path / "heron.toml", '[commands.compile]\ntarget = "sm_80"\nto = "hlo"\njson = true\n')
    assert invoke(["compile", SOFTMAX]) == 0
    assert '"stage": "hlo"' in capsys.readouterr().out
    assert invoke(["compile", SOFTMAX, "--to", "fused"]) == 0
    assert '"stage": "fused"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "said"),
    [("[commands.verify]\ntarge = 1", "'heron verify' has no option '--targe'"), ("[commands.rum]", "'heron rum'")],
)
def test_unknown_commands_and_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, said: str
) -> None:
    _write(tmp_path / "heron.toml", table + "\n")
    assert invoke(["verify", SOFTMAX]) == 2
    shown = capsys.readouterr().err
    assert "CLI083" in shown and said in shown
