"""Pages about a compiled program: `document` is their content as data, `markdown` and `html` write it.

`review.py` makes the page of ``heron report``, one function of `sections/` a section. `heron.notebook` shows single
tables.
"""
