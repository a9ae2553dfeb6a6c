"""One verb a file: each defines ``command``, a click command that returns its exit code (None: 0)."""
