"""``python -m benchmarks.gpu.bundle OUT``: heron, tests, benchmarks and what they need, for a GPU without a network.

OUT gets wheels, heron's tests and benchmarks, every program compiled (`benchmarks.gpu.prepare`) and a script. On the
other machine ``sh OUT/run.sh tests`` and ``sh OUT/run.sh figures`` take under ten minutes each, installing what is
missing or older there into a folder of their own first. NumPy, JAX, PyTorch, Triton and llvmlite are taken to be there;
with ``--with llvmlite`` one comes along all the same.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click

REPOSITORY = Path(__file__).parent.parent.parent
#: small, and not part of what machines with GPUs have
NEEDED = (
    "xdsl>=0.74,<0.75 immutabledict typing_extensions ordered-set click>=8.1.7,<9 rich>=13.7,<16 markdown-it-py mdurl "
    "pygments protobuf>=5.28,<8 orjson>=3.10,<4 ml_dtypes>=0.6,<0.7 pytest>=8.3,<10 pluggy iniconfig packaging "
    "hypothesis sortedcontainers pytest-xdist>=3.6,<4 execnet"
).split()
#: by name; only with ``--with``: large, or there already
OTHERS = {
    "numpy": "numpy>=2.0,<3",
    "scipy": "scipy>=1.14,<2",
    "llvmlite": "llvmlite>=0.50,<0.51",
    "nvjitlink": "nvidia-nvjitlink>=13,<14",
    "nvvm": "nvidia-nvvm>=13,<14",
    "jax": "jax>=0.10.2,<0.12",
}
_PLATFORMS = [f"manylinux_2_{n}_x86_64" for n in (28, 27, 24, 17)] + ["manylinux2014_x86_64", "manylinux1_x86_64"]

_INSTALL = '''"""Install the wheels beside this file that are missing here or newer than what is here."""
import importlib.metadata as metadata, pathlib, re, subprocess, sys

def numbers(version):
    return [int(n) for n in re.findall(r"\\d+", version.split("+")[0])[:4]]

here, site = pathlib.Path(__file__).parent, sys.argv[1]
chosen = []
for wheel in sorted(here.glob("wheels/*.whl")):
    name, version = wheel.name.split("-")[:2]
    try:
        found = metadata.version(name.replace("_", "-"))
    except metadata.PackageNotFoundError:
        found = ""
    if name == "heron" or not found or numbers(found) < numbers(version):
        chosen.append(str(wheel))
        print("installing", name, version, "over " + found if found else "")
pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile", "--upgrade"]
sys.exit(subprocess.call([*pip, "--target", site, *chosen]))
'''

_RUN = """#!/bin/sh
# sh run.sh tests|figures|both [arguments for pytest or benchmarks.gpu]: results into $OUT, or results/ beside this
# file. Each part ends within SECONDS_EACH (default 540), and loses nothing when it is cut off. Figures go on where they
# ended: in the same results/, or from a results.json beside this file.
here=$(cd "$(dirname "$0")" && pwd)
what=${1:-both}
[ $# -gt 0 ] && shift
out=${OUT:-$here/results}
each=${SECONDS_EACH:-540}
mkdir -p "$out"
site=$here/site
[ -w "$here" ] || site=/tmp/heron-site
begin=$(date +%s)
[ -d "$site" ] || python3 "$here/install.py" "$site" || exit
export PYTHONPATH="$site:$here/heron" PYTHONUNBUFFERED=1 PYTHONFAULTHANDLER=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
cd "$here/heron" || exit
left() { echo $((each - 30 - $(date +%s) + begin)); }
nvidia-smi -L || true
if [ "$what" != figures ]; then
    python3 -m pytest -q -p xdist -n 12 --dist worksteal -p no:cacheprovider tests/gpu \\
        --gpu-results "$out/tests.jsonl" --gpu-seconds "$(left)" --prepared "$here/prepared" "$@" \\
        > "$out/tests.log" 2>&1
    tail -n 60 "$out/tests.log"
fi
if [ "$what" != tests ]; then
    [ -f "$here/results.json" ] && [ ! -f "$out/results.json" ] && cp "$here/results.json" "$out/"
    [ "$what" = both ] && begin=$(date +%s)
    python3 -m benchmarks.gpu --out "$out" --seconds "$(left)" --prepared "$here/prepared" "$@" 2> "$out/figures.log"
    tail -n 20 "$out/figures.log"
fi
"""


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--python", "version", default="3.12", show_default=True, help="The other machine's Python.")
@click.option("--prepared", type=click.Path(path_type=Path), help="A folder of benchmarks.gpu.prepare, to bring along.")
@click.option("--with", "extra", multiple=True, type=click.Choice(sorted(OTHERS)), help="Bring this along, too.")
def main(out: Path, version: str, prepared: Path | None, extra: tuple[str, ...]) -> None:
    """Fill OUT with wheels, heron's sources and a script."""
    wheels = out / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip"]
    _run([*pip, "wheel", "-q", "--no-deps", "-w", str(wheels), str(REPOSITORY)])
    where = [flag for name in _PLATFORMS for flag in ("--platform", name)]
    asked = ["--only-binary=:all:", "--no-deps", "--python-version", version, "--implementation", "cp", *where]
    for name in (*NEEDED, *(OTHERS[e] for e in extra)):
        click.echo(name, err=True)
        _run([*pip, "download", "-q", *asked, "-d", str(wheels), name])
    copy_sources(out / "heron")
    if prepared is not None:
        shutil.copytree(prepared, out / "prepared", dirs_exist_ok=True)
    (out / "install.py").write_text(_INSTALL)
    (out / "run.sh").write_text(_RUN)
    size = sum(p.stat().st_size for p in out.rglob("*") if p.is_file())
    click.echo(f"{out}: {size / 2**20:.1f} MiB; on the other machine: sh {out.name}/run.sh tests, and figures")


def copy_sources(target: Path) -> None:
    """The tests and benchmarks, with the workloads; heron itself is among the wheels."""
    for folder in ("tests", "benchmarks"):
        ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(REPOSITORY / folder, target / folder, dirs_exist_ok=True, ignore=ignore)
    shutil.copy(REPOSITORY / "pyproject.toml", target / "pyproject.toml")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"{' '.join(command[2:6])} …: {(done.stderr or done.stdout).strip()[-600:]}")


if __name__ == "__main__":
    main()
