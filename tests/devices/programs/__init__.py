"""A file for each family of programs, which lists them as `PROGRAMS`."""
