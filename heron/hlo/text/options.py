"""Options of the printer, with XLA's names, and the named sets of them.

Source: openxla/xla, xla/hlo/ir/hlo_print_options.h.
"""

from __future__ import annotations

from typing import Literal

from heron.records import dataclass

#: what stands for a called computation: its name, its body in place, or nothing
Calls = Literal["name", "body", "off"]


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """The default is XLA's long form with constants in full, which parses back to an equal module.

    So do `short()` (without metadata and control edges) and `canonical()` (large constants aside). Text without result
    shapes, operand names or attributes, with `compact_operands` or essential constants alone is for people and digests.
    """

    percent: bool = True  # %name
    signatures: bool = True  # (a: f32[2]) -> f32[2] after a computation's name
    ids: bool = True  # names of computations and the module, and what follows the first dot of other names
    result_shapes: bool = True
    operand_shapes: bool = False  # add(f32[2]{0} %a, ...)
    operand_names: bool = True
    index_comments: bool = True  # /*index=5*/ before every fifth operand
    compact_operands: bool = False  # four operands at most, then how many more
    layouts: bool = True
    attributes: bool = True  # those of the op itself, called computations aside
    metadata: bool = True  # where instructions come from, tables of places included
    op_names_only: bool = False  # of metadata
    origin: bool = True
    backend_config: bool = True
    feed_config: bool = True  # of infeed and outfeed
    frontend_attributes: bool = True
    control_predecessors: bool = True
    parameter_numbers: bool = True
    async_sugar: bool = True  # y-start(x) for an async-start that wraps a single y
    full_replica_groups: bool = False  # {{0,1},{2,3}} for [2,2]<=[4]
    calls: Calls = "name"
    elide_large_constants: bool = False  # {...} for more than 10 elements
    digest_constants: bool = False  # {...#0a1b…}: of more than 1 KiB a digest of the bytes
    essential_constants: bool = False  # integers, all zeros and all ones; {...} for the rest
    canonical_names: bool = False  # instructions are tmp_0, tmp_1, ... in each computation
    canonical_order: bool = False  # computations in post-order
    nested: bool = False  # as inside another computation's text: without its name
    name_after_brace: bool = False  # } // name
    indent: int = 0  # levels of two spaces

    @staticmethod
    def short() -> PrintOptions:
        """XLA's short form, which parses: no percent signs, signatures, metadata, control edges or index comments."""
        return PrintOptions(
            percent=False, signatures=False, metadata=False, control_predecessors=False, index_comments=False
        )

    @staticmethod
    def canonical() -> PrintOptions:
        """The same for isomorphic computations: numbered instructions, callees in place, nothing of their origin."""
        return PrintOptions(
            percent=False,
            signatures=False,
            metadata=False,
            backend_config=False,
            control_predecessors=False,
            operand_shapes=True,
            operand_names=False,
            index_comments=False,
            calls="body",
            elide_large_constants=True,
            canonical_names=True,
        )

    @staticmethod
    def fingerprint() -> PrintOptions:
        """`canonical()` without what does not change how an instruction is optimised: names, most constants' values."""
        return _fingerprint(operand_shapes=True)

    @staticmethod
    def module_fingerprint() -> PrintOptions:
        """`fingerprint()` without operand shapes, which follow from the rest of a computation."""
        return _fingerprint(operand_shapes=False)


def _fingerprint(operand_shapes: bool) -> PrintOptions:
    return PrintOptions(
        percent=False,
        signatures=False,
        metadata=False,
        backend_config=False,
        control_predecessors=False,
        operand_shapes=operand_shapes,
        operand_names=False,
        index_comments=False,
        calls="body",
        elide_large_constants=True,
        canonical_names=True,
        feed_config=False,
        essential_constants=True,
        ids=False,
        canonical_order=True,
        full_replica_groups=True,
    )


#: the sets by the names the command line gives them
FORMS = {
    "default": PrintOptions,
    "short": PrintOptions.short,
    "canonical": PrintOptions.canonical,
    "fingerprint": PrintOptions.fingerprint,
    "module-fingerprint": PrintOptions.module_fingerprint,
}
