"""sanitize-constant-names: constants are named as symbols of machine code may be."""

from __future__ import annotations

import re

from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class SanitizeConstantNames(Pass):
    """Gives constants names of letters, digits and ``_`` only, each a different one, as symbols have.

    No pipeline has it: constants of heron's programs are allocations with numbers, and a name that stays as it was is
    found again in reports and traces.

    ROOT my-table.1 = f32[2] constant({1, 2})
    ->
    ROOT my_table_1 = f32[2] constant({1, 2})
    """

    name = "sanitize-constant-names"

    def run(self, module: Module, ctx: PassContext) -> bool:
        constants = [i for i in module.instructions() if i.opcode == "constant"]
        taken = {i.name for i in module.instructions()}
        changed = False
        for i in constants:
            plain = re.sub(r"\W", "_", i.name, flags=re.ASCII)
            if plain == i.name:
                continue
            wanted, number = plain, 1
            while wanted in taken or module.unique_name(wanted) != wanted:  # asking takes it: nobody gets it after
                wanted, number = f"{plain}_{number}", number + 1
            taken.add(wanted)
            i.name = wanted
            changed = True
        return changed
