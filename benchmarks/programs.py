"""The programs benchmarks run: the real ones the tests use, at full scale."""

from __future__ import annotations

from pathlib import Path

from heron.errors import HeronError

FOLDER = Path(__file__).parent.parent / "tests" / "workloads" / "hlo"

#: a quick look: elementwise, softmax, a product, a block, a whole training step
QUICK = ("gelu_f32", "softmax", "matmul_f32", "transformer_block", "gpt2_train_step")


def names() -> list[str]:
    """Every program there is."""
    return sorted(p.stem for p in FOLDER.glob("*.hlo") if not p.stem.endswith(".small"))


def path(name: str, small: bool = False, platform: str = "cpu") -> Path:
    """The HLO text of a program, as JAX lowers it for ``cpu`` or ``cuda``. Raises CLI010 for an unknown name."""
    folder = FOLDER.with_name("hlo_cuda") if platform == "cuda" else FOLDER
    found = folder / f"{name}{'.small' if small else ''}.hlo"
    if not found.exists():
        raise HeronError("CLI010", f"no benchmark program '{name}'", hint=", ".join(names()))
    return found
