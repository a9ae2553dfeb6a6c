"""The command line: ``heron VERB …``. Verbs are files in ``heron/cli/verbs``; heavy imports happen inside them.

Exit codes: 0 fine, 1 values differ, 2 bad input or usage, 3 a bug in heron, 130 interrupted.
"""

try:
    from heron.cli.main import main
except KeyboardInterrupt:  # Ctrl-C this early is no traceback either
    raise SystemExit(130) from None

__all__ = ["main"]
