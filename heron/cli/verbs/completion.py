"""``heron completion``: a script with which a shell completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from heron.cli.common import examples, print_text
from heron.errors import HeronError

_SHELLS = ("bash", "zsh", "fish")
_SET_UP = {
    "bash": 'eval "$(heron completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(heron completion zsh)"   in ~/.zshrc',
    "fish": "heron completion fish > ~/.config/fish/completions/heron.fish",
}


@click.command(
    short_help="Print a script that completes commands in a shell.",
    epilog=examples(*(f"{line}" for line in _SET_UP.values())),
)
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a SHELL, for its start-up file."""
    from heron.cli.main import cli

    made = get_completion_class(shell)
    if made is None:
        raise HeronError("CLI002", f"click has no completion for {shell}", hint=f"shells are {', '.join(_SHELLS)}")
    print_text(made(cli, {}, "heron", "_HERON_COMPLETE").source())
