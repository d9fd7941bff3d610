"""The mutants themselves: what is changed, and that a wrong rule is caught.

The rules of the whole table are tried by `python -m property_tests.mutants`.
"""

import ast
import re

import pytest

from property_tests.mutants import report
from property_tests.mutants.kinds import KINDS, mutated, sites
from property_tests.mutants.patch import changes
from property_tests.mutants.scope import is_rule, modules, source_of

RULE = """
def jvp_thing(engine, p, xs, ts):
    x, y = xs
    z = select(eq(x, y), mul(x, conj(ts[0])), sub(y, x))
    return zeros(float32, x.aval.weak_type), -z if not p.flag else z


def draw_thing(random):
    return 1 + 2
"""


def test_what_is_listed_as_equivalent_is_in_the_tree() -> None:
    """A line about a rule that has moved would be compared with nothing."""
    known = modules()
    families = [pattern.pattern.split()[0] for pattern in report.families()]
    assert not [x for x in families if not any(re.fullmatch(x, m) for m in known)]
    rules = [tuple(line.split()[:2]) for line in report.equivalent()]
    lost = [(m, name) for m, name in rules if m not in known or not names(m, name)]
    assert not lost


def names(module: str, function: str) -> bool:
    """Whether the text of a module has all parts of the name of a function."""
    return all(part in source_of(module) for part in function.split("."))


def test_sites_are_of_many_kinds_and_not_in_draws() -> None:
    actual = sites(RULE)
    assert {site.kind for site in actual} >= {
        "swapped operands",
        "dropped term",
        "missing conjugate",
        "inverted mask",
        "lost weak type",
        "wrong dtype",
        "sign",
        "zero for a value",
    }
    assert {site.function for site in actual} == {"jvp_thing"}
    assert {site.kind for site in actual} <= {*KINDS, "batch dimension"}


def test_a_mutant_differs_in_one_place() -> None:
    plain = ast.unparse(ast.parse(RULE))
    for site in sites(RULE):
        text = ast.unparse(mutated(RULE, site))
        assert text != plain
        assert site.after in text
        assert sum(a != b for a, b in zip(text, plain, strict=False)) > 0


def test_every_change_of_a_place_is_another_mutant() -> None:
    texts = [ast.unparse(mutated(RULE, site)) for site in sites(RULE)]
    assert len(set(texts)) == len(texts)


@pytest.mark.slow
def test_rules_are_what_rows_reach() -> None:
    assert is_rule("verax.ops.sorting.sort", "jvp_sort")
    assert is_rule("verax.ops.elementwise.trig", "sin_p")
    assert is_rule("verax.rules.programs.derived", "completed")
    assert not is_rule("verax.ops.sorting.sort", "top_k"), "arguments of users"
    assert not is_rule("verax.rules.families.elementwise", "SHAPES"), "for draws"


def test_only_codes_that_hold_the_change_are_replaced() -> None:
    old = "def f(x):\n    return lambda y: x - y\n\ndef g(x):\n    return x\n"
    before, after = (compile(t, "m", "exec") for t in (old, old.replace("-", "+")))
    names = [a.co_qualname for a, _ in changes(before, after)]
    assert names == ["f.<locals>.<lambda>", "f", "<module>"]
