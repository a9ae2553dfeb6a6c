"""The state of an installation, for ``heron doctor``: `packages`, `machine` and `trials` make findings."""
