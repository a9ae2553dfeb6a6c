"""One file for each verb; it defines ``command``, a click command that returns its exit code (None: 0)."""
