"""Checks become results: of every construct, under every transformation, or raise."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.experimental import checkify
from verax.experimental.checkify import Error, JaxRuntimeError, check, debug_check
from verax.ir.effects import CHECKS
from verax.ops.calls.callbacks import silenced
from verax.rules.programs.host import BatchedError, FailedCheckError

WRAPS: list[Callable[[Any], Any]] = [lambda f: f, verax.jit]
both = pytest.mark.parametrize("wrap", WRAPS, ids=["eager", "jit"])
F = Callable[..., Any]


def message(f: F, *args: Any, errors: Any = checkify.user_checks) -> str | None:
    """What the error of a call says; the same inside and outside of `jit`."""
    actual: str | None = checkify.checkify(f, errors)(*args)[0].get()
    assert verax.jit(checkify.checkify(f, errors))(*args)[0].get() == actual
    return actual


def positive(x: Any) -> Any:
    check(vnp.all(x > 0), "x must be positive, but is {}", x)
    return vnp.log(x)


# check, where nothing takes its error


def test_check_raises_at_once_where_there_are_values() -> None:
    check(True, "never")
    with pytest.raises(JaxRuntimeError, match=r"x is 3 and -1.0 \(`check` failed\)"):
        check(vnp.array(False), "x is {} and {y}", np.int32(3), y=vnp.array(-1.0))
    with pytest.raises(JaxRuntimeError, match="must be positive") as raised:
        verax.vmap(positive)(vnp.array([1.0, 0.0, -1.0]))
    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value.__cause__, FailedCheckError)
    with pytest.raises(JaxRuntimeError, match=r"but is 0\.0"):
        verax.vmap(positive)(vnp.array([1.0, 0.0, -1.0]))


def test_a_compiled_program_refuses_a_check() -> None:
    with pytest.raises(
        ValueError, match="Cannot abstractly evaluate the check 'x must"
    ):
        verax.jit(positive)(1.0)
    assert str(verax.eval_shape(positive, 1.0).dtype) == "float32"


def test_debug_checks_do_nothing_by_themselves() -> None:
    def f(x: Any) -> Any:
        debug_check(x != x, "{} is never shown", x)
        check(x != x, "nor this", debug=True)
        return x * x

    assert float(f(2.0)) == float(verax.jit(f)(2.0)) == 4.0
    assert verax.vmap(f)(vnp.arange(3.0)).tolist() == [0.0, 1.0, 4.0]
    assert float(verax.grad(f)(2.0)) == 4.0
    assert message(f, 2.0) == "2.0 is never shown (`check` failed)"


def test_arguments_are_looked_at() -> None:
    with pytest.raises(TypeError, match="check takes a scalar pred"):
        check(vnp.array([True]), "hi")
    with pytest.raises(TypeError, match="debug_check takes a scalar pred"):
        debug_check(1, "hi")
    with pytest.raises(TypeError, match="Formatting arguments of check must be arrays"):
        check(False, "{}", "hello")
    with pytest.raises(TypeError, match="check_error takes an Error"):
        checkify.check_error("hi")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(TypeError, match="checkify takes a function"):
        checkify.checkify(3)  # type: ignore[arg-type]  # on purpose


# the error as a value


@both
def test_the_first_failure_is_a_result(wrap: F) -> None:
    def f(x: Any) -> Any:
        check(x < 10, "first")
        check(x < 5, "x={x} n={n}", x=x, n=vnp.arange(2))
        check(x < 5, "second")
        return x + 1

    checked = wrap(checkify.checkify(wrap(f)))
    texts = {3.0: None, 7.0: "x=7.0 n=[0 1] (`check` failed)", 11.0: "first (`check`"}
    for x, text in texts.items():
        error, y = checked(x)
        actual = error.get()
        assert float(y) == x + 1
        assert actual is None if text is None else actual.startswith(text)
    with pytest.raises(JaxRuntimeError, match="first"):
        checked(11.0)[0].throw()


def test_an_error_says_the_line() -> None:
    error, _ = verax.jit(checkify.checkify(positive))(0.0)
    failure = error.get_exception()
    assert isinstance(failure, FailedCheckError)
    assert failure.source.function == "positive"
    with pytest.raises(
        JaxRuntimeError, match=r"check failed at .*test_checkify.py:\d+"
    ):
        error.throw()
    assert "test_checkify.py" in failure.__notes__[0]


def test_equal_programs_keep_their_own_lines() -> None:
    def one(x: Any) -> Any:
        check(x > 0, "x")

    def other(x: Any) -> Any:
        check(x > 0, "x")

    for f in (one, other):
        failure = verax.jit(checkify.checkify(f))(0.0)[0].get_exception()
        assert failure is not None
        assert failure.source.function.endswith(f.__name__)


def test_an_error_is_a_pytree() -> None:
    error, _ = checkify.checkify(positive)(vnp.array([-1.0, 2.0]))
    leaves, tree = verax.tree_util.tree_flatten(error)
    assert tree.unflatten(leaves).get() == error.get()
    same = verax.jit(lambda e: e)(error)
    assert isinstance(same, Error)
    assert same.get() == "x must be positive, but is [-1.  2.] (`check` failed)"
    assert str(same) == f"Error({same.get()})"
    assert verax.tree_util.tree_leaves(checkify.init_error) == []
    assert checkify.init_error.get() is None
    checkify.init_error.throw()


def test_check_error_undoes_checkify() -> None:
    def raising(x: Any) -> Any:
        error, y = verax.jit(checkify.checkify(positive))(x)
        checkify.check_error(error)
        return y

    assert float(raising(1.0)) == 0.0
    with pytest.raises(JaxRuntimeError, match="must be positive"):
        raising(0.0)
    assert message(raising, 0.0) == "x must be positive, but is 0.0 (`check` failed)"
    batched, _ = verax.vmap(checkify.checkify(positive))(vnp.array([1.0, -2.0, -3.0]))
    with pytest.raises(JaxRuntimeError, match=r"but is -2.0"):
        batched.throw()
    none, _ = verax.vmap(checkify.checkify(positive))(vnp.zeros((0,)))
    none.throw()
    assert none.get() is None


def test_categories_that_are_not_asked_for_are_left_out() -> None:
    def f(x: Any) -> Any:
        check(vnp.all(x < 0), "must be negative")
        return vnp.sin(x / 0)[500]

    x = vnp.ones(2)
    assert message(f, x, errors=set()) is None
    assert str(message(f, x)).startswith("must be negative")
    for errors, text in {
        checkify.div_checks: "division by zero",
        checkify.nan_checks: "nan generated by primitive: sin.",
        checkify.index_checks: "out-of-bounds indexing for array of shape (2,): index "
        "500 is out of bounds for axis 0 with size 2.",
        checkify.automatic_checks: "division by zero",
        checkify.all_checks: "must be negative (`check` failed)",
    }.items():
        assert message(f, x, errors=errors) == text

    def again(x: Any) -> Any:
        error, y = checkify.checkify(positive, checkify.all_checks)(x)
        error.throw()
        return y

    assert message(again, -x, errors=checkify.div_checks) is None
    assert message(again, -x, errors=checkify.user_checks)


def test_functions_get_what_is_no_array() -> None:
    def f(x: Any, name: str, flag: bool) -> Any:
        return (x, len(name)) if flag else None

    error, out = checkify.checkify(f)(vnp.ones(2), "abc", flag=True)
    assert out[1] == 3
    assert error.get() is None
    assert checkify.checkify(f)(1.0, "", False)[1] is None
    assert verax.jit(checkify.checkify(f), static_argnums=(1, 2))(1.0, "", True)

    def branching(x: Any) -> Any:
        check(x < 5, "large")
        return x if x > 0 else -x

    error, y = checkify.checkify(branching)(vnp.array(-7.0))
    assert float(y) == 7.0
    assert error.get() is None


# indices, divisors, NaNs


@pytest.mark.parametrize(
    ("f", "args", "text"),
    [
        (lambda x, i: x[i], (5,), "index 5 is out of bounds for axis 0 with size 2"),
        (lambda x, i: x[i], (-5,), "index -3 is out of bounds for axis 0 with size 2"),
        (lambda x, i: x[:, i], ([0, 9],), "index 9 is out of bounds for axis 1"),
        (lambda x, i: x[i, 0, i], ([0, 1, 4],), "index 4 is out of bounds for axis 0"),
        (lambda x, i: x.at[0, i].set(1.0), (3,), "index 3 is out of bounds for axis 1"),
        (lambda x, i: x.at[i].add(1.0), ([0, 7],), "index 7 is out of bounds for axis"),
        (lambda x, i: x.at[..., i].get(mode="fill"), (7,), "for axis 2 with size 7"),
        (
            lambda x, i: lax.dynamic_slice(x, (0, i, 0), (1, 2, 1)),
            (2,),
            "index 2 is out of bounds for axis 1 with size 3",
        ),
        (
            lambda x, i: lax.dynamic_update_slice(x, x[:1], (0, 0, i)),
            (1,),
            "index 1 is out of bounds for axis 2 with size 7",
        ),
    ],
)
def test_indices_out_of_bounds(f: F, args: tuple[Any, ...], text: str) -> None:
    x = vnp.ones((2, 3, 7))
    arrays = [vnp.array(a) for a in args]
    actual = message(f, x, *arrays, errors=checkify.index_checks)
    assert actual is not None
    assert text in actual
    fine = [vnp.zeros_like(a) for a in arrays]
    assert message(f, x, *fine, errors=checkify.index_checks) is None


def test_constant_indices_out_of_bounds() -> None:
    reads = [lambda x: x[3], lambda x: x[-5], lambda x: x.at[4].set(0.0)]
    places = ["index 3 ", "index -2 ", "index 4 "]
    for f, place in zip(reads, places, strict=True):
        actual = message(f, vnp.ones(3), errors=checkify.index_checks)
        assert actual is not None
        assert place in actual
        assert message(f, vnp.ones(3)) is None
        verax.jit(f)(vnp.ones(3))


def test_divisors_and_nans() -> None:
    def f(x: Any, y: Any) -> Any:
        return x / y

    zeros = checkify.div_checks
    assert message(f, vnp.ones(3), vnp.array([1.0, 0.0, 1.0]), errors=zeros)
    assert message(f, vnp.ones(3), vnp.ones(3), errors=zeros) is None
    assert message(lax.div, np.int32(1), np.int32(0), errors=zeros)
    nans = checkify.nan_checks
    actual = message(
        f, vnp.array([1.0, vnp.inf]), vnp.array([1.0, vnp.inf]), errors=nans
    )
    assert actual == "nan generated by primitive: div."
    # What moves a NaN has not made it.
    moved = lambda x: vnp.where(x > 0, vnp.full(2, vnp.nan), x)[::-1]  # noqa: E731
    assert message(moved, vnp.ones(2), errors=nans) is None
    singular = vnp.array([[1.0, 2.0], [2.0, 1.0]])
    assert message(vnp.linalg.cholesky, singular, errors=nans)
    assert message(lambda x: x * 1j, vnp.array(vnp.nan), errors=nans)


# control flow


def test_scan() -> None:
    def step(carry: Any, x: Any) -> Any:
        check(carry < 3, "carry {} at {}", carry, x)
        return carry + x, 1.0 / x

    def f(xs: Any) -> Any:
        return lax.scan(step, vnp.float32(0), xs)

    xs = vnp.array([1.0, 2.0, 0.0, 4.0])
    assert message(f, xs) == "carry 3.0 at 0.0 (`check` failed)"
    assert message(f, xs[:2]) is None
    assert message(f, xs[:0]) is None
    # The first in time, though the division comes later in the program.
    swapped = vnp.array([0.0, 3.0, 1.0])
    assert message(f, swapped, errors=checkify.all_checks) == "division by zero"


def countdown(n: Any) -> Any:
    def test(c: Any) -> Any:
        check(c[0] > -1, "predicate at {}", c[0])
        return c[1] > 0

    def step(c: Any) -> Any:
        check(c[0] < 6, "body at {}", c[0])
        return c[0] + 2, c[1] - 1

    return lax.while_loop(test, step, (n, 2))[0]


def test_while() -> None:
    assert message(countdown, 0) is None
    assert message(countdown, -1) == "predicate at -1 (`check` failed)"
    assert message(countdown, 4) == "body at 6 (`check` failed)"

    def ends(n: Any) -> Any:
        """The predicate fails where it says that the loop is over."""

        def test(c: Any) -> Any:
            check(c < 3, "at {}", c)
            return c < 3

        return lax.while_loop(test, lambda c: c + 1, n)

    assert message(ends, 0) == "at 3 (`check` failed)"


def test_cond_and_switch() -> None:
    def f(i: Any, x: Any) -> Any:
        def failing(text: str) -> F:
            def branch(x: Any) -> Any:
                check(x > 0, text, x)
                return vnp.sin(x)

            return branch

        branches = [failing("zero {}"), lambda x: x, failing("two")]
        return lax.switch(i, branches, x)

    assert message(f, 0, -1.0) == "zero -1.0 (`check` failed)"
    assert message(f, 1, -1.0) is None
    assert message(f, 2, -1.0) == "two (`check` failed)"
    assert message(f, 2, 1.0) is None


def test_checkpoint_and_calls_inside() -> None:
    f = verax.checkpoint(verax.jit(positive))
    assert message(f, 0.0) == "x must be positive, but is 0.0 (`check` failed)"
    g = checkify.checkify(verax.value_and_grad(f))
    assert g(2.0)[0].get() is None
    assert float(g(2.0)[1][1]) == 0.5
    assert g(-2.0)[0].get() == "x must be positive, but is -2.0 (`check` failed)"


def test_shard_map() -> None:
    mesh = verax.make_mesh((1,), ("i",))
    spec = verax.P("i")
    f = verax.shard_map(lambda x: x / (x - 1), mesh=mesh, in_specs=spec, out_specs=spec)
    assert message(f, vnp.zeros(4), errors=checkify.float_checks) is None
    assert message(f, vnp.arange(4.0), errors=checkify.float_checks)


# vmap


def test_vmap_of_checkify() -> None:
    x = vnp.array([1.0, -1.0, 2.0, -2.0])
    error, y = verax.vmap(checkify.checkify(positive))(x)
    assert y.shape == (4,)
    assert error.get() == (
        "at mapped index 1: x must be positive, but is -1.0 (`check` failed)\n"
        "at mapped index 3: x must be positive, but is -2.0 (`check` failed)"
    )
    failure = error.get_exception()
    assert isinstance(failure, BatchedError)
    assert list(failure.error_mapping) == [(1,), (3,)]
    twice = verax.vmap(verax.vmap(checkify.checkify(positive)))
    assert "at mapped index 0, 1: " in str(twice(x.reshape(2, 2))[0].get())


def test_checkify_of_vmap() -> None:
    x = vnp.array([1.0, -1.0, 2.0, -2.0])
    text = "x must be positive, but is -1.0 (`check` failed)"
    assert message(verax.vmap(positive), x) == text
    assert message(verax.vmap(verax.vmap(positive)), x.reshape(2, 2)) == text
    assert message(verax.vmap(positive), x[:0]) is None


def slow(n: Any, v: Any) -> Any:
    """A loop whose elements end at different times; a step more divides by zero."""

    def step(c: Any) -> Any:
        check(c[0] > 0, "a step too many")
        return c[0] - 1, c[1] / c[0]

    return lax.while_loop(lambda c: c[0] > 0, step, (n, v))[1]


@pytest.mark.slow
@pytest.mark.parametrize("errors", [checkify.user_checks, checkify.all_checks])
def test_elements_that_have_ended_are_not_checked(errors: Any) -> None:
    n, v = vnp.array([1.0, 3.0, 0.0]), vnp.ones(3)
    batched = verax.vmap(slow)
    assert message(batched, n, v, errors=errors) is None
    error, outs = verax.vmap(checkify.checkify(slow, errors))(n, v)
    assert error.get() is None
    assert (
        outs.tolist()
        == verax.vmap(lambda n, v: v / vnp.maximum(n, 1))(
            n, v / vnp.array([1.0, 2.0, 1.0])
        ).tolist()
    )
    inner = verax.vmap(lambda n: verax.vmap(slow)(n, vnp.ones(3)))
    assert message(inner, vnp.stack([n, n[::-1]]), errors=errors) is None


def test_failures_of_elements_that_go_on_are_found() -> None:
    def f(n: Any) -> Any:
        def step(c: Any) -> Any:
            check(c < 5, "c is {}", c)
            return c + 1

        return lax.while_loop(lambda c: c < n, step, 0)

    n = vnp.array([2, 7, 3])
    assert message(verax.vmap(f), n) == "c is 5 (`check` failed)"
    error, _ = verax.vmap(checkify.checkify(f))(n)
    assert error.get() == "at mapped index 1: c is 5 (`check` failed)"


def test_branches_that_are_not_taken_are_not_checked() -> None:
    def f(x: Any) -> Any:
        def inverse(x: Any) -> Any:
            check(x != 0, "zero")
            return 1 / x

        return lax.cond(x != 0, inverse, lambda x: x, x)

    x = vnp.array([0.0, 1.0])
    assert message(verax.vmap(f), x, errors=checkify.all_checks) is None
    error, _ = verax.vmap(checkify.checkify(f, checkify.all_checks))(x)
    assert error.get() is None

    def bad(x: Any) -> Any:
        return lax.cond(x < 0, positive, lambda x: x, x)

    assert message(verax.vmap(bad), vnp.array([3.0, -1.0])) == (
        "x must be positive, but is -1.0 (`check` failed)"
    )


# derivatives


def test_derivatives_on_both_sides() -> None:
    inside = checkify.checkify(verax.grad(positive))
    assert float(inside(2.0)[1]) == 0.5
    assert inside(-2.0)[0].get() == "x must be positive, but is -2.0 (`check` failed)"

    def second(x: Any) -> Any:
        error, y = checkify.checkify(positive)(x)
        return y, error

    y, error = verax.grad(second, has_aux=True)(2.0)
    assert float(y) == 0.5
    assert error.get() is None
    assert verax.grad(second, has_aux=True)(-2.0)[1].get()
    (error, y), (_, dy) = verax.jvp(checkify.checkify(positive), (2.0,), (1.0,))
    assert error.get() is None
    assert float(dy) == 0.5


def test_a_nan_in_the_backward_pass() -> None:
    f = verax.grad(lambda x: vnp.where(x > 0, vnp.sqrt(x), 0.0))
    error, _ = checkify.checkify(f, checkify.nan_checks)(0.0)
    assert error.get() == "nan generated by primitive: mul."
    failure = error.get_exception()
    assert failure is not None
    assert "transpose" in failure.source.origin


def test_checks_in_loops_are_differentiated_once() -> None:
    def f(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            check(c < 10, "c is {}", c)
            return c * x, c

        return lax.scan(step, x, None, length=3)[0]

    error, dy = checkify.checkify(verax.grad(f))(2.0)
    assert float(dy) == 32.0
    assert error.get() is None
    error, _ = verax.jit(checkify.checkify(verax.grad(f)))(4.0)
    assert error.get() == "c is 16.0 (`check` failed)"


@verax.custom_jvp
def cube(x: Any) -> Any:
    check(x < 3, "cube of {}", x)
    return x**3


@cube.defjvp
def cube_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return cube(x), 30.0 * dx


@verax.custom_vjp
def square(x: Any) -> Any:
    check(x < 3, "square of {}", x)
    return x**2


def square_fwd(x: Any) -> Any:
    return square(x), x


def square_bwd(x: Any, ct: Any) -> Any:
    return (20.0 * ct,)


square.defvjp(square_fwd, square_bwd)


@pytest.mark.parametrize(("f", "slope"), [(cube, 30.0), (square, 20.0)])
@both
def test_custom_derivatives(f: F, slope: float, wrap: F) -> None:
    name = "cube" if f is cube else "square"
    assert message(f, 1.0) is None
    assert message(f, 4.0) == f"{name} of 4.0 (`check` failed)"

    def of_checked(x: Any) -> Any:
        error, y = checkify.checkify(f)(x)
        return y, error

    for x, bad in {1.0: False, 4.0: True}.items():
        slope_found, error = wrap(verax.grad(of_checked, has_aux=True))(x)
        assert float(slope_found) == slope
        assert (error.get() is not None) == bad
        error, slope_found = wrap(checkify.checkify(verax.grad(f)))(x)
        assert float(slope_found) == slope
        assert (error.get() is not None) == bad


@both
def test_derivatives_of_a_function_of_a_random_key(wrap: F) -> None:
    @verax.custom_jvp
    def noisy(x: Any, key: Any) -> Any:
        check(x < 3, "noisy of {}", x)
        return x * verax.random.uniform(key)

    @noisy.defjvp
    def noisy_jvp(primals: Any, tangents: Any) -> Any:
        return noisy(*primals), 5.0 * tangents[0]

    def of_checked(x: Any) -> Any:
        error, y = checkify.checkify(verax.jit(noisy))(x, verax.random.key(0))
        return y, error

    for x, bad in {1.0: None, 4.0: "noisy of 4.0 (`check` failed)"}.items():
        slope, error = wrap(verax.grad(of_checked, has_aux=True))(x)
        assert float(slope) == 5.0
        assert error.get() == bad


def test_custom_vmap_is_batched_as_its_function() -> None:
    @verax.custom_batching.custom_vmap
    def f(x: Any) -> Any:
        check(x > 0, "negative")
        return x * 2

    @f.def_vmap
    def rule(size: int, batched: Any, x: Any) -> Any:
        return x * 2, True

    error, y = verax.vmap(checkify.checkify(f))(vnp.array([1.0, -1.0]))
    assert y.tolist() == [2.0, -2.0]
    assert error.get() == "at mapped index 1: negative (`check` failed)"


# what it costs


def test_programs_without_checks_stay_as_they_are() -> None:
    f = verax.jit(lambda x: vnp.sin(x) * 2)
    plain = verax.make_jaxpr(f)(1.0)
    error, _ = checkify.checkify(f)(1.0)
    assert verax.tree_util.tree_leaves(error) == []
    checked = verax.make_jaxpr(checkify.checkify(f))(1.0)
    assert str(checked) == str(plain)


def test_the_program_does_not_grow_with_the_loop() -> None:
    def f(x: Any, length: int) -> Any:
        return lax.scan(lambda c, _: (vnp.sin(c), c), x, None, length=length)

    def size(length: int) -> int:
        g = checkify.checkify(lambda x: f(x, length), checkify.all_checks)
        return len(str(verax.make_jaxpr(g)(1.0)))

    assert abs(size(10) - size(99)) < 10


def test_scalars_and_empty_arrays_have_no_index_to_check() -> None:
    f = lambda x: lax.dynamic_slice(x, (), ())  # noqa: E731
    assert message(f, vnp.ones(()), errors=checkify.all_checks) is None
    g = lambda x, i: x[i]  # noqa: E731
    empty = vnp.zeros((0,), "int32")
    assert message(g, vnp.ones(3), empty, errors=checkify.all_checks) is None


def test_messages_show_trees_and_keys() -> None:
    def f(x: Any, key: Any) -> Any:
        check(x["a"] > 0, "{} with {}", x, key)
        return key

    x, key = {"a": vnp.array(-1.0)}, verax.random.key(0)
    actual = message(f, x, key)
    assert actual is not None
    assert actual.startswith("{'a': Array(-1., dtype=float32)} with Array(")
    with pytest.raises(JaxRuntimeError, match=r"{'a': Array\(-1."):
        f(x, key)
    error, _ = verax.vmap(checkify.checkify(f), (None, 0))(x, key[None])
    with pytest.raises(JaxRuntimeError, match=r"{'a': Array\(-1."):
        verax.device_get(error).throw()


def test_compiled_programs_raise_while_the_option_is_on() -> None:
    option = "experimental_unsafe_xla_runtime_errors"
    with pytest.raises(ValueError, match="Cannot abstractly"):
        verax.jit(positive)(2.0)
    verax.config.update(option, True)
    try:
        f = verax.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: positive(c) + 2, x))
        assert f(3.0).shape == ()
        with pytest.raises(verax.errors.JaxRuntimeError, match=r"but is -1\.0"):
            verax.block_until_ready(f(-1.0))
    finally:
        verax.config.update(option, False)


def test_a_chain_is_computed_once_however_many_checks_it_has() -> None:
    def f(x: Any) -> Any:
        for _ in range(5):
            x = vnp.sin(x)
            checkify.check(vnp.all(x < 2), "too large")
        return x

    program = verax.make_jaxpr(checkify.checkify(f))(np.ones(3, np.float32))
    # What comes before a check is read from memory behind it.
    assert str(program).count("= optimization_barrier") == 5
    scalar = verax.make_jaxpr(checkify.checkify(f))(np.float32(1))
    assert "optimization_barrier" not in str(scalar)


def linear(b: Any) -> Any:
    matrix = np.array([[4, 1], [1, 3]], np.float32)

    def matvec(x: Any) -> Any:
        checkify.check(vnp.all(x < 100), "large x")
        return matrix @ x

    def solve(matvec: Any, b: Any) -> Any:
        checkify.check(vnp.all(b < 10), "large b: {}", b.max())
        return vnp.linalg.solve(matrix, b)

    return lax.custom_linear_solve(matvec, b, solve, symmetric=True).sum()


def root_of(a: Any) -> Any:
    def f(x: Any) -> Any:
        checkify.check(x < 50, "large x")
        return x * x - a

    def newton(f: Any, x: Any) -> Any:
        return lax.fori_loop(0, 20, lambda i, x: x - f(x) / (2 * x), x)

    return lax.custom_root(f, vnp.float32(1), newton, lambda g, y: y / g(1.0))


@pytest.mark.slow
@pytest.mark.parametrize("outside", [False, True])
def test_checks_in_solves(outside: bool) -> None:
    def slope(f: Any) -> Any:
        if not outside:
            return checkify.checkify(verax.grad(f))

        def loss(x: Any) -> Any:
            error, y = checkify.checkify(f)(x)
            return y, error

        def with_error(x: Any) -> Any:
            found, error = verax.grad(loss, has_aux=True)(x)
            return error, found

        return with_error

    for change in (lambda f: f, verax.jit):
        error, found = change(slope(linear))(vnp.array([1.0, 2.0]))
        assert error.get() is None
        np.testing.assert_allclose(found, [2 / 11, 3 / 11], rtol=1e-5)
        error, _ = change(slope(linear))(vnp.array([1.0, 20.0]))
        assert "large b: 20" in error.get()
        error, found = change(slope(root_of))(2.0)
        assert error.get() is None
        assert np.isclose(found, 0.5 / np.sqrt(2))
        assert "large x" in change(slope(root_of))(1e4)[0].get()
    error, _ = verax.vmap(checkify.checkify(root_of))(vnp.array([2.0, 1e4, 3.0]))
    assert str(error.get()).startswith("at mapped index 1: large x")


def test_what_is_computed_again_is_not_checked_again() -> None:
    def f(x: Any) -> Any:
        inner = verax.jit(lambda y: debug_check(y > 0, "inner"))
        inner(x)
        debug_check(x > 0, "outer")
        return vnp.sin(x)

    jaxpr = verax.make_jaxpr(f)(1.0).jaxpr
    assert jaxpr.effects >= CHECKS
    assert not silenced(jaxpr).effects
    checked = verax.make_jaxpr(verax.checkpoint(f))(1.0).jaxpr
    slope = verax.make_jaxpr(verax.grad(verax.checkpoint(f)))(1.0).jaxpr
    assert str(checked).count("check[") == str(slope).count("check[") == 2
