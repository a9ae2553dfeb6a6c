"""Backends: for each kind of machine its pipeline and how its programs are built; `compiler` has the stages."""
