"""What users ask first: the examples of JAX's FAQ give the documented output."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import jit, nn


def test_an_impure_function_prints_once(capsys: pytest.CaptureFixture[str]) -> None:
    @jit
    def impure(x: Any) -> Any:
        print("Inside:", y)
        return x + y

    for y in range(3):
        print("Result:", impure(y))
    expected = ["Inside: 0", "Result: 0", "Result: 1", "Result: 2"]
    assert capsys.readouterr().out.splitlines() == expected


def test_an_impure_function_without_jit(capsys: pytest.CaptureFixture[str]) -> None:
    def impure(x: Any) -> Any:
        print("Inside:", y)
        return x + y

    for y in range(3):
        print("Result:", impure(y))
    lines = capsys.readouterr().out.splitlines()
    assert lines[::2] == [f"Inside: {i}" for i in range(3)]
    assert lines[1::2] == [f"Result: {2 * i}" for i in range(3)]


def test_jit_changes_the_numerics() -> None:
    def root(x: Any) -> Any:
        return vnp.log(vnp.sqrt(x))

    assert float(root(vnp.pi)) == pytest.approx(float(jit(root)(vnp.pi)), rel=1e-6)

    def there_and_back(x: Any) -> Any:
        return vnp.log(vnp.exp(x))

    assert float(there_and_back(100.0)) == np.inf
    # A compiler may know that the logarithm undoes the exponential; not all do.
    assert float(jit(there_and_back)(100.0)) in (100.0, np.inf)


def test_jit_rounds_once_or_as_eager_operations_do() -> None:
    def f(x: Any) -> Any:
        return x * x - (1 + 2**-11)

    x = vnp.float32(1 + 2**-12)
    assert float(f(x)) == 0
    assert float(jit(f)(x)) in (0, 2**-24)


def test_an_unknown_class_is_refused_with_three_ways_out() -> None:
    class Custom:
        def __init__(self, x: Any, mul: bool) -> None:
            self.x, self.mul = x, mul

        @jit
        def calc(self, y: Any) -> Any:
            return self.x * y if self.mul else y

    with pytest.raises(TypeError) as error:
        Custom(2, True).calc(3)
    text = str(error.value)
    assert "Custom" in text
    for way in ("asarray", "static_argnums", "register_pytree_node"):
        assert way in text


def test_first_way_a_jitted_helper() -> None:
    @partial(jit, static_argnums=0)
    def calc(mul: bool, x: Any, y: Any) -> Any:
        return x * y if mul else y

    class Custom:
        def __init__(self, x: Any, mul: bool) -> None:
            self.x, self.mul = x, mul

        def calc(self, y: Any) -> Any:
            return calc(self.mul, self.x, y)

    assert int(Custom(2, True).calc(3)) == 6


def test_second_way_a_static_self_with_hash_and_eq() -> None:
    class Custom:
        def __init__(self, x: Any, mul: bool) -> None:
            self.x, self.mul = x, mul

        @partial(jit, static_argnums=0)
        def calc(self, y: Any) -> Any:
            return self.x * y if self.mul else y

        def __hash__(self) -> int:
            return hash((self.x, self.mul))

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Custom) and (self.x, self.mul) == (
                other.x,
                other.mul,
            )

    assert int(Custom(2, True).calc(3)) == 6
    assert int(Custom(2, False).calc(3)) == 3
    assert int(Custom(5, True).calc(3)) == 15


def test_third_way_a_pytree() -> None:
    class Custom:
        def __init__(self, x: Any, mul: bool) -> None:
            self.x, self.mul = x, mul

        @jit
        def calc(self, y: Any) -> Any:
            return self.x * y if self.mul else y

    verax.tree_util.register_pytree_node(
        Custom,
        lambda c: ((c.x,), c.mul),
        lambda mul, children: Custom(next(iter(children)), mul),
    )
    c = Custom(2, True)
    assert int(c.calc(3)) == 6
    c.mul = False  # the mutation is seen: it is in the structure
    assert int(c.calc(3)) == 3
    assert int(Custom(vnp.array(2), True).calc(3)) == 6


def test_the_microbenchmark() -> None:
    def f(x: Any) -> Any:
        return x.T @ (x - x.mean(axis=0))

    x_np = np.ones((50, 50), dtype=np.float32)
    x = verax.device_put(x_np)
    result = jit(f)(x).block_until_ready()
    np.testing.assert_allclose(result, f(x_np), atol=1e-5)
    assert result.dtype == np.float32


def test_a_tracer_prints_its_type(capsys: pytest.CaptureFixture[str]) -> None:
    def func(x: Any) -> Any:
        print(x)
        return vnp.cos(x)

    assert float(jit(func)(0.0)) == 1
    printed = capsys.readouterr().out
    assert "Traced" in printed
    assert "f32[]" in printed


def test_values_are_printed_at_run_time(capsys: pytest.CaptureFixture[str]) -> None:
    @verax.jit
    def f(x: Any) -> Any:
        print("traced", x)
        verax.debug.print("x = {}", x)
        return x + 1

    for x in (1.0, 2.0):
        f(x)
    verax.effects_barrier()
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("traced Traced")
    assert rest == ["x = 1.0", "x = 2.0"]


def test_numpy_inside_of_jit_by_a_pure_callback() -> None:
    def f(x: Any) -> Any:
        return verax.pure_callback(np.sin, verax.ShapeDtypeStruct((), x.dtype), x)

    assert float(verax.jit(f)(1.0)) == pytest.approx(np.sin(1.0), rel=1e-6)
    with pytest.raises(TypeError, match=r"verax\.debug\.print .* verax\.pure_callback"):
        verax.jit(lambda x: np.sin(x))(1.0)


def test_nan_gradients_of_where_and_the_cure() -> None:
    def my_log(x: Any) -> Any:
        return vnp.where(x > 0.0, vnp.log(x), 0.0)

    def safe_log(x: Any) -> Any:
        return vnp.log(vnp.where(x > 0.0, x, 1.0))

    assert float(my_log(0.0)) == 0
    assert np.isnan(float(verax.grad(my_log)(0.0)))
    assert float(safe_log(0.0)) == 0
    assert float(verax.grad(safe_log)(0.0)) == 0


def test_order_functions_have_zero_gradients() -> None:
    def step(x: Any) -> Any:
        return (x > 0).astype(float)

    x = vnp.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    assert step(x).tolist() == [0, 0, 0, 1, 1]
    assert verax.vmap(verax.grad(step))(x).tolist() == [0] * 5


def test_sigmoid_is_the_smooth_step() -> None:
    x = vnp.array([-10.0, -1.0, 0.0, 1.0, 10.0])
    with np.printoptions(suppress=True, precision=2):
        assert str(nn.sigmoid(x)) == "[0.   0.27 0.5  0.73 1.  ]"
        slopes = verax.vmap(verax.grad(nn.sigmoid))(x)
        assert str(slopes) == "[0.   0.2  0.25 0.2  0.  ]"


@pytest.mark.parametrize(
    ("name", "at", "value", "slope"),
    [
        ("sigmoid", 0.0, 0.5, 0.25),
        ("soft_sign", 1.0, 0.5, 0.25),
        ("softplus", 0.0, np.log(2), 0.5),
        ("squareplus", 0.0, 1.0, 0.5),
        ("relu", 2.0, 2.0, 1.0),
        ("relu", -2.0, 0.0, 0.0),
        ("relu", 0.0, 0.0, 0.0),
    ],
)
def test_smooth_stand_ins(name: str, at: float, value: float, slope: float) -> None:
    fun = getattr(nn, name)
    assert float(fun(at)) == pytest.approx(value, rel=1e-6)
    assert float(verax.grad(fun)(at)) == pytest.approx(slope, rel=1e-6)


def test_softmax_is_the_smooth_argmax() -> None:
    x = vnp.array([1.0, 2.0, 3.0])
    found = nn.softmax(x)
    assert float(found.sum()) == pytest.approx(1)
    assert int(found.argmax()) == 2
    jacobian = np.asarray(verax.jacobian(nn.softmax)(x))
    p = np.asarray(found)
    np.testing.assert_allclose(jacobian, np.diag(p) - np.outer(p, p), atol=1e-6)
