"""Floor 6: a law tried again on one case; what printed counterexamples call.

One idea: a counterexample is text, so this is the other half of printing it::

    hold("jvp", read_case("{ lambda ; ... }", [np.zeros((1, 3))]))
"""

from verax.verify.cases.case import Case, Skipped
from verax.verify.checking.check import Rules, engine_of, laws_of
from verax.verify.laws import LAWS
from verax.verify.laws.compose import LINKS, transformed


def hold(law: str, case: Case, *, rules: Rules = None) -> None:
    """Try a law (or a transformation, by its name) on a case; silent if it holds.

    Raises:
        LawBroken: it does not hold.
        ValueError: there is no law of that name.
    """
    engine = engine_of(rules)
    if law in LINKS and law not in LAWS:
        transformed(engine, case, [law])
        return
    (chosen,) = laws_of([law], engine)
    try:
        chosen(engine, case)
    except Skipped as reason:
        print(f"{law}: this case says nothing: {reason}")
