"""What libraries do with arrays, and stopped at."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import ops, random
from verax.experimental.layout import Format, Layout, with_layout_constraint
from verax.experimental.random import StatefulPRNG, stateful_rng


class Image:
    """As a picture of PIL's: neither `__array__` nor a buffer."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        data = bytes(range(6))
        return {"shape": (2, 3), "typestr": "|u1", "version": 3, "data": data}


def test_arrays_by_their_interface_alone() -> None:
    assert vnp.asarray(Image()).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert vnp.array(Image()).dtype == "uint8"


def test_shifts_and_counts_in_sequences_may_be_traced() -> None:
    x = vnp.arange(6).reshape(2, 3)
    rolled = verax.jit(lambda i, j: vnp.roll(x, (i, j), (0, 1)))(1, 2)
    assert rolled.tolist() == np.roll(np.asarray(x), (1, 2), (0, 1)).tolist()
    edges = verax.jit(lambda a: vnp.pad(vnp.ones(2), 1, constant_values=(a, 5)))(3.0)
    assert edges.tolist() == [3, 1, 1, 5]
    counts = verax.jit(
        lambda a: vnp.repeat(vnp.arange(2), [a, 2], total_repeat_length=3)
    )(1)
    assert counts.tolist() == [0, 1, 1]


@pytest.mark.parametrize("where", [None, True])
def test_the_correction_of_a_variance_may_be_traced(where: Any) -> None:
    x = vnp.array([1.0, 2.0, 4.0])
    mask = None if where is None else vnp.ones(3, bool)
    for function in (vnp.var, vnp.std):
        actual = verax.jit(lambda c, f=function: f(x, correction=c, where=mask))(1.0)
        np.testing.assert_allclose(actual, function(x, correction=1.0), rtol=1e-6)
    assert np.isnan(verax.jit(lambda c: vnp.var(x, correction=c))(3.0))


def test_one_number_is_the_data_of_every_segment() -> None:
    ids = vnp.array([0, 0, 1])
    assert ops.segment_sum(2.0, ids, 2).tolist() == [4, 2]
    assert ops.segment_max(vnp.float32(2), ids, 3).tolist() == [2, 2, -np.inf]


def test_bounds_of_one_element_give_a_draw_its_shape() -> None:
    key = random.key(0)
    out = random.uniform(key, minval=vnp.zeros(1), maxval=vnp.ones((1,)))
    assert out.shape == (1,)
    assert float(out[0]) == float(random.uniform(key))


@verax.tree_util.register_pytree_node_class
class Quantity:
    def __init__(self, value: Any) -> None:
        self.value = value

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> "Quantity":
        return cls(*children)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape  # type: ignore[no-any-return]  # an array's


def test_vectorized_functions_may_return_pytrees_with_shapes() -> None:
    f = vnp.vectorize(lambda n: Quantity(vnp.ones(3) * n), signature="()->(n)")
    out = f(vnp.arange(2))
    assert type(out) is Quantity
    assert out.value.tolist() == [[0, 0, 0], [1, 1, 1]]
    wrong = vnp.vectorize(lambda n: Quantity(vnp.ones(3)), signature="()->()")
    with pytest.raises(ValueError, match="does not match core dimensions"):
        wrong(vnp.arange(2))


def test_types_may_stand_for_arguments_that_nothing_reads() -> None:
    struct = verax.ShapeDtypeStruct((2,), "float32")
    f = verax.jit(lambda s, x: x * s.shape[0])
    assert float(verax.jit(lambda x: f(struct, x))(2.0)) == 4
    assert float(verax.grad(lambda x: f(struct, x))(2.0)) == 2
    read = verax.jit(lambda s, x: (s * x).sum())
    with pytest.raises(TypeError, match="computes with its value"):
        verax.jit(lambda x: read(struct, x))(2.0)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        f(struct, 2.0)


def test_large_arrays_do_not_print_their_values() -> None:
    assert repr(vnp.zeros((1000, 1000))) == "Array(shape=(1000, 1000), dtype=float32)"
    assert "[0., 0.]" in repr(vnp.zeros(2))


def test_layouts_are_constraints_that_change_no_value() -> None:
    x = vnp.arange(6.0).reshape(2, 3)

    def f(x: Any) -> Any:
        return (with_layout_constraint({"a": x}, Layout((1, 0)))["a"] ** 2).sum()

    assert "LayoutConstraint" in verax.jit(f).lower(x).as_text()
    assert float(verax.jit(f)(x)) == 55
    assert verax.jit(verax.grad(f))(x).tolist() == (2 * x).tolist()
    assert verax.vmap(f)(x[None]).tolist() == [55]
    assert repr(Format(Layout.AUTO)) == "Format(layout=AutoLayout, sharding=None)"
    with pytest.raises(ValueError, match="of type `Layout`"):
        with_layout_constraint(x, "rows")
    with pytest.raises(ValueError, match="order of the dimensions"):
        with_layout_constraint(x, Layout((0,)))


@pytest.fixture
def generator() -> StatefulPRNG:
    return stateful_rng(42)


def test_a_generator_that_counts(generator: StatefulPRNG) -> None:
    """The numbers are those of JAX."""
    drawn = [generator.uniform(), generator.uniform()]
    jitted = verax.jit(generator.uniform)
    drawn += [jitted(), jitted()]
    expected = [0.5302608, 0.72766423, 0.6672406, 0.3890121]
    np.testing.assert_allclose(drawn, expected, rtol=1e-6)
    assert random.key_data(generator.key()).tolist() == [2954079971, 3276725750]
    assert generator.normal(vnp.zeros(3), 2.0).shape == (3,)
    assert generator.integers(5, size=(2,)).shape == (2,)
    assert generator.random((2, 1)).shape == (2, 1)


def test_generators_for_each_element() -> None:
    parts = stateful_rng(123).split(3)
    drawn = verax.vmap(lambda r, x: x + r.uniform())(parts, vnp.zeros(3))
    np.testing.assert_allclose(drawn, [0.35525954, 0.21937883, 0.5336956], rtol=1e-6)
    children = stateful_rng(123).spawn(2)
    assert [r.integers(0, 10, 2).tolist() for r in children] == [[4, 5], [2, 1]]
    with pytest.raises(ValueError, match="split stateful generator"):
        parts.uniform()
    with pytest.raises(TypeError, match="explicit seed"):
        verax.jit(lambda: stateful_rng().uniform())()
    assert stateful_rng().uniform().shape == ()
