"""The emitters, by the kind of fusion they emit. `analysis.fusion.analysis` says which kind a fusion has, and why."""

from __future__ import annotations

from typing import Any

from heron.codegen.emitters.base import Emitter
from heron.codegen.emitters.concatenate import ConcatenateEmitter
from heron.codegen.emitters.in_place_update import InPlaceUpdateEmitter
from heron.codegen.emitters.loop import LoopEmitter
from heron.codegen.emitters.reduction.emitter import ReductionEmitter
from heron.codegen.emitters.rowwise.emitter import RowwiseEmitter
from heron.codegen.emitters.scan.emitter import ScanEmitter
from heron.codegen.emitters.scatter.emitter import ScatterEmitter
from heron.codegen.emitters.select_best import TopkEmitter
from heron.codegen.emitters.slices import SlicesEmitter
from heron.codegen.emitters.sort.emitter import SortEmitter
from heron.codegen.emitters.tiled import BlockEmitter
from heron.codegen.emitters.transpose.emitter import TransposeEmitter

_ALL: tuple[Emitter[Any], ...] = (
    BlockEmitter(),
    ConcatenateEmitter(),
    InPlaceUpdateEmitter(),
    LoopEmitter(),
    ReductionEmitter(),
    RowwiseEmitter(),
    ScanEmitter(),
    ScatterEmitter(),
    SlicesEmitter(),
    SortEmitter(),
    TopkEmitter(),
    TransposeEmitter(),
)
EMITTERS = {emitter.kind: emitter for emitter in _ALL}
