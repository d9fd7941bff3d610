"""Your own rows instead of those that a function uses.

One idea: a row travels with its primitive, so another row is another program: the
function is traced and its equations get the rows that replace theirs, which every
transformation then uses::

    straight_through = with_rules(f, {round_p: straight_p})
"""

from collections.abc import Callable, Mapping
from typing import cast

from verax.api.tracing.apply import apply
from verax.api.tracing.wrapping import wraps
from verax.extend.functions import opened
from verax.ir.jaxpr import Eqn, Jaxpr, Primitive
from verax.ir.walk import map_eqns, map_jaxprs
from verax.rules.rows.row import Row, RuleTable, SomeRow
from verax.rules.values.memo import pure, recall

PROGRAMS = 1 << 10


def with_rules[**P, R](
    fun: Callable[P, R], rules: RuleTable | Mapping[Primitive, SomeRow]
) -> Callable[P, R]:
    """`fun`, whose equations have the rows of a table instead of their own.

    This holds in inner functions, loops and branches. The primitives that the new rows
    bind in turn are left as they are, so an own derivative may use what it replaces;
    derivative rules that are traced only later (`custom_jvp`) bind the usual rows.

    Args:
        rules: `standard | {primitive: row}`, or just the mapping.

    Raises:
        TypeError: `rules` does not map primitives to rows, or a row takes params of
            another class than the primitive that it replaces.

    >>> import verax, verax.numpy as vnp
    >>> from attrs import evolve
    >>> from verax.lax import round_p
    >>> straight_p = evolve(
    ...     round_p, jvp=lambda engine, p, xs, ts: (round_p.bind(p, *xs), ts))
    >>> rounded = with_rules(vnp.round, {round_p: straight_p})
    >>> float(rounded(1.6)), float(verax.grad(rounded)(1.6))
    (2.0, 1.0)
    >>> float(verax.grad(vnp.round)(1.6))
    0.0
    """
    rows = rules.replaced if isinstance(rules, RuleTable) else rules
    check_rows(rows)
    # A mapping that changes later must not change the function.
    table = RuleTable() | rows

    @wraps(fun)
    def overridden(*args: P.args, **kwargs: P.kwargs) -> R:
        program = opened(fun, args, kwargs, purpose="with_rules")
        outs = apply(
            recall(replaced, program.jaxpr, program.jaxpr, table), program.operands
        )
        return cast(R, program.rebuild(outs))

    return overridden


def check_rows(rows: Mapping[Primitive, SomeRow]) -> None:
    """Raise TypeError unless each row can stand where its primitive stands."""
    for primitive, row in rows.items():
        if not (isinstance(primitive, Primitive) and isinstance(row, Row)):
            raise TypeError(
                "rules must map primitives to the rows that replace them, not "
                f"{primitive!r} to {row!r}"
            )
        if row.params is not primitive.params:
            raise TypeError(
                f"the row {row.name} takes {row.params.__name__}, so it cannot replace "
                f"{primitive.name}, which takes {primitive.params.__name__}"
            )


@pure(PROGRAMS)
def replaced(jaxpr: Jaxpr, table: RuleTable) -> Jaxpr:
    """The program with the rows of the table, nested programs included."""

    def exchanged(eqn: Eqn) -> Eqn:
        row = table.replaced.get(eqn.primitive)
        if row is None:
            return eqn
        return Eqn(row, eqn.params, eqn.invars, eqn.outvars, eqn.source)

    return map_jaxprs(jaxpr, lambda inner: map_eqns(inner, exchanged))
