"""Makes a program small that shows a fault: delta debugging of HLO (docs/use/reduce.md).

`case` is a program with inputs, `checks` say whether a fault is there, `edits` are the ways to make a program smaller,
`search` tries them, `pool` runs checks in child processes, `store` keeps the best case on the disk, `reducing` is the
whole.
"""
