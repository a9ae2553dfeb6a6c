"""Every sharded program by ``heron run --devices``, to XLA's values.

python -m tests.cli.sharded [NAME …] [--target sim:sm_90]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from click.testing import CliRunner

from heron.cli import values
from heron.cli.main import cli
from tests.sharded_programs import FOLDER, NAMES, Program


def run_sharded(name: str, *options: str) -> None:
    """Run a program on its devices from the command line; raises AssertionError for another value than XLA's."""
    program = Program(name)
    with tempfile.TemporaryDirectory() as folder:
        given, made = str(Path(folder, "in.npz")), str(Path(folder, "out.npz"))
        values.write(given, program.inputs(), [])
        file = str(FOLDER / "stablehlo" / f"{name}.mlir")
        files = ["--inputs", given, "--save", made]
        found = CliRunner().invoke(cli, ["run", file, "--devices", str(program.devices), *files, *options])
        assert found.exit_code == 0, f"{found.output}\n{found.exception!r}"
        program.check(values.read(made).outputs, 2e-4)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", default="cpu")
    args, failed = parser.parse_args(), 0
    for name in args.names or NAMES:
        try:
            run_sharded(name, "--target", args.target)
            print(f"{name:24s} right", flush=True)
        except AssertionError as error:
            failed += 1
            print(f"{name:24s} {str(error).strip().splitlines()[0][:150]}", flush=True)
    sys.exit(failed > 0)
