"""A rule means what it read when its function was called, whenever it is traced."""

import math
import operator
import types
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from attrs import frozen

import verax
import verax.numpy as vnp
from property_tests.levels import NIGHTLY, by_turns
from verax import lax
from verax.custom_batching import custom_vmap
from verax.experimental.ode import odeint
from verax.flatten_util import ravel_pytree

FACTORS = (1.0, 2.0, 5.0)
scale = 1.0


class Model:
    """An object whose attribute changes, as an annealed temperature does."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def current(self) -> float:
        return self.factor


class Pair(NamedTuple):
    factor: float
    other: float


@frozen
class Setting:
    factor: float


def with_jvp(times: Callable[[], Any]) -> Any:
    f = verax.custom_jvp(lambda x: x * times())
    f.defjvp(lambda p, t: (p[0] * times(), t[0] * times()))
    return f


def with_jvp_of_itself(times: Callable[[], Any]) -> Any:
    f = verax.custom_jvp(lambda x: x * times())
    f.defjvp(lambda p, t: (f(p[0]), t[0] * times()))
    return f


def with_jvps(times: Callable[[], Any]) -> Any:
    f = verax.custom_jvp(lambda x: x * times())
    f.defjvps(lambda t, out, x: t * times())
    return f


def with_symbolic_tangents(times: Callable[[], Any]) -> Any:
    f = verax.custom_jvp(lambda x, y: x * times() + y)

    def rule(p: Any, t: Any) -> Any:
        still = isinstance(t[1], verax.custom_derivatives.SymbolicZero)
        return f(*p), t[0] * times() + (0 if still else t[1])

    f.defjvp(rule, symbolic_zeros=True)
    return lambda x: f(x, 0.0)


def with_partials(times: Callable[[], Any]) -> Any:
    f = verax.custom_jvp(partial(lambda times, x: x * times(), times))
    f.defjvp(partial(lambda p, t, times: (f(*p), t[0] * times()), times=times))
    return f


def with_jits(times: Callable[[], Any]) -> Any:
    f = verax.custom_vjp(verax.jit(lambda x: x * times()))
    f.defvjp(
        verax.jit(lambda x: (x * times(), None)),
        verax.jit(lambda _, ct: (ct * times(),)),
    )
    return f


def with_rules_inside(times: Callable[[], Any]) -> Any:
    inner = with_jvp(times)
    f = verax.custom_vjp(lambda x: inner(x))
    f.defvjp(lambda x: verax.vjp(inner, x), lambda pull, ct: pull(ct))
    return f


def with_converted_closure(times: Callable[[], Any]) -> Any:
    f = verax.custom_vjp(lambda g, x, *c: g(x, *c), nondiff_argnums=(0,))
    f.defvjp(
        lambda g, x, *c: (g(x, *c), c),
        lambda g, c, ct: (ct * times(), *[vnp.zeros_like(each) for each in c]),
    )

    def called(x: Any) -> Any:
        g, constants = verax.closure_convert(lambda x: x * times(), x)
        return f(g, x, *constants)

    return called


def with_vjp(times: Callable[[], Any]) -> Any:
    f = verax.custom_vjp(lambda x: x * times())
    f.defvjp(
        lambda x: (x * times(), None),
        lambda _, ct: (ct * times(),),
        optimize_remat=True,
    )
    return f


def with_symbolic_zeros(times: Callable[[], Any]) -> Any:
    f = verax.custom_vjp(lambda x: x * times())
    f.defvjp(
        lambda x: (x.value * times(), None),
        lambda _, ct: (ct * times(),),
        symbolic_zeros=True,
    )
    return f


def with_held(times: Callable[[], Any]) -> Any:
    f = verax.custom_vjp(lambda factor, x: x * factor(), nondiff_argnums=(0,))
    f.defvjp(
        lambda factor, x: (x * factor(), None), lambda factor, _, ct: (ct * factor(),)
    )
    return lambda x: f(times, x)


def with_gradient(times: Callable[[], Any]) -> Any:
    return verax.custom_gradient(lambda x: (x * times(), lambda ct: ct * times()))


def with_vmap(times: Callable[[], Any]) -> Any:
    f = custom_vmap(lambda x: x * times())
    f.def_vmap(lambda size, batched, x: (x * times(), batched[0]))
    return f


def with_linear_call(times: Callable[[], Any]) -> Any:
    return lambda x: verax.custom_derivatives.linear_call(
        lambda _, x: x * times(), lambda _, ct: ct * times(), (), x
    )


def with_solve(times: Callable[[], Any]) -> Any:
    return lambda b: lax.custom_linear_solve(
        lambda x: x / times(),
        b,
        solve=lambda _, b: b * times(),
        transpose_solve=lambda _, b: b * times(),
    )


def with_root(times: Callable[[], Any]) -> Any:
    return lambda a: lax.custom_root(
        lambda x: x - a * times(), a, lambda f, x: a * times(), lambda g, y: y / g(1.0)
    )


def with_checkpoint(times: Callable[[], Any]) -> Any:
    return verax.checkpoint(lambda x: x * times())


KINDS = (
    *(with_jvp, with_jvp_of_itself, with_jvps, with_symbolic_tangents, with_partials),
    *(with_jits, with_rules_inside, with_converted_closure, with_vjp),
    *(with_symbolic_zeros, with_held, with_gradient, with_vmap, with_linear_call),
    *(with_solve, with_root, with_checkpoint),
)
BY_NAME: dict[str, Any] = {kind.__name__: kind for kind in KINDS}


def made_over_cells(make: Any) -> Any:
    def f(x: Any) -> Any:
        for s in FACTORS:
            x = make(lambda: s)(x)  # noqa: B023  # what this is about
        return x

    return f


def made_over_records(make: Any) -> Any:
    def f(x: Any) -> Any:
        for s in FACTORS:
            pair, setting = Pair(s, 0.0), Setting(s)
            x = make(lambda: (pair.factor + setting.factor) / 2)(x)  # noqa: B023
        return x

    return f


def made_over_defaults(make: Any) -> Any:
    def f(x: Any) -> Any:
        for g in [make(lambda s=s: s) for s in FACTORS]:
            x = g(x)
        return x

    return f


def made_over_partials(make: Any) -> Any:
    def f(x: Any) -> Any:
        for s in FACTORS:
            x = make(partial(float, s))(x)
        return x

    return f


type Slot = tuple[Callable[[], Any], Callable[[float], object]]
"""What a rule reads a number with, and what changes it."""


def a_cell() -> Slot:
    s = 0.0

    def write(factor: float) -> None:
        nonlocal s
        s = factor

    return lambda: s, write


def a_global() -> Slot:
    def write(factor: float) -> None:
        global scale
        scale = factor

    return lambda: scale, write


def an_attribute() -> Slot:
    model = Model(1.0)
    return lambda: model.factor, partial(setattr, model, "factor")


def a_method() -> Slot:
    model = Model(1.0)
    return model.current, partial(setattr, model, "factor")


def a_list() -> Slot:
    kept = [1.0]
    return lambda: kept[0], partial(operator.setitem, kept, 0)


def a_dictionary() -> Slot:
    kept = {"s": 1.0}
    return lambda: kept["s"], partial(operator.setitem, kept, "s")


def an_array() -> Slot:
    kept = np.ones(1, np.float32)
    return lambda: kept[0], partial(operator.setitem, kept, 0)


def a_module() -> Slot:
    module: Any = types.ModuleType("settings")
    module.factor = 1.0
    return lambda: module.factor, partial(setattr, module, "factor")


def through(slot: Callable[[], Slot]) -> Any:
    """The way of one function, which reads what changes between its calls."""

    def way(make: Any) -> Any:
        read, write = slot()
        g = make(read)

        def f(x: Any) -> Any:
            for s in FACTORS:
                write(s)
                x = g(x)
            return x

        return f

    way.__name__ = f"through_{slot.__name__}"
    return way


MADE = (made_over_cells, made_over_records, made_over_defaults, made_over_partials)
NAMES = tuple(map(through, (a_cell, a_global)))
OBJECTS = tuple(
    map(through, (an_attribute, a_method, a_list, a_dictionary, an_array, a_module))
)


def values(result: Any) -> list[float]:
    return [float(np.ravel(x)[0]) for x in verax.tree_util.tree_leaves(result)]


LATER = (with_symbolic_tangents, with_symbolic_zeros, with_vmap, with_jits)
"""Rules that are traced where it is known which zeros are symbolic, or what is mapped.

Of objects that change they read what these hold then, as docs/differences.md says; and
what is compiled means what it read at its first call.
"""
CASES = [
    *((way, kind) for way in MADE for kind in KINDS),
    *((way, kind) for way in NAMES for kind in KINDS if kind != with_jits),
    *((way, kind) for way in OBJECTS for kind in KINDS if kind not in LATER),
]


def slope_of_slope(f: Any) -> Any:
    squared = lambda x: f(x) ** 2  # noqa: E731
    return verax.grad(lambda x: verax.grad(squared)(x))


def stepped(f: Any) -> Any:
    return lambda x: lax.scan(lambda c, _: (f(c), c), x, None, length=1)[0]


def chosen(f: Any) -> Any:
    return lambda x: lax.cond(x > 0, f, lambda x: x, x)


both, slope, xs = verax.value_and_grad, verax.grad, vnp.ones(2)
RUNS: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "eager": (lambda f: f(1.0), [10]),
    "jit": (lambda f: verax.jit(f)(1.0), [10]),
    "grad": (lambda f: both(f)(1.0), [10, 10]),
    "grad of jit": (lambda f: both(verax.jit(f))(1.0), [10, 10]),
    "jit of grad": (
        lambda f: verax.jit(lambda x: (both(f)(x), both(chosen(f))(x)))(1.0),
        [10, 10, 10, 10],
    ),
    "grad of vmap": (lambda f: both(lambda x: verax.vmap(f)(x).sum())(xs), [20, 10]),
    "vmap": (lambda f: verax.vmap(f)(xs), [10]),
    "vmap of grad": (lambda f: verax.vmap(both(f))(xs), [10, 10]),
    "grad of grad": (lambda f: slope_of_slope(f)(1.0), [200]),
    "scan": (lambda f: both(stepped(f))(1.0), [10, 10]),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "make"),
    by_turns(CASES, 2, NIGHTLY),
    ids=lambda function: function.__name__,
)
@pytest.mark.usefixtures("little_effort")
def test_a_rule_means_what_it_read_at_the_call(way: Any, make: Any) -> None:
    f = way(make)
    actual = {name: values(run(f)) for name, (run, _) in RUNS.items()}
    assert actual == {name: due for name, (_, due) in RUNS.items()}


@pytest.mark.parametrize("make", KINDS, ids=lambda function: function.__name__)
def test_rules_of_a_comprehension_share_its_last_variable(make: Any) -> None:
    def f(x: Any) -> Any:
        for g in [make(lambda: s) for s in FACTORS]:  # noqa: B023  # the last
            x = g(x)
        return x

    assert values(f(1.0)) == [125]
    assert values(both(f)(1.0)) == [125, 125]
    assert values(both(verax.jit(f))(1.0)) == [125, 125]


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_derivatives_of_any_order_read_objects_at_the_call(kind: str) -> None:
    model = Model(0.0)
    if kind == "jvp":
        f: Any = verax.custom_jvp(lambda x: vnp.exp(x * model.factor))
        f.defjvp(lambda p, t: (f(*p), t[0] * model.factor * f(*p)))
    else:
        f = verax.custom_vjp(lambda x: vnp.exp(x * model.factor))
        f.defvjp(lambda x: (f(x), x), lambda r, ct: (ct * model.factor * f(r),))

    def total(x: Any) -> Any:
        out = 0.0
        for model.factor in (0.5, 2.0):
            out += f(x)
        return out

    g = total
    for order in range(1, 6):
        g = verax.grad(g)
        due = sum(s**order * math.exp(0.25 * s) for s in (0.5, 2.0))
        assert np.isclose(g(0.25), due)


@pytest.mark.parametrize("name", sorted(BY_NAME.keys() - {"with_jits"}))
def test_rules_read_the_state_of_today(name: str) -> None:
    model = Model(3.0)
    f = BY_NAME[name](lambda: model.factor)
    for factor in (1.0, 3.0, 2.0):
        model.factor = factor
        assert values(f(2.0)) == [2 * factor]
        assert values(verax.value_and_grad(f)(2.0)) == [2 * factor, factor]
        assert values(verax.vmap(f)(vnp.ones(2))) == [factor]


def test_a_rule_may_write_what_it_closes_over() -> None:
    count, seen = 0, []
    f = verax.custom_jvp(lambda x: x * 2)

    @f.defjvp
    def rule(p: Any, t: Any) -> Any:
        nonlocal count
        count += 1
        seen.append(count)
        return p[0] * 2, t[0] * 2

    verax.grad(f)(1.0)
    assert count == len(seen) == 1
    verax.grad(f)(1.0)
    assert seen == [1, 2]


def test_a_rule_that_reads_what_changes_is_for_who_differentiates() -> None:
    reasons = ["no derivative"]
    f = verax.custom_jvp(lambda x: x * 2)

    @f.defjvp
    def rule(p: Any, t: Any) -> Any:
        raise RuntimeError(reasons[0])

    assert verax.jit(f)(1.0) == 2
    for slope in (verax.grad(f), verax.grad(verax.jit(f)), verax.jit(verax.grad(f))):
        with pytest.raises(RuntimeError, match="no derivative"):
            slope(1.0)


def test_rules_that_hold_only_values_share_their_traces(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def made(factor: float) -> Any:
        module, kind = vnp, vnp.float32
        f = verax.custom_vjp(lambda x: module.sin(x) * factor)

        def forward(x: Any) -> Any:
            print("traced")
            return f(x), module.cos(x).astype(kind)

        f.defvjp(forward, lambda r, ct: (r * ct * factor,))
        return f

    def slope(*factors: float) -> Any:
        return verax.grad(lambda x: sum(made(s)(x) for s in factors))(1.0)

    assert np.isclose(slope(2.25, 2.25, 2.25), 3 * 2.25 * np.cos(1.0))
    assert capsys.readouterr().out == "traced\n"
    slope(2.25, -2.25, 2.25)
    assert capsys.readouterr().out == "traced\n"


@pytest.mark.parametrize("pair", [(0.0, -0.0), (1, 1.0), (1, True)], ids=str)
def test_equal_values_may_mean_something_else(pair: Any) -> None:
    def made(factor: Any) -> Any:
        f = verax.custom_vjp(lambda x: x)
        f.defvjp(lambda x: (x, None), lambda _, ct: (ct * factor,))
        return f

    for factor in pair:
        slope = verax.grad(made(factor))(1.0)
        assert np.signbit(slope) == np.signbit(factor)


class Wave:
    """A function whose derivative is another object's, and so on without an end."""

    def __init__(self, order: int, orders: list[int]) -> None:
        self.orders = orders
        self.order = order
        self.f = verax.custom_vjp(lambda x: x * 1.0)
        self.f.fun.__name__ = f"wave{order}"
        self.f.defvjp(lambda x: (self.f(x), x), self.pulled)

    def pulled(self, x: Any, ct: Any) -> Any:
        self.orders.append(self.order)
        if len(self.orders) > 500:
            return (ct,)  # an error here would only make the rule wait
        return (ct * Wave(self.order + 1, self.orders).f(x),)


def test_rules_made_by_rules_end() -> None:
    orders: list[int] = []
    wave = Wave(0, orders)
    verax.make_jaxpr(wave.f)(1.0)
    assert max(orders) < 4
    assert len(orders) < 50
    for f in (wave.f, verax.jit(Wave(0, orders).f)):
        orders.clear()
        assert values(slope(f)(3.0)) == [3]
        assert values(slope(slope(f))(3.0)) == [3]
        assert max(orders) < 8
        assert len(orders) < 200


def test_a_rule_inside_many_others_waits() -> None:
    model = Model(2.0)
    layers = [with_jvp(lambda: model.factor)]

    def around(inner: Any) -> Any:
        f = verax.custom_jvp(lambda x: inner(x))
        f.defjvp(lambda p, t: verax.jvp(inner, p, t))
        f.fun.__name__ = f"layer{len(layers)}"
        return f

    for _ in range(8):
        layers.append(around(layers[-1]))
    assert values(verax.jvp(layers[-1], (1.0,), (1.0,))) == [2, 2]
    assert values(verax.jit(layers[-1])(1.0)) == [2]


def test_what_the_library_makes_does_not_change(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flat, unravel = ravel_pytree({"a": vnp.ones(2), "b": 1.0})
    converted, _ = verax.closure_convert(lambda tree: tree["b"] * 2.0, unravel(flat))
    program = verax.jit(lambda x: x * 3.0).lower(1.0).compile()
    f = verax.custom_jvp(lambda x: converted(unravel(x)))

    @f.defjvp
    def rule(p: Any, t: Any) -> Any:
        print("traced", program.in_tree)
        return converted(unravel(p[0])), converted(unravel(t[0]))

    verax.make_jaxpr(f)(flat)
    verax.make_jaxpr(f)(flat)
    assert capsys.readouterr().out == ""
    assert np.array_equal(verax.grad(f)(flat), [0, 0, 2])
    verax.grad(f)(flat)
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_solvers_are_differentiated_where_it_is_needed() -> None:
    def solved(y: Any) -> Any:
        return odeint(lambda y, t, rate: -rate * y, y, vnp.linspace(0.0, 1.0, 3), 2.0)

    assert "rule=UserVjp" in str(verax.make_jaxpr(solved)(vnp.ones(2)))
