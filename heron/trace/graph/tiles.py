"""The tiles of a value and the devices that have them, as text and as SVG.

    %a f32[8,16] as [{'x'}, {'y'}] over mesh['x'=2,'y'=4]: tiles f32[4,4]

           0:4  4:8  8:12  12:16
      0:4  0    1    2     3
      4:8  4    5    6     7

Only dimensions that are split have tiles: the last of them runs to the right, the others down.
"""

from __future__ import annotations

import itertools
from html import escape

import numpy as np

from heron.hlo.ir.shape import Shape
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.records import dataclass

#: rows and columns, and devices of a cell, that a picture shows
MOST_TILES = 16
MOST_DEVICES = 8

#: fill by the first device of a tile
_FILLS = ("#dbe7f5", "#cfe3c8", "#ffe8a3", "#f4b6b6", "#ece0f6", "#f8cf9c", "#cdeef0", "#eeeeee")
_CELL, _LINE = 92, 34


@dataclass(frozen=True, slots=True)
class Tiles:
    """A table of tiles: ranges of indices along the rows and the columns, and the devices of each cell."""

    title: str
    rows: list[str]
    columns: list[str]
    cells: list[list[str]]

    @staticmethod
    def of(name: str, shape: Shape, sharding: TensorSharding, mesh: AtomicMesh) -> Tiles:
        """The tiles of a value."""
        split = [d for d, axes in enumerate(sharding.dims) if axes]
        order = [a for d in split for a in sharding.dims[d]]
        others = [a for a in range(len(mesh.sizes)) if a not in order]
        devices = mesh.devices.reshape(mesh.sizes).transpose([*order, *others])
        parts = [mesh.size(sharding.dims[d]) for d in split]
        table = devices.reshape(*(parts or [1]), -1)
        local = mesh.local_dims(shape.dims, sharding)
        labels = [
            [_range(n, local[d], shape.dims[d]) for n in range(count)] for d, count in zip(split, parts, strict=True)
        ]
        down, right = labels[:-1], labels[-1] if labels else ["all"]
        rows = [", ".join(r) for r in itertools.islice(itertools.product(*down), MOST_TILES + 1)]
        flat = table.reshape(-1, len(right), table.shape[-1])
        cells = [[_devices(cell) for cell in row[: MOST_TILES + 1]] for row in flat[: MOST_TILES + 1]]
        text = "[" + ", ".join("{" + mesh.text(axes) + "}" for axes in sharding.dims) + "]"
        sums = f", sums yet to be made along {mesh.text(sorted(sharding.unreduced))}" if sharding.unreduced else ""
        title = f"%{name} {shape.bare} as {text}{sums} over {mesh.mesh}: tiles {shape.with_dims(local).bare}"
        return Tiles(title, *_cut(rows, right, cells))

    def text(self) -> str:
        """The title and the table."""
        table = [["", *self.columns], *([r, *c] for r, c in zip(self.rows, self.cells, strict=True))]
        widths = [max(len(row[n]) for row in table) for n in range(len(table[0]))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
        return "\n".join([self.title, "", *("  " + line for line in lines)])

    def svg(self) -> str:
        """The title and the table as a picture; a tile has the colour of its first device."""
        width, height = _CELL * (len(self.columns) + 1) + 20, _LINE * (len(self.rows) + 2)
        width = max(width, 7 * len(self.title) + 20)
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}"><title>{escape(self.title)}</title>',
            "<style>text{font:11px ui-monospace,monospace;fill:#1d1d1f}rect{stroke:#9aa0a6}</style>",
            f'<text x="10" y="20">{escape(self.title)}</text>',
        ]
        for n, label in enumerate(self.columns):
            out.append(_label(n + 1, 1, label))
        for r, label in enumerate(self.rows):
            out.append(_label(0, r + 2, label))
            for n, cell in enumerate(self.cells[r]):
                first = cell.split(" ")[0]
                fill = _FILLS[int(first) % len(_FILLS)] if first.isdigit() else "#ffffff"
                x, y = 10 + _CELL * (n + 1), _LINE * (r + 2) - 22
                out.append(f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_LINE}" fill="{fill}"/>')
                out.append(_label(n + 1, r + 2, cell))
        return "\n".join([*out, "</svg>"]) + "\n"


def _label(column: int, row: int, text: str) -> str:
    return f'<text x="{16 + _CELL * column}" y="{_LINE * row}">{escape(text)}</text>'


def _range(n: int, part: int, size: int) -> str:
    """The indices of part `n`: ``4:8``; ``-`` when there are none."""
    begin, end = min(n * part, size), min((n + 1) * part, size)
    return f"{begin}:{end}" if begin < end else "-"


def _devices(cell: np.ndarray) -> str:
    found = sorted(cell.tolist())
    shown = " ".join(map(str, found[:MOST_DEVICES]))
    return shown if len(found) <= MOST_DEVICES else f"{shown} +{len(found) - MOST_DEVICES}"


def _cut(rows: list[str], columns: list[str], cells: list[list[str]]) -> tuple[list[str], list[str], list[list[str]]]:
    """The table with dots for the rows and columns beyond the most that are shown."""
    if len(columns) > MOST_TILES:
        columns, cells = [*columns[:MOST_TILES], "…"], [[*row[:MOST_TILES], "…"] for row in cells]
    if len(rows) > MOST_TILES:
        rows, cells = [*rows[:MOST_TILES], "…"], [*cells[:MOST_TILES], ["…"] * len(columns)]
    return rows, columns, cells
