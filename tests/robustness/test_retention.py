"""What a function closed over dies with it, without clearing anything.

Each transformation meets each kind of closure: arrays of verax and of NumPy, in the
function itself, in bodies of control flow, in rules and in callbacks.
"""

import gc
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax

X = vnp.ones(3)
XS = vnp.ones((2, 3))

type Use = Callable[[Any], Any]


class Held(np.ndarray):
    """NumPy's array of which one can see that it has died."""


def custom_jvp(a: Any) -> Any:
    f = verax.custom_jvp(lambda x: (x * a).sum())
    f.defjvp(lambda p, t: (f(*p), (t[0] * a).sum()))
    return f


def custom_vjp(a: Any) -> Any:
    f = verax.custom_vjp(lambda x: (x * a).sum())
    f.defvjp(lambda x: (f(x), x), lambda r, ct: (ct * a * r,))
    return f


def custom_gradient(a: Any) -> Any:
    return verax.custom_gradient(lambda x: ((x * a).sum(), lambda g: (g * a,)))


def custom_vmap(a: Any) -> Any:
    f = verax.custom_batching.custom_vmap(lambda x: x * a)
    f.def_vmap(lambda size, batched, x: (x * a, True))
    return f


def solve(a: Any) -> Use:
    return lambda x: lax.custom_linear_solve(
        lambda v: v * a, x, lambda _, b: b / a, symmetric=True
    ).sum()


def chosen(a: Any) -> Use:
    return lambda x: lax.cond(x.sum() > 0, lambda y: y * a, lambda y: y, x)


def scanned(a: Any) -> Use:
    return lambda x: lax.scan(lambda c, _: (c + c * a, c), x, None, length=3)[0].sum()


def looped(a: Any) -> Use:
    return lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + a + 1, x)


def counted(a: Any) -> Use:
    return lambda x: lax.fori_loop(0, 3, lambda i, c: c * a, x).sum()


def called(a: Any) -> Use:
    shape = verax.ShapeDtypeStruct((3,), "float32")
    return lambda x: verax.pure_callback(
        lambda y: np.asarray(y * a), shape, x, vmap_method="sequential"
    )


def watched(a: Any) -> Use:
    def f(x: Any) -> Any:
        verax.debug.callback(lambda y: a, x)
        return x

    return f


def static(a: Any) -> Use:
    class Scale:
        """An object that is compared by identity."""

        factor = a

    f, scale = verax.jit(lambda s, x: x * s.factor, static_argnums=0), Scale()
    return lambda x: f(scale, x)


def product(a: Any) -> Use:
    return lambda x: (x * a).sum()


def jitted(a: Any) -> Use:
    return lambda x: verax.jit(lambda y: (y * a).sum())(x)


def kept(a: Any) -> Use:
    return lambda x: verax.checkpoint(lambda y: vnp.sin(y * a).sum())(x)


KINDS: dict[str, Callable[[Any], Use]] = {
    f.__name__: f
    for f in (
        *(product, jitted, kept, chosen, scanned, looped, counted, called, watched),
        *(custom_jvp, custom_vjp, custom_gradient, solve, custom_vmap, static),
    )
}
REVERSIBLE = frozenset(
    {
        *("product", "jitted", "kept", "scanned", "counted"),
        *("custom_jvp", "custom_vjp", "custom_gradient", "solve"),
    }
)
TRANSFORMS: dict[str, Callable[[Use], Use]] = {
    "itself": lambda f: f,
    "jit": verax.jit,
    "vmap": lambda f: lambda x: verax.vmap(f)(XS),
    "jit_vmap": lambda f: lambda x: verax.jit(verax.vmap(f))(XS),
    "grad": verax.grad,
    "jit_grad": lambda f: verax.jit(verax.grad(f)),
    "grad_jit": lambda f: verax.grad(verax.jit(f)),
    "vmap_grad": lambda f: lambda x: verax.vmap(verax.grad(f))(XS),
    "hessian": verax.hessian,
    "linearize": lambda f: lambda x: verax.linearize(f, x)[1](x),
    "make_jaxpr": verax.make_jaxpr,
    "compiled": lambda f: lambda x: verax.jit(f).lower(x).compile()(x),
}
DERIVATIVES = frozenset(
    {"grad", "jit_grad", "grad_jit", "vmap_grad", "hessian", "linearize"}
)
FORWARD = frozenset({"hessian", "linearize"})
CYCLES = frozenset({"custom_jvp", "custom_vjp", "static", "custom_vmap"})
"""Kinds in which the user's own functions or classes hold themselves."""


def is_possible(kind: str, transform: str) -> bool:
    if transform not in DERIVATIVES:
        return True
    if transform in FORWARD and kind in ("custom_vjp", "custom_gradient"):
        return False  # these have no forward mode
    return kind in REVERSIBLE


PAIRS = [(k, t) for k in KINDS for t in TRANSFORMS if is_possible(k, t)]


@contextmanager
def no_collection() -> Iterator[None]:
    """Within the block objects die only when nobody refers to them.

    A collection that is asked for goes through what the block has made alone.
    """
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.enable()


def experiments(kind: str, transform: str, numpys: bool) -> list[Any]:
    """Weak references to the arrays of three experiments that are over."""
    alive = []
    for i in range(3):
        array: Any = vnp.arange(3.0) + i
        if numpys:
            array = np.arange(3, dtype=np.float32).view(Held)
        alive.append(weakref.ref(array))
        use = TRANSFORMS[transform](KINDS[kind](array))
        use(X)
        use(X)
        del array, use
    return alive


def count(alive: list[Any]) -> int:
    return sum([x() is not None for x in alive])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "transform"), PAIRS)
@pytest.mark.usefixtures("little_effort")
def test_arrays_die_with_what_closed_over_them(kind: str, transform: str) -> None:
    with no_collection():
        alive = experiments(kind, transform, False)
        if kind in CYCLES:
            gc.collect()
        # Runs with callbacks hold what they call until they have ended.
        deadline = time.monotonic() + 20
        while kind in ("called", "watched") and count(alive):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert count(alive) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("called", "watched")])
@pytest.mark.parametrize("transform", ["jit", "vmap", "jit_grad"])
def test_arrays_of_numpy_die_too(kind: str, transform: str) -> None:
    if not is_possible(kind, transform):
        transform = "itself"
    with no_collection():
        alive = experiments(kind, transform, True)
        gc.collect()
        assert count(alive) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("few_objects")
def test_static_objects_die_with_the_function_or_when_it_is_cleared() -> None:
    class Scale:
        factor = 2.0

    f = verax.jit(lambda s, x: x * s.factor, static_argnums=0)
    scale = Scale()
    alive = weakref.ref(scale)
    f(scale, 1.0)
    del scale
    assert alive() is not None
    f.clear_cache()
    gc.collect()
    assert alive() is None


@pytest.mark.slow
def test_clear_caches_forgets_rules(capsys: pytest.CaptureFixture[str]) -> None:
    @verax.custom_jvp
    def f(x: Any) -> Any:
        return x * 2

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        print("traced")
        return f(*primals), 2 * tangents[0]

    step = verax.jit(verax.grad(f))
    step(1.0)
    assert capsys.readouterr().out
    verax.jit(verax.grad(lambda x: f(x)))(1.0)
    assert not capsys.readouterr().out
    verax.clear_caches()
    step(1.0)
    assert capsys.readouterr().out


def test_closures_over_other_arrays_share_the_compiled_program() -> None:
    def program(a: Any) -> Any:
        return verax.jit(lambda x: vnp.sin(x * a) + 0.123)

    program(vnp.arange(5.0))(1.0)
    before = verax.metrics()["compiles"]
    actual = program(vnp.arange(5.0) * 2)(1.0)
    np.testing.assert_allclose(actual, np.sin(np.arange(5.0) * 2) + 0.123, rtol=1e-5)
    assert verax.metrics()["compiles"] == before


def test_traces_are_shared_by_functions_while_these_live() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x * 2

    for i in range(5):
        assert verax.jit(f)(float(i)).item() == 2.0 * i
    assert len(calls) == 1
    with verax.enable_x64():
        verax.jit(f)(1.0)
    assert len(calls) == 2
    verax.jit(f).clear_cache()
    verax.jit(f)(1.0)
    assert len(calls) == 3
    alive = weakref.ref(f)
    del f
    assert alive() is None
    steps = []

    def step(c: Any, x: Any) -> Any:
        steps.append(1)
        return c + x, c

    for _ in range(5):
        lax.scan(step, np.float32(0), X)
    assert len(steps) == 1
