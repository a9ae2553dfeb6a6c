"""The zoo's programs, one file for each theme."""
