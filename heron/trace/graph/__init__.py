"""Pictures of programs: HLO graphs with fusions and loop bodies as boxes in boxes.

`boxes` chooses what to draw, `layers` places it, `drawing` writes SVG and HTML, `outline` text for a terminal.
"""
