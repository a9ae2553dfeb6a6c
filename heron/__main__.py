"""``python -m heron`` is the command line."""

from heron.cli import main

if __name__ == "__main__":
    main()
