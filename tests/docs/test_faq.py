"""What users ask first: the examples of JAX's FAQ give the documented output.

Each example of the document, and the test that runs it (here, unless a file is named):

| example | test |
|---|---|
| impure_func, without and with jit | `test_an_impure_function_...` |
| log(sqrt(x)), log(exp(100.)) | `test_jit_changes_the_numerics`, `test_a_rewrite_...` |
| a slow compilation is a long jaxpr | `test_python_loops_make_long_programs` |
| a jitted method: the error | `test_an_unknown_class_is_refused_...` |
| methods: helper, static self, pytree | `test_first_way_...` to `test_third_way_...` |
| static self, mutated: the old result | `test_a_static_self_that_is_mutated_...` |
| placement: ones(3).devices(), device_put | `test_placement`; tests/placement |
| test_computation_follows_data | tests/placement/cases_programs.py |
| the microbenchmark | `test_the_microbenchmark` |
| func(x): cos, the printed tracer | `test_a_tracer_prints_its_type` |
| divide: static argument, grad | `test_divide_...` |
| donation: add, add_ones, reuse, warnings | `test_donation...` |
| donation by pmap, by keyword | tests/placement/cases_mapping.py |
| my_log, safe_for_grad_log, my_log_or_y | `test_nan_gradients_of_where_and_the_cure` |
| the step function, sigmoid, other stand-ins | `test_order_functions_...` to the end |
| a tracer as a NumPy array; callbacks | `test_numpy_...`, `test_values_are_...` |
| memory flags of CUDA | tests/backend/runtime/test_cuda.py |

What does not apply: TPUs, absl's flag `--jax_platforms`, `LD_LIBRARY_PATH` and RPATH of
CUDA (the plugin's affair), the figures of the microbenchmark.
"""

import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import jit, nn
from verax.rewrites import algebra, apply


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


def test_a_rewrite_undoes_the_exponential() -> None:
    def there_and_back(x: Any) -> Any:
        return vnp.log(vnp.exp(x))

    rewritten = apply(algebra(fast=True))(there_and_back)
    assert float(rewritten(100.0)) == float(jit(rewritten)(100.0)) == 100
    assert float(verax.grad(rewritten)(100.0)) == 1


def test_python_loops_make_long_programs() -> None:
    def unrolled(x: Any) -> Any:
        for _ in range(100):
            x = vnp.sin(x) * 2
        return x

    def looped(x: Any) -> Any:
        return verax.lax.fori_loop(0, 100, lambda i, x: vnp.sin(x) * 2, x)

    assert len(verax.make_jaxpr(unrolled)(1.0).eqns) == 200
    assert len(verax.make_jaxpr(looped)(1.0).eqns) < 5
    assert float(jit(looped)(1.0)) == pytest.approx(float(jit(unrolled)(1.0)), abs=1e-3)


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


def test_a_static_self_that_is_mutated_gives_the_old_result() -> None:
    class Custom:
        def __init__(self, x: Any, mul: bool) -> None:
            self.x, self.mul = x, mul

        @partial(jit, static_argnums=0)
        def calc(self, y: Any) -> Any:
            return self.x * y if self.mul else y

    c = Custom(2, True)
    assert int(c.calc(3)) == 6
    c.mul = False
    with pytest.warns(UserWarning, match=r"argument 0 of calc.* changed .*mul"):
        assert int(c.calc(3)) == 6  # "should print 3", says the document


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

        def _tree_flatten(self) -> tuple[tuple[Any], dict[str, Any]]:
            return (self.x,), {"mul": self.mul}

        @classmethod
        def _tree_unflatten(cls, aux: dict[str, Any], children: Any) -> "Custom":
            return cls(*children, **aux)

    verax.tree_util.register_pytree_node(
        Custom, Custom._tree_flatten, Custom._tree_unflatten
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


def test_a_tracer_says_its_class(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        print(type(x))
        return x

    jit(f)(1.0)
    assert "Tracer" in capsys.readouterr().out
    with pytest.raises(TypeError, match="NumPy array needs the value of a tracer"):
        jit(lambda x: np.asarray(x))(1.0)


def test_placement() -> None:
    (device, *_) = verax.devices()
    made = vnp.ones(3)
    assert made.devices() == {device}
    assert not made.committed
    assert not verax.device_put(np.ones(3)).committed
    assert not verax.device_put(made).committed
    put = verax.device_put(1, device)
    assert put.committed
    assert verax.device_put(put).committed
    assert (put + made).committed
    assert jit(lambda x: x + made)(put).committed
    assert not jit(lambda x: x + 1)(made).committed


def divide(x: Any, y: Any) -> Any:
    return x / y if y >= 1.0 else 0.0


def test_divide_branches_on_a_value() -> None:
    assert float(verax.grad(divide)(3.0, 2.0)) == 0.5
    assert float(jit(divide, static_argnums=1)(3.0, 2.0)) == 1.5
    assert float(jit(divide, static_argnums=1)(3.0, 0.5)) == 0


@pytest.mark.parametrize("convert", [bool, int, float])
@pytest.mark.parametrize(
    "transform",
    [jit, verax.make_jaxpr, lambda f: lambda x: verax.vmap(f)(vnp.array([x]))],
    ids=["jit", "make_jaxpr", "vmap"],
)
def test_divide_needs_a_value(transform: Any, convert: Any) -> None:
    for fun in (lambda y: divide(3.0, y), convert):
        with pytest.raises(verax.errors.AbstractValueError, match="depends on arg"):
            transform(fun)(2.0)
    assert verax.jvp(convert, (2.0,), (1.0,))[0] == convert(2.0)


def add(x: Any, y: Any) -> Any:
    return x + y


def two_arrays(*shapes: tuple[int, ...]) -> list[Any]:
    return [verax.device_put(np.ones(shape)) for shape in shapes]


def test_donation_of_one_argument() -> None:
    x, y = two_arrays((2, 3), (2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        z = jit(add, donate_argnums=(1,))(x, y)
    assert z.tolist() == [[2.0] * 3] * 2
    assert not x.is_deleted()
    with pytest.raises(RuntimeError, match=r"float32\[2,3\].* donated to add:"):
        y + 1


def test_donation_reuses_the_memory() -> None:
    x: Any = jit(lambda: vnp.ones(4096) * 3)()  # memory of the runtime, not of NumPy
    place = x.unsafe_buffer_pointer()
    z: Any = jit(lambda x: x + 1, donate_argnums=0)(x).block_until_ready()
    assert z.unsafe_buffer_pointer() == place


def test_donation_of_a_list() -> None:
    xs = two_arrays((2, 3), (3, 4))
    ys = jit(lambda xs: [x + 1 for x in xs], donate_argnums=0)(xs)
    assert [y.shape for y in ys] == [(2, 3), (3, 4)]
    assert all(x.is_deleted() for x in xs)


@pytest.mark.parametrize(
    ("shape", "donated", "wasted"),
    [((2, 3), (0, 1), r"f32\[2,3\]"), ((1, 3), (1,), r"f32\[1,3\]")],
)
def test_donations_that_no_result_can_use(
    shape: tuple[int, ...], donated: tuple[int, ...], wasted: str
) -> None:
    x, y = two_arrays((2, 3), shape)
    with pytest.warns(UserWarning, match=wasted):
        jit(add, donate_argnums=donated)(x, y)
    assert not y.is_deleted()


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

    def log_or(x: Any, y: Any) -> Any:
        return vnp.where(x > 0.0, vnp.log(vnp.where(x > 0.0, x, 1.0)), y)

    both = verax.value_and_grad(log_or, argnums=(0, 1))
    assert both(0.0, 3.0) == (3, (0, 1))
    assert both(1.0, 3.0) == (0, (1, 0))


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
    actual = nn.softmax(x)
    assert float(actual.sum()) == pytest.approx(1)
    assert int(actual.argmax()) == 2
    jacobian = np.asarray(verax.jacobian(nn.softmax)(x))
    p = np.asarray(actual)
    np.testing.assert_allclose(jacobian, np.diag(p) - np.outer(p, p), atol=1e-6)
