"""Floor 6: the laws by name, with what each needs of a case.

One idea: the list of laws is data, so that a row, a program or a transformation that
is new is held to all of them by being there::

    LAWS["jvp"](engine, case)         # silent, Skipped with a reason, or LawBroken
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from attrs import evolve, frozen

from verax.ir.records import ReprMixin
from verax.ops.special.erf_gamma import NoDerivative
from verax.rules.rows.row import SomeRow
from verax.rules.values.state import STATE
from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import (
    Case,
    LawBroken,
    Skipped,
    broken,
    double_precision,
    is_double,
)
from verax.verify.cases.nested import DRAWS
from verax.verify.laws import (
    agreement,
    derivatives,
    high_precision,
    invariance,
    loops,
    promises,
)
from verax.verify.laws.invariance import Runner


@frozen(repr=False)
class Law(ReprMixin):
    """A law, and what it needs.

    `wide` asks for cases in double precision at smooth points, or at points of special
    interest if it is `tied`; `depth` for so many values per operand, `columns` for rows
    that have these rules. `rows_only` laws say nothing about programs. `cost` says how
    many cheap cases one case of this law is worth. `edges` asks for the calls of
    `cases.edges`, too, whatever is drawn.
    """

    name: str
    check: Callable[[StandardEngine, Case], None]
    wide: bool = False
    depth: int = 1
    columns: tuple[str, ...] = ()
    cost: int = 1
    tied: bool = False
    rows_only: bool = False
    edges: bool = False

    def __call__(self, engine: StandardEngine, case: Case) -> None:
        """Try the law on one case.

        Raises:
            LawBroken: it does not hold, or a rule failed on the way.
            Skipped: the case says nothing about the law.
        """
        try:
            with double_precision(STATE.enable_x64 or is_double(case.jaxpr)):
                self.check(engine, case)
        except Skipped:
            raise
        except LawBroken as error:
            error.evidence = evolve(error.evidence, rules=engine.rules)
            raise
        except NoDerivative as error:
            raise Skipped(str(error)) from error
        except Exception as error:
            kind = type(error).__name__
            failed = broken(self.name, case, f"{kind}: {error}")
            failed.evidence = evolve(failed.evidence, rules=engine.rules)
            raise failed from error

    def applies(self, row: SomeRow, sampled: bool = False) -> str | None:
        """Why the law says nothing about a row, or None if it does."""
        if row.draw is None and row not in DRAWS and not sampled:
            return "the row has no draw, so no calls of it can be made"
        lacking = [name for name in self.columns if not row.has(name)]
        return f"the row has no {', '.join(lacking)} rule" if lacking else None


def compiled(run: Runner) -> Law:
    """The law that running with `run` is evaluating."""
    check = invariance.compiled_is_evaluate(run)
    return Law("compiled", check, columns=("lower",), cost=4, edges=True)


EVERY = (
    Law("typed", invariance.evaluate_is_typed),
    Law("jvp", derivatives.jvp_is_difference, wide=True, columns=("jvp",)),
    Law(
        "special",
        derivatives.jvp_is_between_slopes,
        wide=True,
        columns=("jvp",),
        tied=True,
        rows_only=True,
    ),
    Law(
        "digits",
        high_precision.jvp_to_the_last_digits,
        wide=True,
        columns=("jvp", "evaluate"),
        cost=4,
        rows_only=True,
        edges=True,
    ),
    Law("mask", derivatives.mask_is_honest, wide=True, columns=("jvp",)),
    Law("linear", derivatives.transpose_is_dual, wide=True, columns=("jvp",)),
    Law("vjp", derivatives.vjp_is_difference, wide=True, columns=("jvp",)),
    Law("adjoint", derivatives.transpose_is_adjoint, wide=True, columns=("transpose",)),
    Law("cotangents", derivatives.cotangent_types, columns=("jvp",)),
    Law("vmap", agreement.vmap_is_loop, depth=3, columns=("batch",)),
    Law("vmap twice", agreement.vmap_of_vmap, depth=4, columns=("batch",)),
    Law("promises", promises.promises_stay_true, depth=3, columns=("batch",), cost=2),
    Law("dce", invariance.dce_keeps_values),
    Law("cse", invariance.cse_keeps_values),
    Law("inline", invariance.inline_undoes_call),
    Law("outline", invariance.outline_keeps_values),
    Law("kernel", invariance.kernels_keep_values, columns=("kernel",), edges=True),
    Law("thread", loops.threading_keeps_values, columns=("thread",)),
    Law("traits", promises.traits_are_true, rows_only=True),
    Law("retrace", invariance.retracing_is_equal, cost=2),
    Law("text", invariance.text_is_program, cost=2),
    Law("missing", invariance.missing_rules_say_so, cost=4, rows_only=True),
)
LOOPS = Law("loops", loops.loops_agree, wide=True, columns=("jvp",))
"""The law of loops, which says something about programs with a scan only."""
LAWS: Mapping[str, Law] = MappingProxyType({law.name: law for law in (*EVERY, LOOPS)})
"""Every law that needs no backend, by name; `compiled` makes the one that does."""
