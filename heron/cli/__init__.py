"""The command line: ``heron VERB …``. ``heron/cli/verbs`` has one verb a file: its options, and its work if that is
short, with heavy imports inside functions. The work of others is in the file of the same name in ``heron/cli/tasks``,
which is loaded when the verb runs.

Exit codes: 0 fine, 1 values differ, 2 bad input or usage, 3 a bug in heron, 130 interrupted.
"""

try:
    from heron.cli.main import main
except KeyboardInterrupt:  # Ctrl-C this early is no traceback either
    raise SystemExit(130) from None

__all__ = ["main"]
