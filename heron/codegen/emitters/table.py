"""The emitters, by the kind of fusion they emit. `analysis.fusion.analysis` says which kind a fusion has, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heron.codegen.emitters.base import Emitter
from heron.later import Later

_EMITTERS = "heron.codegen.emitters"

EMITTERS: Mapping[str, type[Emitter[Any]]] = Later(
    {
        "block": f"{_EMITTERS}.tiled:BlockEmitter",
        "concatenate": f"{_EMITTERS}.concatenate:ConcatenateEmitter",
        "dus": f"{_EMITTERS}.in_place_update:InPlaceUpdateEmitter",
        "loop": f"{_EMITTERS}.loop:LoopEmitter",
        "reduce": f"{_EMITTERS}.reduction.emitter:ReductionEmitter",
        "rows": f"{_EMITTERS}.rowwise.emitter:RowwiseEmitter",
        "scan": f"{_EMITTERS}.scan.emitter:ScanEmitter",
        "scatter": f"{_EMITTERS}.scatter.emitter:ScatterEmitter",
        "slices": f"{_EMITTERS}.slices:SlicesEmitter",
        "sort": f"{_EMITTERS}.sort.emitter:SortEmitter",
        "topk": f"{_EMITTERS}.select_best:TopkEmitter",
        "transpose": f"{_EMITTERS}.transpose.emitter:TransposeEmitter",
    }
)
