"""Floor 6: check_function: a user's function held to every law.

One idea: what the library promises for its rows it promises for functions made of them,
custom rules included, so a function is checked by the same laws::

    check_function(loss, weights, batch).raise_if_broken()
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import Case
from verax.verify.checking.check import Rules, engine_of, laws_of
from verax.verify.checking.functions import function_cases, function_laws, function_of
from verax.verify.checking.report import Finding, Report
from verax.verify.checking.search import search
from verax.verify.laws import Law
from verax.verify.laws.compose import LINKS, chain

CASES = 20
CHAINS = (("vjp", "vmap"), ("vmap", "vjp"), ("jvp", "vjp"), ("vjp", "jvp"))
NO_KWARGS: Mapping[str, Any] = MappingProxyType({})


def chain_law(names: Sequence[str]) -> Law:
    """The law that each step of a chain of transformations keeps its own law.

    Raises:
        ValueError: there is no transformation of that name.
    """
    unknown = [name for name in names if name not in LINKS]
    if unknown:
        raise ValueError(
            f"there is no transformation {unknown[0]!r}; the transformations are "
            f"{', '.join(LINKS)}"
        )

    def check(engine: StandardEngine, case: Case) -> None:
        chain(engine, case, names)

    return Law(" of ".join(reversed(names)), check, wide=True, depth=4, cost=8)


def pick(
    name: Law | str, special: Mapping[str, Law], engine: StandardEngine
) -> Sequence[Law]:
    """A law by its name, among those of functions and those of programs."""
    if isinstance(name, str) and name in special:
        return (special[name],)
    return laws_of([name], engine)


def check_function(
    fun: Callable[..., Any],
    *args: Any,
    kwargs: Mapping[str, Any] = NO_KWARGS,
    domains: Any = None,
    rules: Rules = None,
    cases: int = CASES,
    laws: Iterable[Law | str] | None = None,
    chains: Iterable[Sequence[str]] = CHAINS,
    seed: int | None = None,
) -> Report:
    """Checks a function by the laws: one finding for each law.

    The function is called, compiled and traced; its program is evaluated, compiled,
    differentiated (held to differences in double precision), transposed, batched (held
    to the loop), pruned, printed and parsed, and put through `chains` of those.

    Args:
        fun: a function of arrays, scalars and pytrees of them.
        args: example arguments. Values are drawn near them: each number within an
            eighth of itself. A `ShapeDtypeStruct` gives only the type; its values are
            any numbers, special ones included.
        kwargs: keyword arguments, as examples too.
        domains: a `Domain`, or a tree of them that is a prefix of `args`: values are
            drawn from there. None in it stands for "near the example".
        rules: the table to check under, as in `check_primitive`.
        cases: how many calls are drawn for each law (fewer for expensive ones).
        laws: names of laws, or laws; all of them if left out.
        chains: transformations that are applied in order, each held to its law.
        seed: draw the same cases each time.

    Raises:
        TypeError: `fun` is not a function, or an argument is not an array.
        ValueError: `domains` does not fit, or no law or transformation has that name.

    >>> import verax.numpy as vnp
    >>> report = check_function(lambda w, x: vnp.tanh(x @ w).sum(), vnp.ones(2),
    ...                         vnp.ones((3, 2)), cases=4, chains=[])
    >>> bool(report), "eager" in [finding.law for finding in report]
    (True, True)
    """
    function = function_of(fun, args, kwargs, domains)
    engine = engine_of(rules)
    special = {law.name: law for law in function_laws(function)}
    if laws is None:
        programs = [law for law in laws_of(None, engine) if not law.rows_only]
        chosen = [*special.values(), *programs, *map(chain_law, chains)]
    else:
        chosen = [law for name in laws for law in pick(name, special, engine)]
    findings: list[Finding] = []
    for law in chosen:
        source = function_cases(function, law)
        findings.append(search(law, function.name, engine, source, cases, seed=seed))
    return Report(function.name, tuple(findings))
