"""StableHLO, the portable form of XLA programs: text, and by jaxlib its bytecode, to `hlo.Module`.

`reader` (with `lexer`, `cursor`, `attributes`, `forms`) turns a text into a `Program` of named operations. `importer`
turns that into a module, each operation by its rule in `lower/`.
"""
