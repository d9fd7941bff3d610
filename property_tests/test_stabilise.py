"""Laws of `rewrites.stabilise`: it repairs what rules say is weak, and harms nothing.

On any program, the results of the new function are as near to those in wide arithmetic
as before, and it is one function with the old one; on the weak operands of a rule it
has digits more, and so have derivatives.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from hypothesis import assume, given, settings, strategies as st

import verax
import verax.numpy as vnp
from verax.api.inspect.precision import Run, arithmetic_for
from verax.api.jit import own_statics
from verax.api.tracing.apply import apply as apply_jaxpr
from verax.backend.arrays.concrete import from_host
from verax.ir.dtypes import is_float, is_inexact, numpy_dtype
from verax.ir.jaxpr import Jaxpr
from verax.ops.table import ROWS
from verax.rewrites import Rewrite, Stabilised, stabilise, stable
from verax.transforms import STANDARD
from verax.transforms.precision.measures import roundoff, sampled, yardstick
from verax.transforms.precision.walking import Walk
from verax.verify.cases.case import Case, double_precision, is_double
from verax.verify.random_programs import composable, programs

FEW = 8
SOURCE = programs(composable(ROWS), most=8)
STABLE = stable(measured=True)
PLAIN = [r for r in STABLE if not r.whole and not r.types and len(r.variables) == 1]


@frozen(eq=False)
class Composed:
    """A random program, with weak forms of its floating results beside them."""

    jaxpr: Jaxpr
    forms: tuple[Rewrite, ...]
    scale: float

    def __call__(self, *xs: Any) -> Any:
        outs = list(apply_jaxpr(self.jaxpr, xs))
        floating = [x for x in outs if is_float(x.dtype)]
        weak = [
            rule.pattern(vnp.tanh(x) * self.scale)
            for x, rule in zip(floating, self.forms, strict=False)
        ]
        return outs, weak


def no_worse(run: Run, better: Stabilised) -> None:
    """The results are as near to the wide ones of the old program as before."""
    wide = arithmetic_for(run.jaxpr, None)
    cells = Walk(STANDARD, wide).run(run.jaxpr, run.values)
    results = verax.tree.leaves(better.result)
    for cell, result in zip(cells, results, strict=True):
        if not is_inexact(result.dtype) or not result.size:
            continue
        out = np.asarray(result)
        exact = np.asarray(cell.exact(wide))
        if not np.isfinite(exact).all():
            continue
        due = sampled(exact, 1)
        with np.errstate(all="ignore"):
            now = yardstick(sampled(wide.widen(out), 1), due).error(due)
        before = cell.error.mean
        assert now.mean <= 1.3 * before + FEW * roundoff(out.dtype), str(better)


# The shadow converts complex numbers to integers as NumPy does, which warns.
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@settings(max_examples=max(10, settings().max_examples // 2))
@given(
    SOURCE,
    st.lists(st.sampled_from(PLAIN), max_size=3),
    st.sampled_from([1.0, 1e-4, 1e-2, 30.0, 95.0]),
)
def test_nothing_is_worse_in_random_programs(
    case: Case, forms: list[Rewrite], scale: float
) -> None:
    # Keys among operands are words here.
    assume(all(isinstance(a.dtype, np.dtype) for a in case.jaxpr.in_avals))
    fun = Composed(case.jaxpr, tuple(forms), scale)
    with double_precision(is_double(case.jaxpr)):
        harms_nothing(fun, case.values)


def harms_nothing(fun: Composed, values: tuple[Any, ...]) -> None:
    """The law of one function on some arguments."""
    avals = fun.jaxpr.in_avals
    values = tuple([from_host(x, a) for x, a in zip(values, avals, strict=True)])
    better = stabilise(fun)(*values)
    no_worse(Run.of(fun, own_statics(fun, None, None), values, {}, "a law"), better)
    for repair in better.repairs:
        assert repair.lost - repair.left > 0.3 or repair.now < repair.error, str(better)
    # The function that comes of it computes what the report has.
    again = verax.tree.leaves(better.function(*values))
    assert len(again) == len(verax.tree.leaves(better.result))


def operands_of(rule: Rewrite) -> list[list[Any]]:
    """The weak operands of a rule, as arrays of its first types, or numbers."""
    avals = rule.samples()[0]
    mixed = any(a.shape for a in avals) and not rule.whole
    return [
        [
            float(np.asarray(x))
            if mixed and not a.shape
            else np.resize(np.asarray(x, np.float64), a.shape).astype(
                numpy_dtype(a.dtype)
            )
            for x, a in zip(operands, avals, strict=True)
        ]
        for operands in rule.weak
    ]


@pytest.mark.parametrize("rule", STABLE, ids=lambda rule: rule.name)
def test_weak_operands_are_repaired(rule: Rewrite) -> None:
    for operands in operands_of(rule):
        arrays = [x for x in operands if not isinstance(x, float)]
        fixed = [x for x in operands if isinstance(x, float)]
        better = stabilise(functools.partial(weak_form, rule, fixed))(*arrays)
        assert better.repairs, str(better)
        assert better.after.error <= better.before.error / 3, str(better)


def weak_form(rule: Rewrite, fixed: Sequence[float], *arrays: Any) -> Any:
    """The pattern of a rule; its numbers come last, as literals."""
    return rule.pattern(*arrays, *fixed, **rule.params)


@settings(max_examples=max(5, settings().max_examples // 8))
@given(st.data())
def test_weak_forms_in_random_programs(data: st.DataObject) -> None:
    rules = data.draw(st.lists(st.sampled_from(PLAIN), min_size=1, max_size=3))
    scales = [data.draw(st.sampled_from([0.5, 1.0, 2.0])) for _ in rules]

    def f(x: Any) -> Any:
        return tuple([r.pattern(x * s) for r, s in zip(rules, scales, strict=True)])

    x = np.float32(data.draw(st.sampled_from([3e-5, -1e-4, 0.3, 9.0, -20.0, 91.0])))
    better = stabilise(f)(x)
    errors = zip(
        better.before.outputs.values(), better.after.outputs.values(), strict=True
    )
    for before, after in errors:
        assert after.mean <= 1.3 * before.mean + FEW * roundoff(np.float32), str(better)
