"""Laws of rewrite rules: the shipped ones keep what they promise, wrong ones are found.

A rule that promises the same bits gives them at special points; one with a bound is
held to its pattern in double precision; every rule applies, and keeps types. A rule
that makes results more accurate does so by the digits that it says, and its derivatives
are those of its pattern in 200 bits.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings, strategies as st

import verax
import verax.numpy as vnp
from property_tests.levels import NIGHTLY, by_turns
from verax import lax
from verax.ir import ShapedArray
from verax.ir.avals import finfo
from verax.ir.dtypes import is_complex, is_float, is_integer, numpy_dtype, real_dtype
from verax.ir.jaxpr import Jaxpr
from verax.rewrites import Rewrite, algebra, cheaper, rewrite, stable
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import Domain
from verax.rules.values.state import interpreting
from verax.transforms import STANDARD, check
from verax.transforms.patterns.matching import rewritten
from verax.verify.cases.case import double_precision
from verax.verify.checking.check_rewrites import check_rewrite
from verax.verify.checking.functions import ENGINE, runner
from verax.verify.strategies import PLAIN, arrays, filled, special_points

STABLE = stable(measured=True)
RULES = (*algebra(fast=True), *cheaper(fast=True), *STABLE)
FLOATS = [np.dtype(name) for name in ("float32", "float64", "float16")]
INTEGERS = [np.dtype(name) for name in ("int32", "uint8", "int8", "uint32")]
LITERALS = (2, 8, 0.25, 64, 3)
TURNS = 8
run = runner(ENGINE)


def kinds(aval: ShapedArray, domain: tuple[float, float]) -> list[ShapedArray]:
    """The types of a sample in other dtypes of its kind, with numbers in a domain."""
    if is_float(aval.dtype):
        integers = INTEGERS if domain[1] >= 0 else []
        return [aval.with_dtype(dtype) for dtype in (*FLOATS, *integers)]
    if is_integer(aval.dtype):
        return [aval.with_dtype(dtype) for dtype in INTEGERS]
    return [aval]


def signatures(rule: Rewrite) -> Iterator[tuple[ShapedArray, ...]]:
    """The types on which a rule is tried: its samples, and those in other dtypes."""
    for sample in rule.samples():
        yield from zip(*[kinds(aval, rule.domain) for aval in sample], strict=False)
        if all(is_float(aval.dtype) for aval in sample):
            yield tuple([aval.with_dtype(np.dtype("complex64")) for aval in sample])


def written(
    rule: Rewrite,
    avals: Sequence[ShapedArray],
    scalar: float | None,
    pattern: Callable[..., Any] | None = None,
) -> Jaxpr:
    """A pattern as a program; with `scalar`, its scalar operands are that literal."""
    builder = Builder("a law")
    args = [
        np.asarray(scalar).astype(numpy_dtype(aval.dtype))
        if scalar is not None and not aval.shape
        else builder.input(aval)
        for aval in avals
    ]
    with interpreting(builder):
        out = (pattern or rule.pattern)(*args, **rule.params)
    return builder.finish(out if isinstance(out, tuple) else (out,))[0]


@frozen
class Instance:
    """A pattern on some types, and the program that the rule makes of it."""

    avals: tuple[ShapedArray, ...]
    scalar: float | None
    before: Jaxpr
    after: Jaxpr


@functools.cache
def instances(rule: Rewrite) -> tuple[Instance, ...]:
    """The types and literals on which the rule applies; it keeps types on each."""
    actual = []
    for avals, pattern in product(signatures(rule), rule.patterns):
        mixed = any(a.shape for a in avals) and not all(a.shape for a in avals)
        for scalar in (*LITERALS, *[None] * rule.whole) if mixed else (None,):
            try:
                before = written(rule, avals, scalar, pattern)
            except (TypeError, ValueError, OverflowError):
                continue
            after = rewritten(STANDARD, before, [rule])
            check(after)
            assert after.in_avals == before.in_avals
            assert after.out_avals == before.out_avals
            if after != before:
                actual.append(Instance(avals, scalar, before, after))
    return tuple(actual)


def law(rule: Rewrite, instance: Instance, args: Sequence[np.ndarray]) -> None:
    """Raise AssertionError unless the rule keeps values as far as it promises."""
    actual = STANDARD.evaluate(instance.after, args)
    if rule.ulps == 0:
        expected = STANDARD.evaluate(instance.before, args)
        for a, b in zip(actual, expected, strict=True):
            same_bits(rule, a, b)
        return
    if args[0].dtype == np.float64:
        return  # there is nothing more exact to compare with
    wide = [aval.with_dtype(np.dtype("float64")) for aval in instance.avals]
    exact = written(rule, wide, instance.scalar)
    truths = STANDARD.evaluate(exact, [x.astype(np.float64) for x in args])
    for a, truth in zip(actual, truths, strict=True):
        close(rule, a, truth, args)


def points(aval: ShapedArray, domain: Domain, turn: int) -> np.ndarray:
    """An array of the points where rules go wrong, other ones at each turn."""
    if not is_float(aval.dtype) and not is_complex(aval.dtype):
        values: list[float] = [0, 1, 2, 3, 7, 100, 127]
    else:
        values = [*PLAIN, *special_points(real_dtype(aval.dtype), domain), np.nan]
    inside = [x for x in values if domain.low <= x <= domain.high]
    if domain == Domain() and len(values) > 7:
        inside.append(np.nan)
    if not inside:  # a domain of negative numbers
        ends = [domain.low, domain.high, (domain.low + domain.high) / 2]
        inside = ends if is_float(aval.dtype) else [0]
    turn %= len(inside)
    return filled(inside[turn:] + inside[:turn], aval.shape, numpy_dtype(aval.dtype))


def same_bits(rule: Rewrite, a: np.ndarray, b: np.ndarray) -> None:
    """The same bits, or both NaN; the signs of zeros count where all is promised."""
    wrong = ~((a == b) | ((a != a) & (b != b)))
    if rule.domain != (-np.inf, np.inf):
        wrong &= np.isfinite(b)
    elif a.dtype.kind in "fc":
        wrong |= (np.signbit(a.real) != np.signbit(b.real)) & (a == a)
    assert not wrong.any(), (
        f"{rule.name}: {a[wrong]} where the pattern gives {b[wrong]}"
    )


def close(
    rule: Rewrite, a: np.ndarray, truth: np.ndarray, args: Sequence[np.ndarray]
) -> None:
    """Within `ulps` of the exact result, or of the largest operand."""
    if a.dtype.kind in "biu":
        assert np.array_equal(a, truth), rule.name
        return
    limits = finfo(a.dtype)
    eps, tiny, largest = (float(getattr(limits, n)) for n in ("eps", "tiny", "max"))
    size = max([0.0, *[float(np.abs(x[np.isfinite(x)]).max(initial=0)) for x in args]])
    scale = np.maximum(np.abs(truth), size if rule.domain[1] < 1e3 else 0.0)
    with np.errstate(all="ignore"):
        off = np.abs(a.astype(np.float64) - truth) > rule.ulps * eps * scale + 4 * tiny
        # The pattern's own dtype may overflow where double precision does not.
        off &= np.isfinite(truth) & (np.abs(truth) < largest / 2)
    assert not off.any(), f"{rule.name}: {a[off]}, exactly {truth[off]} on {args}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_shipped_rule_keeps_what_it_promises(rule: Rewrite) -> None:
    with double_precision():
        actual = instances(rule)
        assert actual, "it applies to nothing that was tried"
        domain = Domain(*rule.domain)
        for instance in actual:
            for turn in range(TURNS):
                law(rule, instance, turned(instance, domain, turn))

    @settings(max_examples=max(3, settings().max_examples // 8))
    @given(st.data())
    def search(data: st.DataObject) -> None:
        instance = data.draw(st.sampled_from(actual))
        args = [data.draw(arrays(aval, domain)) for aval in instance.before.in_avals]
        with double_precision():
            law(rule, instance, args)

    search()


@pytest.mark.parametrize(
    "rule", by_turns(RULES, 2, NIGHTLY), ids=lambda rule: rule.name
)
def test_the_kit_finds_nothing_wrong_with_shipped_rules(rule: Rewrite) -> None:
    assert check_rewrite(rule, cases=6, seed=0).raise_if_broken()


@pytest.mark.parametrize("rule", by_turns(STABLE), ids=lambda rule: rule.name)
def test_shipped_rule_gains_what_it_promises(rule: Rewrite) -> None:
    report = check_rewrite(rule, cases=max(6, settings().max_examples // 8), seed=1)
    verdicts = {finding.law: finding.verdict for finding in report}
    assert verdicts["gain"] == verdicts["derivative"] == "holds", str(report)
    assert rule.gain > 0
    assert rule.weak


def test_shipped_rules_come_to_an_end_together() -> None:
    for rule in STABLE:
        for instance in instances(rule):
            rewritten(STANDARD, instance.before, [*algebra(), *STABLE])


def turned(instance: Instance, domain: Domain, turn: int) -> list[np.ndarray]:
    """Arguments of special points, so that operands meet in many pairs."""
    return [
        points(aval, domain, turn * (3 + 4 * place) + place)
        for place, aval in enumerate(instance.before.in_avals)
    ]


def test_names_are_distinct() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)


def wrong(pattern: Any, replacement: Any, **options: Any) -> Rewrite:
    return rewrite(pattern, name="planted", **options)(replacement)


PLANTED = {
    "sign": wrong(lambda x, y: x - (-y), lambda x, y: x - y),
    "operands": wrong(lambda x, y: x - lax.neg(-y), lambda x, y: y - x),
    "zero": wrong(lambda x: x + 0.0, lambda x: x),
    "infinity": wrong(lambda x: x - x, vnp.zeros_like),
    "axis": wrong(
        lambda x, d=(0,): vnp.flip(vnp.flip(x, d), d),
        lambda x, d: vnp.flip(x, d),
        types=[["f32[2,3]"]],
    ),
    "bound": wrong(vnp.expm1, lambda x: vnp.exp(x) - 1, ulps=4),
    "branch": wrong(
        lambda c, x, y: vnp.where(c, x, y),
        lambda c, x, y: y,
        types=[("bool[2,3]", "f32[2,3]", "f32[2,3]")],
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_wrong_rule_is_found(name: str) -> None:
    rule = PLANTED[name]
    instance = instances(rule)[0]

    def turns() -> None:
        for turn in range(TURNS):
            law(rule, instance, turned(instance, Domain(*rule.domain), turn))

    with double_precision(), pytest.raises(AssertionError, match="planted"):
        turns()


def unsafe_log1mexp(x: Any) -> Any:
    far = vnp.log1p(-vnp.exp(x))
    return vnp.where(x > -0.7, vnp.log(-vnp.expm1(x)), far)


UNSTABLE = {
    "gain": wrong(
        lambda x: vnp.log(1 + x),
        lambda x: vnp.log(vnp.expm1(vnp.log1p(x)) + 1),
        ulps=4,
        domain=(0.5, 1e6),
        weak=[(3e-6,)],
        gain=3,
    ),
    "derivative": wrong(
        lambda x: vnp.log(1 - vnp.exp(x)),
        unsafe_log1mexp,
        ulps=8,
        domain=(-80, -1e-6),
        weak=[(-1e-8,)],
        gain=1,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNSTABLE)
def test_rule_without_its_gain_is_found(name: str) -> None:
    broken = [
        finding.law
        for finding in check_rewrite(UNSTABLE[name], cases=6, seed=0)
        if finding.verdict == "broken"
    ]
    assert name in broken


def test_weak_operands_must_be_those_of_the_rule() -> None:
    rule = wrong(vnp.expm1, vnp.expm1, where=lambda x: False, weak=[(1.0,)], ulps=1)
    with pytest.raises(ValueError, match="applies to none"):
        check_rewrite(rule)


SPECIAL = np.array([0.0, -0.0, 1.5, -3.0, np.inf, -np.inf, np.nan, 1e-42], np.float32)


def test_exact_rules_keep_the_bits_of_compiled_programs() -> None:
    def everything(x: Any, y: Any) -> Any:
        return (
            lax.neg(-x), x * 1, x / 1, x - 0, x + -0.0, x - (-y), x + (-y), (-x) * (-y),
            vnp.abs(-x), x * -1, (-x) / (-y), x / 8, x * 4 / 0.5,
        )  # fmt: skip

    x, y = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    before = verax.make_jaxpr(everything)(x, y).jaxpr
    after = rewritten(STANDARD, before, [*algebra(), *cheaper()])
    assert len(after.eqns) < len(before.eqns)
    for a, b in zip(run(after, [x, y]), run(before, [x, y]), strict=True):
        same_bits(algebra()[0], a, b)
