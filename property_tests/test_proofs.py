"""Laws of proofs: what rules and rows claim holds, and wrong ones are refuted.

Every shipped rule and every closed form is held to what the page of primitives and
its claim say; planted mistakes have a counterexample.
"""

import functools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings, strategies as st

import verax.numpy as vnp
from property_tests.levels import by_turns
from verax import lax, nn
from verax.lax import cos, mul, neg, sin, sub
from verax.ops.table import PRIMITIVES
from verax.rewrites import Rewrite, RewriteError, algebra, cheaper, rewrite, stable
from verax.rules.families.elementwise import elementwise, stablehlo
from verax.rules.rows.row import Row, Zero
from verax.verify import Proof, Refuted, prove_jvp, prove_rewrite, prove_transpose
from verax.verify.checking.closed_forms import FORMS, PROVED
from verax.verify.checking.equality import decided, proof_of
from verax.verify.checking.symbols import exact

sympy = pytest.importorskip("sympy", reason="the extra `verify` installs it")
RULES = (*algebra(fast=True), *cheaper(fast=True), *stable())
OVER_REALS = tuple([rule for rule in RULES if rule.claim == "reals"])
LEAST_PROVED = 50
"""So many shipped rules are proved at least; a prover that gives up is noticed."""


@functools.cache
def proof_of_rule(rule: Rewrite) -> Proof:
    return prove_rewrite(rule, cases=6)


@pytest.mark.parametrize("rule", by_turns(RULES), ids=lambda rule: rule.name)
def test_claim_of_shipped_rule_is_proved_or_tested(rule: Rewrite) -> None:
    proof = proof_of_rule(rule)
    assert proof, str(proof)
    if rule.claim == "reals":
        assert proof.status == "proved" or "literals" in proof.note, str(proof)


@pytest.mark.slow
def test_many_shipped_rules_are_proved() -> None:
    status = Counter(proof_of_rule(rule).status for rule in OVER_REALS)
    assert status["proved"] >= LEAST_PROVED
    moved = [r for r in RULES if r.name in ("transposed_twice", "reshaped_twice")]
    assert [prove_rewrite(rule).status for rule in moved] == ["proved", "proved"]


@pytest.mark.parametrize("name", FORMS)
def test_column_is_proved_where_the_page_says_so(name: str) -> None:
    form, row = FORMS[name], PRIMITIVES[name]
    proof = prove_jvp(row)
    assert proof.status == form.jvp, str(proof)
    if row.has("transpose"):
        proof = prove_transpose(row)
        assert proof.status == form.transpose, str(proof)


def test_most_elementwise_derivatives_are_proved() -> None:
    assert Counter(form.jvp for form in FORMS.values())[PROVED] >= 45


def wrong(pattern: Any, replacement: Any, **options: Any) -> Rewrite:
    return rewrite(pattern, name="planted", **{"ulps": 4, **options})(replacement)


MATRIX = [["f32[2,3]"]]
WRONG_RULES = {
    "factor": wrong(lambda x, y, z: x * y + x * z, lambda x, y, z: x * (y - z)),
    "square of sum": wrong(lambda x, y: (x + y) * (x + y), lambda x, y: x * x + y * y),
    "root of square": wrong(lambda x: vnp.sqrt(x * x), lambda x: x),
    "log of square": wrong(lambda x: vnp.log(x * x), lambda x: 2 * vnp.log(x)),
    "log of product": wrong(
        lambda x, y: vnp.log(x * y), lambda x, y: vnp.log(x) * vnp.log(y)
    ),
    "exp of product": wrong(
        lambda x, y: vnp.exp(x * y), lambda x, y: vnp.exp(x) * vnp.exp(y)
    ),
    "sine of twice": wrong(lambda x: vnp.sin(2 * x), lambda x: 2 * vnp.sin(x)),
    "tanh": wrong(vnp.tanh, lambda x: 2 * nn.sigmoid(2 * x) + 1),
    "quotient": wrong(lambda x, y, z: x / (y / z), lambda x, y, z: x / (y * z)),
    "larger": wrong(lambda x, y: vnp.maximum(x, y), lambda x, y: (x + y + x - y) / 2),
    "mean": wrong(
        lambda x, axes=(1,): vnp.sum(x, axis=axes) / 3,
        lambda x, axes: vnp.sum(x, axis=axes) / 2,
        types=MATRIX,
    ),
    "log of sum of exp": wrong(
        lambda x, axes=(1,): vnp.log(vnp.sum(vnp.exp(x), axis=axes)),
        lambda x, axes: vnp.sum(x, axis=axes),
        types=MATRIX,
    ),
    "choice": wrong(
        lambda x: vnp.where(vnp.maximum(x, 0.0) == 0, 5.0, x), lambda x: x + 0.0
    ),
    "slightly": wrong(lambda x: 2 * x + 1, lambda x: 2.0000000001 * x + 1),
    "axis": wrong(
        lambda x, d=(0,): lax.rev(lax.rev(x, d), d),
        lambda x, d: lax.rev(x, d),
        types=MATRIX,
        ulps=0,
    ),
    "bits": wrong(lambda x: x + 0.0, lambda x: x, ulps=0),
    "bound": wrong(
        lambda x: vnp.sin(x) + 0, lambda x: x + 0, claim="bound", domain=(-3, 3)
    ),
}


@pytest.mark.parametrize("name", WRONG_RULES)
def test_wrong_rule_is_refuted(name: str) -> None:
    proof = prove_rewrite(WRONG_RULES[name])
    assert proof.status == "refuted", str(proof)
    assert proof.counterexample is not None
    with pytest.raises(Refuted, match=r"planted: .* refuted"):
        proof.raise_if_refuted()


def derived(name: str, jvp: Any) -> Row[Any]:
    """A row that computes what NumPy's function of that name does, with this jvp."""
    return elementwise(name, getattr(np, name), jvp=jvp, lower=stablehlo("sine"))


WRONG_JVPS = {
    "tanh": derived("tanh", lambda x, y, t: mul(t, sub(1.0, y))),
    "sign": derived("sin", lambda x, y, t: mul(t, neg(cos(x)))),
    "result": derived("sin", lambda x, y, t: mul(t, y)),
    "constant": derived("sin", lambda x, y, t: mul(t, mul(cos(x), 0.99))),
    "tangent": derived("sin", lambda x, y, t: mul(mul(t, t), cos(x))),
    "none": derived("tanh", None),
    "inner": derived("sin", lambda x, y, t: mul(t, cos(sin(x)))),
}


@pytest.mark.parametrize("name", WRONG_JVPS)
def test_wrong_derivative_is_refuted(name: str) -> None:
    proof = prove_jvp(WRONG_JVPS[name])
    assert proof.status == "refuted", str(proof)
    assert proof.counterexample is not None


@pytest.mark.parametrize("name", ["mul", "atan2", "pow", "max", "div"])
def test_exchanged_operands_are_refuted(name: str) -> None:
    own = PRIMITIVES[name]
    jvp = own.jvp
    assert jvp is not None

    def exchanged(engine: Any, p: Any, xs: Any, ts: Any) -> Any:
        (y,), _ = jvp(engine, p, xs, ts)
        _, tangents = jvp(engine, p, xs, ts[::-1])
        return (y,), tangents

    proof = prove_jvp(evolve(own, jvp=exchanged))
    assert proof.status == "refuted", str(proof)


@pytest.mark.parametrize("name", FORMS)
def test_a_thousandth_more_or_a_tangent_too_many_is_refuted(name: str) -> None:
    own, complex_ones = PRIMITIVES[name], ("real", "imag", "conj", "complex")
    jvp = own.jvp
    assert jvp is not None

    def more(engine: Any, p: Any, xs: Any, ts: Any) -> Any:
        (y,), (tangent,) = jvp(engine, p, xs, ts)
        if isinstance(tangent, Zero):
            (tangent,) = [t for t in ts if not isinstance(t, Zero)]
            return (y,), (tangent,)
        return (y,), (mul(tangent, -1.0 if name in complex_ones else 1.001),)

    proof = prove_jvp(evolve(own, jvp=more))
    assert proof.status == "refuted", str(proof)
    assert proof.counterexample is not None


@pytest.mark.parametrize("name", ["sub", "imag", "conj", "div"])
def test_wrong_transpose_is_refuted(name: str) -> None:
    own = PRIMITIVES[name]
    transpose = own.transpose
    assert transpose is not None

    def negated(engine: Any, p: Any, cts: Any, xs: Any) -> Any:
        outs = transpose(engine, p, cts, xs)
        return [None if out is None else neg(out) for out in outs]

    proof = prove_transpose(evolve(own, transpose=negated))
    assert proof.status == "refuted", str(proof)


def test_a_form_that_is_not_what_the_row_computes_is_refuted() -> None:
    proof = prove_jvp("sin", lambda x: sympy.sin(x) + 1)
    assert proof.status == "refuted"
    assert "closed form" in proof.note


def test_own_row_with_its_form() -> None:
    log_cosh_p = elementwise(
        "log_cosh",
        lambda x: np.log(np.cosh(x)),
        jvp=lambda x, y, t: mul(t, vnp.tanh(x)),
        lower=stablehlo("sine"),
    )
    assert prove_jvp(log_cosh_p, lambda x: sympy.log(sympy.cosh(x))).status == "proved"
    with pytest.raises(ValueError, match="no closed form of log_cosh is known"):
        prove_jvp(log_cosh_p)


def test_what_has_no_proof_says_so() -> None:
    with pytest.raises(ValueError, match="rows without params"):
        prove_jvp("integer_pow")
    with pytest.raises(ValueError, match="has no transpose"):
        prove_transpose("sin")
    with pytest.raises(ValueError, match="2 operands; pass pieces="):
        prove_jvp("atan2", lambda x, y: sympy.atan2(x, y))


def test_zeros_of_two_signs_are_not_the_same_bits() -> None:
    def choice(zero: float) -> Any:
        return lambda c, x: lax.select(c, x, vnp.full_like(x, zero))

    types = [("bool[2,3]", "f32[2,3]")]
    for zero, status in ((0.0, "tested"), (-0.0, "refuted")):
        rule = wrong(choice(0.0), choice(zero), types=types, ulps=0)
        assert prove_rewrite(rule).status == status


def test_what_holds_for_literals_alone_is_no_proof() -> None:
    def small(x: Any, c: Any) -> bool:
        return c.literal is not None

    types = [("f32[2,3]", "f32[]")]

    def proof(replacement: Any) -> Any:
        rule = wrong(lambda x, c: x * c * c, replacement, where=small, types=types)
        return prove_rewrite(rule)

    assert proof(lambda x, c: x * (c * c)).status == "proved"
    only = proof(lambda x, c: x * float(c) ** 2)
    assert (only.status, "literals" in only.note) == ("tested", True)


def test_a_maximum_may_be_zero() -> None:
    x = sympy.Symbol("x", real=True)
    top = sympy.Max(x, 0)
    chosen = sympy.Piecewise((5, sympy.Eq(top, 0)), (x, True))
    assert proof_of(chosen, x) == ""
    assert proof_of(top * (x + 1), top * x + top) == "normal form"
    y = sympy.Symbol("y", real=True)
    length = sympy.Max(sympy.Abs(x), sympy.Abs(y))
    chosen = sympy.Piecewise((5, sympy.Eq(length, 0)), (x, True))
    assert proof_of(chosen, x) == ""


def test_nothing_is_no_proof() -> None:
    assert decided([]).status == "tested"


@pytest.mark.parametrize("options", [{"claim": "bits", "ulps": 1}, {"claim": "reals"}])
def test_claim_that_ulps_contradict_is_refused(options: Any) -> None:
    with pytest.raises(RewriteError, match="contradicts ulps"):
        rewrite(lambda x: x + 0, **options)(lambda x: x)


def test_claim_that_is_none_is_refused() -> None:
    with pytest.raises(RewriteError, match="claim must be one of bits, reals, bound"):
        rewrite(lambda x: x + 0, claim="real")(lambda x: x)  # type: ignore[arg-type]


@settings(max_examples=max(10, settings().max_examples // 4))
@given(st.fractions(-100, 100, max_denominator=1 << 9), st.integers(1, 64))
def test_literals_stand_for_the_numbers_they_are_nearest_to(x: Any, n: int) -> None:
    assert exact(float(x)) == sympy.Rational(x.numerator, x.denominator)
    assert exact(float(np.sqrt(n))) == sympy.sqrt(n)
    assert exact(float(np.log(n))) == sympy.log(n)


@st.composite
def polynomials(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two ways to write a product of sums, and whether they are really two."""
    x, y = sympy.symbols("x y", real=True)
    terms = [draw(st.sampled_from([x, y, x * y, x + 1, y - 2])) for _ in range(3)]
    product = terms[0] * (terms[1] + terms[2])
    return product, terms[0] * terms[1] + terms[2] * terms[0]


@settings(max_examples=max(10, settings().max_examples // 8), deadline=None)
@given(polynomials(), st.integers(-2, 2))
def test_polynomials_are_decided(pair: tuple[Any, Any], more: int) -> None:
    left, right = pair
    status = decided([(left, right + more)]).status
    assert status == ("refuted" if more else "proved")
