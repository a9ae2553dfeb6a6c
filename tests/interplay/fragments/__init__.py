"""The library of fragments: a file for each family, which lists them as `FRAGMENTS`."""
