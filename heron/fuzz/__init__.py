"""Looks for programs on which two machines differ, or that one cannot run (docs/use/fuzz.md).

`choices` and `programs` make programs, `mutating` changes those of a corpus, `searching` tries them, `filing` reduces
and keeps what is found.
"""
