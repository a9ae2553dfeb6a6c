"""Declarations of custom calls: each is declared once.

A declaration names the targets of a call, its operands and results with their shapes, the orders in memory its arrays
may have, what may overwrite what, and who computes it on each kind of machine::

    GETRF = Call(
        "getrf", ("lapack_?getrf_ffi", "cusolver_getrf_ffi"),
        form="a:T[*b,m,n] -> factors@a:T[*b,m,n], pivots:s32[*b,min(m,n)], info:s32[*b]",
        cpu="lapack", gpu="cusolver", any_order=True,
    )

The verifier, the evaluator, layout assignment and the lowering of every target read it. The values of a call are
computed in `evaluator/calls`, its lowering is in `backends/calls`, each in the file of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from heron.errors import HeronError
from heron.hlo.calls import form as forms
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass

#: the dimensions of an array, slowest first
Order = tuple[int, ...]
#: who computes what no library does: the evaluator's code, on the host
EVALUATOR = "evaluator"


@dataclass(frozen=True, slots=True)
class Call:
    """A custom call that heron knows.

    ``targets``: ``?`` stands for LAPACK's type letter; a target that ends in ``*`` for all that begin so.
    ``form``: see `forms`; a function where it depends on the configuration; empty where any operands are taken.
    ``family``: the file of its lowering; the call's name where it is left out.
    ``cpu``, ``gpu``: the library, ``kernel`` or ``evaluator`` that computes it there; empty: nothing does.
    ``any_order``: arrays may be in any order in memory; else they are in the order that the call states.
    ``orders``: the layouts that the GPU's library takes, each an order for every operand and result, None for any.
    ``flops``: of a sum of products, the work for one element of the first result.
    ``refusal``, ``hint``: why nothing computes it, and what to do instead.
    """

    name: str
    targets: tuple[str, ...]
    form: str | Callable[[Instruction], str] = ""
    family: str = ""
    cpu: str = ""
    gpu: str = ""
    any_order: bool = False
    orders: Callable[[Instruction], list[list[Order | None]]] | None = None
    flops: Callable[[Instruction], float] | None = None
    refusal: str = ""
    hint: str = ""

    def computed_by(self, kind: str) -> str:
        """The library, ``kernel`` or ``evaluator`` that computes it on a kind of target; empty when nothing does."""
        return self.cpu if kind == "cpu" else self.gpu

    def spelled(self) -> Iterator[str]:
        """All targets, type letters written out."""
        for target in self.targets:
            yield from (target.replace("?", letter) for letter in "sdcz") if "?" in target else (target,)

    def form_of(self, i: Instruction) -> str:
        """The form of one call. Raises HLO170 and HLO171 for a configuration that cannot be read or is not known."""
        return self.form if isinstance(self.form, str) else self.form(i)

    def misfit(self, i: Instruction) -> str:
        """Why the operands and results of a call are not of its form; empty when they are. Raises as `form_of`."""
        text = self.form_of(i)
        if not text or i.shape.is_unbounded or any(o.shape.is_unbounded for o in i.operands):
            return ""
        return forms.parse(text).misfit(i)

    def need_fit(self, i: Instruction) -> None:
        """Raise HLO172 for a call whose operands and results are not of its form, and as `form_of`."""
        if why := self.misfit(i):
            raise HeronError("HLO172", what_misfits(i), where=str(i), why=why, hint=f"its form: {self.form_of(i)}")


def row_major(i: Instruction) -> list[Order | None]:
    """The layout of a call whose arrays are all row-major."""
    return [tuple(range(s.rank)) for s in (*(o.shape for o in i.operands), *forms.results_of(i))]


def what_misfits(i: Instruction) -> str:
    """The sentence of HLO172."""
    return f"the arrays of '{i.name}' do not fit '{i.custom_call_target}'"
