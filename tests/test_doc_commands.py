"""Every ``heron …`` command shown in README, docs and examples runs.

Commands of fenced blocks run in a folder that holds the files they name: small programs stand in for the large ones and
for names such as ``model.hlo``. Commands inside a sentence are checked against ``--help`` only.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import Result, heron
from tests.test_pages import PAGES as RUN_BY_TEST_PAGES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]

#: commands that cannot run here, and the reason
NOT_RUN = {
    "heron tune model.hlo --target cuda --lock heron.lock": "measures on a GPU",
    "heron compile model.hlo --target cuda -O lock=heron.lock -O frozen=on": "compiles for this machine's GPU",
    "heron run softmax.heron --random 0": "runs code for a GPU",
    "heron reduce gpt2_train_step.small.hlo --differs --load wrong_rewrite.py -o small": "takes a minute",
    "heron jax-tests jax/tests/lax_test.py -k sort": "needs a checkout of JAX",
    "heron jax-tests jax/tests/multiprocess/pjit_test.py --processes 4 --devices 2": "needs a checkout of JAX",
}
#: pages whose commands a test of their own runs, with the files the page shows
OWN_TEST = {"add-a-pass.md": "tests/test_add_a_pass.py"}

_SOFTMAX = "examples/softmax.small.hlo"
_SORT = "HloModule m\nlt {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT\n}\n"
_STABLEHLO = """
func.func public @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = stablehlo.exponential %x : tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
"""
#: files that commands name, by name: the text, or the file of the checkout that stands in
FILES = {
    "FILE": _SOFTMAX,
    "sort.hlo": _SORT
    + "ENTRY e {\n x = f32[64] parameter(0)\n ROOT s = f32[64] sort(x), dimensions={0}, to_apply=lt\n}\n",
    "attention.hlo": "HloModule m\nENTRY e {\n a = f32[8,8] parameter(0)\n ROOT scores = f32[8,8] exponential(a)\n}\n",
    "sharded.hlo": "HloModule m\nENTRY e {\n a = f32[16] parameter(0), sharding={devices=[8]<=[8]}\n"
    " ROOT r = f32[16] negate(a), sharding={devices=[8]<=[8]}\n}\n",
    "local.hlo": "HloModule m, num_partitions=2\nENTRY e {\n a = f32[2] parameter(0)\n ROOT r = f32[2] "
    "collective-permute(a), channel_id=1, source_target_pairs={{0,1},{1,0}}\n}\n",
    "model.mlir": _STABLEHLO.replace("?x?", "3x4"),
    "open.mlir": _STABLEHLO,
    "model.py": """
import jax.numpy as jnp


def layer(x: "f32[4,32]", w: "f32[32,8]"):
    return jnp.tanh(x @ w)
""",
}
#: what the instruction names of a page's own program are called in the program that stands in
NAMES = {"windows": "reduce_sum.7", "dot.1": "exp.1", "add.2": "reduce_sum.7"}


def _commands(page: Path) -> Iterator[str]:
    """The ``heron`` commands of the page's fenced blocks, without their comments."""
    for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(), re.S | re.M):
        for line in block.splitlines():
            if found := re.match(r"(?:\$ )?(heron .*)", line):
                yield found[1].partition("  #")[0].strip()


def _file(word: str) -> str:
    """The file of the checkout for a file that a command names: the small variant of a program, if there is one."""
    small = re.sub(r"(?<!\.small)\.hlo$", ".small.hlo", word)
    return small if (ROOT / small).exists() else word


def _prepare(folder: Path) -> None:
    for name in ("examples", "tests"):
        (folder / name).symlink_to(ROOT / name)
    for name, text in FILES.items():
        (folder / name).write_text(text if "\n" in text else (ROOT / text).read_text())
    shutil.copy(ROOT / _SOFTMAX, folder / "model.hlo")


def _run(command: str) -> Result:
    words = [NAMES.get(w, _file(w)) for w in shlex.split(command)[1:]]
    if words[0] == "eval" and "in.npz" in words:
        import numpy as np

        np.savez("in.npz", np.ones((3, 4), np.float32))
    return heron(*words)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page in RUN_BY_TEST_PAGES or page.name in OWN_TEST:
        return
    commands = [c for c in dict.fromkeys(_commands(page)) if c not in NOT_RUN]
    if not commands:
        return
    _prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path / "cache"))
    for command in commands:
        result = _run(command)
        assert result.code == 0, f"{command}\n{result.err}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_inside_sentences_are_understood(page: Path) -> None:
    """The verb exists and its help names each option."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M).replace("\n", " ")
    for command in sorted(set(re.findall(r"`(heron [a-z][^`]*)`", text))):
        words = shlex.split(command)[1:]
        verb = words[: 2 if words[0] in ("cache", "codegen") and len(words) > 1 else 1]
        shown = heron(*verb, "--help")
        assert shown.code == 0, command
        for option in (w.partition("=")[0] for w in words if w.startswith("-")):
            assert option in shown.out, f"{command}: no {option}"


def test_commands_that_are_not_run_are_still_shown() -> None:
    shown = {c for page in PAGES for c in _commands(page)}
    assert set(NOT_RUN) <= shown
