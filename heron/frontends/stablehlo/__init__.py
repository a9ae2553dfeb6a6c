"""StableHLO, the portable form of XLA programs: text, and by jaxlib its bytecode, to `hlo.Module`.

`reader` (with `lexer`, `cursor`, `attributes`, `forms`) makes a text a `Program` of named operations; `importer` makes
that a module, each operation by its rule in `lower/`.
"""
