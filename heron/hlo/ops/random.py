"""Random numbers."""

from __future__ import annotations

from heron.hlo.op import Attr, AttrKind, Op, Trait, op


@op("rng")
class Rng(Op):
    operands = ("parameters*",)
    attributes = {"distribution": Attr(AttrKind.ENUM, required=True, choices=("rng_uniform", "rng_normal"))}
    traits = {Trait.SIDE_EFFECT, Trait.RANDOM, Trait.ELEMENTWISE}


@op("rng-bit-generator")
class RngBitGenerator(Op):
    operands = ("state",)
    attributes = {
        "algorithm": Attr(
            AttrKind.ENUM, required=True, choices=("rng_default", "rng_three_fry", "rng_philox")
        )
    }


@op("rng-get-and-update-state")
class RngGetAndUpdateState(Op):
    attributes = {"delta": Attr(AttrKind.INT, required=True)}
    traits = {Trait.SIDE_EFFECT, Trait.RANDOM}
