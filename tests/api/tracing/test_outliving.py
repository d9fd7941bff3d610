"""Values that depend on no argument of a derivative or a `vmap` outlive its trace."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import Array, lax, random
from verax.test_util import check_grads

TRANSFORMED: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda f: verax.vmap(f)(vnp.arange(2.0)),
    "grad": lambda f: verax.grad(f)(1.0),
    "value_and_grad": lambda f: verax.value_and_grad(f)(1.0),
    "jvp": lambda f: verax.jvp(f, (1.0,), (1.0,)),
    "vjp": lambda f: verax.vjp(f, 1.0),
    "linearize": lambda f: verax.linearize(f, 1.0),
    "vmap of grad": lambda f: verax.vmap(verax.grad(f))(vnp.arange(2.0)),
    "hessian": lambda f: verax.hessian(f)(1.0),
}


def kept(transformed: Callable[[Any], Any], make: Callable[[], Any]) -> Any:
    held: list[Any] = []

    def f(x: Array) -> Array:
        held.append(make())
        return x * x

    transformed(f)
    return held[0]


@pytest.mark.parametrize("name", TRANSFORMED)
def test_what_no_argument_touches_is_an_array(name: str) -> None:
    def make() -> Array:
        w = vnp.ones(3) * 2
        return vnp.concatenate([w, vnp.sin(w)])[1:4]

    expected = np.array([2, 2, np.sin(np.float32(2))], "float32")
    for use in (
        np.asarray,
        lambda x: x * 1,
        verax.jit(lambda x: x),
        lambda x: verax.jit(lambda: x + 0)(),
        lambda x: verax.grad(lambda y: (x * y).sum())(vnp.ones(3)),
        lambda x: pickle.loads(pickle.dumps(x)),
        np.from_dlpack,
    ):
        x = kept(TRANSFORMED[name], make)
        np.testing.assert_allclose(use(x), expected, rtol=1e-6)
    x = kept(TRANSFORMED[name], make)
    assert repr(x) == repr(make())
    assert x.devices() == make().devices()
    assert str(x.sharding) == str(make().sharding)


def test_keys_and_layers_that_a_model_makes_when_it_is_first_called() -> None:
    class Model:
        weights: Any = None

        def __call__(self, x: Array) -> Any:
            if self.weights is None:
                self.weights = random.normal(random.key(0), (3,))
            return (self.weights * x).sum()

    model = Model()
    first = verax.grad(model)(vnp.ones(3))
    assert (verax.grad(model)(vnp.ones(3)) == first).all()
    expected = random.normal(random.key(0), (3,))
    np.testing.assert_allclose(model.weights, expected, rtol=1e-6)


def test_inside_another_trace_it_is_a_value_of_that_trace() -> None:
    held: list[Any] = []

    def f(x: Any) -> Any:
        verax.vmap(lambda r: held.append(vnp.ones(2) * 3 + x) or r)(vnp.ones(3))  # type: ignore[func-returns-value]  # for the side effect
        return (held.pop() * x).sum()

    np.testing.assert_allclose(verax.jit(f)(1.0), 8.0)
    np.testing.assert_allclose(verax.grad(f)(1.0), 10.0)
    np.testing.assert_allclose(verax.jit(verax.grad(f))(1.0), 10.0)
    np.testing.assert_allclose(verax.vmap(f)(vnp.arange(2.0)), [0.0, 8.0])
    check_grads(f, (1.5,), order=2, modes=("fwd", "rev"))


def test_what_depends_on_an_argument_is_still_a_leak() -> None:
    held: list[Any] = []

    def f(x: Array) -> Array:
        held.append(vnp.ones(3) * x)
        return x

    for transformed in TRANSFORMED.values():
        transformed(f)
        with pytest.raises(verax.LeakedTracer):
            held.pop() + 1


@pytest.mark.parametrize(
    "run",
    [
        lambda f: verax.jit(f)(1.0),
        lambda f: lax.scan(lambda c, _: (f(c), None), 1.0, None, 2),
        lambda f: lax.cond(True, f, f, 1.0),
    ],
)
def test_bodies_keep_what_they_make(run: Callable[[Any], Any]) -> None:
    """Under `jit`, and in loops and branches, all values are of the program."""
    with pytest.raises(verax.LeakedTracer):
        kept(run, lambda: vnp.ones(3) * 2) + 1


def test_effects_do_not_happen_again() -> None:
    def make() -> Any:
        return verax.experimental.io_callback(
            lambda: np.float32(1), verax.ShapeDtypeStruct((), "float32")
        )

    with pytest.raises(verax.LeakedTracer):
        kept(TRANSFORMED["grad"], make) + 1


def test_what_names_an_axis_is_a_value_of_its_elements() -> None:
    """It depends on no argument, and differs between the elements all the same."""
    for make in (
        lambda: lax.axis_index("i") * 2,
        lambda: lax.psum(vnp.ones(2), "i"),
    ):
        mapped = verax.vmap(lambda x: x, axis_name="i")
        held: list[Any] = []

        def f(x: Array, make: Any = make, held: list[Any] = held) -> Array:
            held.append(make())
            return x

        verax.vmap(f, axis_name="i")(vnp.ones(3))
        assert mapped(vnp.ones(3)).shape == (3,)
        with pytest.raises(verax.LeakedTracer):
            held[0] + 1


@pytest.mark.slow
def test_they_are_no_leaks_for_the_check_of_leaks() -> None:
    with verax.check_tracer_leaks():
        x = kept(TRANSFORMED["grad"], lambda: vnp.ones(3) * 2)
        assert x.tolist() == [2, 2, 2]
