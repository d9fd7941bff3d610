"""jit: once per signature, statics, donation, methods, stages, nested and disabled."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp


def counting(fun: Callable[..., Any]) -> tuple[Callable[..., Any], list[int]]:
    """The function, and a list that grows by one whenever Python runs it."""
    runs: list[int] = []

    @functools.wraps(fun)
    def counted(*args: Any, **kwargs: Any) -> Any:
        runs.append(1)
        return fun(*args, **kwargs)

    return counted, runs


def test_python_runs_once_per_signature() -> None:
    fun, runs = counting(lambda x: x + 1)
    jitted = verax.jit(fun)
    assert jitted(vnp.zeros(3)).tolist() == [1, 1, 1]
    jitted(vnp.ones(3))
    assert len(runs) == 1
    jitted(vnp.zeros(4))
    jitted(vnp.zeros(3, vnp.int32))
    assert len(runs) == 3
    # A weak type is another type: what it promotes to differs.
    jitted(1.0)
    jitted(np.float32(1.0))
    assert len(runs) == 5


def test_structure_and_keywords_are_part_of_the_signature() -> None:
    fun, runs = counting(lambda x, scale=1.0: {"y": x["a"] * scale})
    jitted = verax.jit(fun)
    assert jitted({"a": vnp.ones(2)})["y"].tolist() == [1, 1]
    assert jitted({"a": vnp.ones(2)}, scale=3.0)["y"].tolist() == [3, 3]
    assert len(runs) == 2


def test_x64_is_part_of_the_signature() -> None:
    jitted = verax.jit(lambda x: x * 2)
    values = np.arange(3.0)
    assert jitted(values).dtype == np.float32
    with verax.enable_x64():
        assert jitted(values).dtype == np.float64
    assert jitted(values).dtype == np.float32


def test_static_arguments_are_values() -> None:
    fun, runs = counting(lambda x, n: x * n if n > 1 else x)
    jitted = verax.jit(fun, static_argnums=1)
    assert float(jitted(2.0, 3)) == 6
    assert float(jitted(2.0, 3)) == 6
    assert float(jitted(2.0, 1)) == 2
    assert len(runs) == 2


def test_static_positions_count_from_the_last_parameter() -> None:
    def fun(x: Any, n: Any = 2) -> Any:
        return x * n, isinstance(n, verax.Array)

    jitted = verax.jit(fun, static_argnums=-1)
    for actual, traced in (jitted(3.0), jitted(3.0, 2), jitted(3.0, n=2)):
        assert float(actual) == 6
        assert not traced


def test_static_values_compare_type_and_value() -> None:
    jitted = verax.jit(lambda x, n: x + 1 if n is True else x - 1, static_argnums=1)
    assert float(jitted(0.0, True)) == 1
    assert float(jitted(0.0, 1)) == -1
    assert float(jitted(0.0, 1.0)) == -1


def test_static_names_hold_for_both_spellings() -> None:
    def power(x: Any, n: int) -> Any:
        return x**n

    jitted = verax.jit(power, static_argnames="n")
    assert float(jitted(vnp.float32(3), 2)) == 9
    assert float(jitted(vnp.float32(3), n=3)) == 27


def test_decorator_with_arguments_and_partial() -> None:
    @verax.jit(static_argnums=0)
    def scaled(n: int, x: Any) -> Any:
        return x * n

    @functools.partial(verax.jit, static_argnames=("n",))
    def shifted(x: Any, n: int) -> Any:
        return x + n

    assert float(scaled(2, vnp.float32(4))) == 8
    assert float(shifted(vnp.float32(4), n=1)) == 5
    assert "scaled" in repr(scaled)


def test_jit_of_jit_is_a_call_with_its_name() -> None:
    @verax.jit
    def inner(x: Any) -> Any:
        return x * 2

    jaxpr = verax.make_jaxpr(lambda x: inner(x) + inner(x))(1.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["jit", "jit", "add"]
    assert "name=inner" in str(jaxpr)
    assert float(verax.jit(lambda x: inner(inner(x)))(1.0)) == 4
    assert float(verax.grad(lambda x: inner(x) * x)(3.0)) == 12


def test_inline_leaves_no_call() -> None:
    inner = verax.jit(lambda x: x * 2, inline=True)
    jaxpr = verax.make_jaxpr(lambda x: inner(x) + 1)(1.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["mul", "add"]


def test_a_function_without_arguments_and_one_without_outputs() -> None:
    assert verax.jit(lambda: vnp.ones(2))().tolist() == [1, 1]
    assert verax.jit(lambda x: None)(1.0) is None
    assert verax.jit(lambda x, y: x)(1.0, vnp.ones(3)).tolist() == 1


def test_outputs_that_are_inputs_or_repeated() -> None:
    x = vnp.arange(3.0)
    left, right, one = verax.jit(lambda x: (x, x, 1))(x)
    assert left.tolist() == right.tolist() == [0, 1, 2]
    assert int(one) == 1


def test_donated_memory_is_gone() -> None:
    x = verax.block_until_ready(vnp.ones((2, 3)) + 0)
    y = verax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert y.tolist() == [[2, 2, 2], [2, 2, 2]]
    with pytest.raises(RuntimeError, match=r"deleted .* donated"):
        np.asarray(x)
    with pytest.raises(RuntimeError, match=r"deleted .* donated"):
        x + 1


def test_donated_memory_goes_to_the_first_result_of_its_type() -> None:
    step = verax.jit(lambda n, x: (n + 1, x + 2.0, x), donate_argnums=1)
    x = verax.jit(lambda a: a + 1)(vnp.float32(3.0))
    memory = x.unsafe_buffer_pointer()
    number, second, first = step(vnp.int32(1), x)
    assert second.unsafe_buffer_pointer() == memory
    assert (int(number), float(second), float(first)) == (2, 6.0, 4.0)
    text = step.lower(vnp.int32(1), vnp.float32(3.0)).as_text()
    assert "tensor<f32> {tf.aliasing_output = 1 : i32}" in text


def test_donated_trees_lose_all_leaves() -> None:
    xs = [vnp.ones((2, 3)) + 0, vnp.ones((3, 4)) + 0]
    verax.jit(lambda xs: [x + 1 for x in xs], donate_argnums=0)(xs)
    for x in xs:
        with pytest.raises(RuntimeError, match="donated"):
            np.asarray(x)


@pytest.mark.parametrize(
    ("options", "call", "given"),
    [
        ({"donate_argnums": 1}, lambda f, x, y: f(x, y=y), (False, True)),
        ({"donate_argnums": 1}, lambda f, x, y: f(x), (False, False)),
        ({"donate_argnums": -1}, lambda f, x, y: f(x), (False, False)),
        ({"donate_argnums": -1}, lambda f, x, y: f(x, y), (False, True)),
        ({"donate_argnums": -2}, lambda f, x, y: f(x, y=y), (True, False)),
        ({"donate_argnames": "y"}, lambda f, x, y: f(x, y=y), (False, True)),
        ({"donate_argnames": "y"}, lambda f, x, y: f(x, y), (False, True)),
        ({"donate_argnames": ["x"]}, lambda f, x, y: f(y=y, x=x), (True, False)),
    ],
)
def test_what_is_donated_goes_by_the_signature(
    options: Any, call: Any, given: tuple[bool, bool]
) -> None:
    x, y = (verax.device_put(np.ones(3)) for _ in range(2))
    jitted = verax.jit(lambda x, y=2.0: x * y, **options)
    call(jitted, x, y)
    assert (x.is_deleted(), y.is_deleted()) == given


@pytest.mark.parametrize("donated", [(1,), (0, 1)])
def test_one_array_twice_is_not_donated(donated: tuple[int, ...]) -> None:
    x = verax.device_put(np.ones(3))
    with pytest.raises(RuntimeError, match=r"0 and 1 are the same array"):
        verax.jit(lambda x, y: (x + y, x * y), donate_argnums=donated)(x, x)
    assert x.tolist() == [1, 1, 1]


def test_donating_again_is_an_error() -> None:
    step = verax.jit(lambda x: x + 1, donate_argnums=0)
    x = vnp.ones(3) + 0
    step(x)
    with pytest.raises(RuntimeError, match="donated"):
        step(x)


def test_unusable_donations_warn_with_shapes() -> None:
    donate = verax.jit(lambda x: x.sum(), donate_argnums=0)
    with pytest.warns(UserWarning, match=r"(?i)donat.*f32\[2,3\]"):
        donate(vnp.ones((2, 3)) + 0)


def test_usable_donations_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verax.jit(lambda x: x * 2, donate_argnums=0)(vnp.ones((2, 3)) + 0)


def test_numpy_arguments_may_change_after_the_call() -> None:
    values = np.zeros(1 << 12, np.float32)
    result = verax.jit(lambda x: x + 1)(values)
    values[:] = 7
    assert float(result.max()) == 1


def test_stages_ahead_of_time() -> None:
    jitted = verax.jit(lambda x: {"y": vnp.sin(x)})
    traced = jitted.trace(verax.ShapeDtypeStruct((3,), np.float32))
    assert [eqn.primitive.name for eqn in traced.jaxpr.eqns] == ["sin"]
    assert traced.out_info["y"].shape == (3,)
    lowered = traced.lower()
    assert "stablehlo.sine" in lowered.as_text()
    compiled = lowered.compile()
    assert compiled(vnp.zeros(3))["y"].tolist() == [0, 0, 0]
    assert compiled.cost_analysis()
    with pytest.raises(TypeError, match=r"float32\[3\]"):
        compiled(vnp.zeros(4))


def test_lowering_is_deterministic() -> None:
    def text() -> str:
        return verax.jit(lambda x: vnp.cumsum(x) + x[0]).lower(vnp.zeros(5)).as_text()

    first = text()
    verax.jit(lambda x: vnp.sort(x))(vnp.ones(7))
    assert text() == first


def test_disable_jit_runs_python() -> None:
    fun, runs = counting(lambda x: x if x > 0 else -x)
    jitted = verax.jit(fun)
    with verax.disable_jit():
        assert float(jitted(vnp.float32(-2))) == 2
        jitted(vnp.float32(-2))
    assert len(runs) == 2


def test_a_while_loop_in_python_carries_arrays() -> None:
    def step(carry: Any) -> Any:
        return carry.at[()].add(1)

    with verax.disable_jit():
        out = verax.lax.while_loop(lambda c: c < 3, step, 0)
    assert isinstance(out, verax.Array)
    assert out.weak_type
    assert int(out) == 3


def test_clear_cache_traces_anew() -> None:
    fun, runs = counting(lambda x: x + 1)
    jitted = verax.jit(fun)
    jitted(1.0)
    jitted.clear_cache()
    jitted(1.0)
    assert len(runs) == 2


def test_equal_programs_share_one_executable() -> None:
    first, second = (
        verax.jit(lambda x: x * 5 + 1).lower(vnp.zeros(2)).as_text() for _ in range(2)
    )
    assert first == second


def test_compiler_options_reach_xla() -> None:
    fast = verax.jit(
        lambda x: x + 1, compiler_options={"xla_llvm_disable_expensive_passes": True}
    )
    assert float(fast(1.0)) == 2
    wrong = verax.jit(lambda x: x + 1, compiler_options={"no_such_option": 1})
    with pytest.raises(Exception, match="no_such_option"):
        wrong(1.0)


def test_a_failed_trace_leaves_nothing_behind() -> None:
    def sometimes(x: Any) -> Any:
        if fail:
            raise RuntimeError("not now")
        return x + 1

    jitted, fail = verax.jit(sometimes), True
    with pytest.raises(RuntimeError, match="not now"):
        jitted(1.0)
    assert (vnp.ones(2) + 1).tolist() == [2, 2]
    fail = False
    assert float(jitted(1.0)) == 2


def test_options_that_tracing_depends_on_are_part_of_the_signature() -> None:
    x, counts = vnp.ones((2, 2)), vnp.ones((2, 2), vnp.int32)
    product = verax.jit(lambda x, y: x @ y)
    total = verax.jit(lambda x, y: x + y)
    assert "HIGHEST" not in product.lower(x, x).as_text()
    total(x, counts)
    with verax.default_matmul_precision("highest"):
        assert "HIGHEST" in product.lower(x, x).as_text()
    with (
        verax.numpy_dtype_promotion("strict"),
        pytest.raises(Exception, match=r"(?i)promot"),
    ):
        total(x, counts)
    assert "HIGHEST" not in product.lower(x, x).as_text()
    assert total(x, counts).dtype == np.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"static_argnums": "n"},
            r"static_argnums .* not 'n'; for names use static_argnames",
        ),
        ({"donate_argnums": 1.0}, r"donate_argnums takes an integer .* not 1.0"),
        ({"static_argnums": (0, None)}, r"static_argnums .* not \(0, None\)"),
        (
            {"static_argnames": 1},
            r"static_argnames .* not 1; for numbers use static_argnums",
        ),
        (
            {"donate_argnames": ("x", 1)},
            r"donate_argnames takes a name or a sequence of names",
        ),
        ({"inline": "always"}, "True or False as inline, not 'always'"),
        ({"keep_unused": None}, "True or False as keep_unused, not None"),
        ({"compiler_options": "fast"}, "compiler_options takes a mapping"),
        ({"device": "cpu"}, r"verax.devices\(\) as device, not 'cpu'"),
    ],
)
def test_options_of_the_wrong_type(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        verax.jit(lambda x, n: x * n, **options)


def test_functions_that_return_no_arrays() -> None:
    def generator(x: Any) -> Any:
        yield x

    async def coroutine(x: Any) -> Any:
        return x

    for fun in (generator, coroutine):
        with pytest.raises(TypeError, match=f"{fun.__name__} returns a"):
            verax.jit(fun)


def test_messages_count_static_arguments() -> None:
    def fun(n: int, x: Any, m: int, y: Any) -> Any:
        return x if y > 0 else n * m

    jitted = verax.jit(fun, static_argnums=(0, -2))
    with pytest.raises(TypeError, match=r"argument y of fun"):
        jitted(1, 2.0, 3, 4.0)
    with pytest.raises(
        TypeError, match=r"to fun as .* at path x\['w'\]: 'a' is not a valid"
    ):
        jitted(1, {"w": "a"}, 3, 4.0)
    with pytest.raises(TypeError, match=r"to fun as .* at path y: 'a' is not a valid"):
        jitted.lower(1, 2.0, 3, "a")


def nested(depth: int) -> Callable[[Any], Any]:
    """So many jitted functions, each of which calls the one before."""
    function: Callable[[Any], Any] = lambda x: x * x  # noqa: E731
    for _ in range(depth):
        function = verax.jit(lambda x, inner=function: inner(x) + 1.0)
    return function


@pytest.mark.parametrize(
    ("transformed", "expected"),
    [
        (lambda f: f(3.0), 69.0),
        (lambda f: verax.jit(f)(3.0), 69.0),
        (lambda f: verax.grad(f)(3.0), 6.0),
        (lambda f: verax.jit(verax.grad(f))(3.0), 6.0),
        (lambda f: verax.hessian(f)(3.0), 2.0),
        (lambda f: verax.vmap(f)(vnp.array([3.0]))[0], 69.0),
    ],
    ids=["call", "jit", "grad", "jit of grad", "hessian", "vmap"],
)
def test_sixty_nested_functions_are_transformed(
    transformed: Callable[[Callable[[Any], Any]], Any], expected: float
) -> None:
    assert transformed(nested(60)) == expected


def test_deeply_nested_containers_go_in_and_out() -> None:
    deep: Any = 1.0
    for _ in range(500):
        deep = [deep]
    result = verax.jit(lambda tree: verax.tree.map(lambda x: 2 * x, tree))(deep)
    depth = 0
    while isinstance(result, list):
        (result,) = result
        depth += 1
    assert (depth, result) == (500, 2.0)


def test_repr_of_a_function_whose_own_fails() -> None:
    class Odd:
        def __call__(self, x: Any) -> Any:
            return x

        def __repr__(self) -> str:
            raise ValueError("no repr")

    assert repr(verax.jit(Odd())) == "<PjitFunction>"


def test_pjit_takes_options_by_position() -> None:
    from verax.experimental.pjit import pjit

    place = verax.sharding.SingleDeviceSharding(verax.devices()[0])
    f = pjit(lambda x, n: x * n, place, place, 1)
    assert f(3.0, 2) == 6
    with pytest.raises(TypeError, match="in_shardings by position and by name"):
        pjit(lambda x: x, None, in_shardings=None)
    with pytest.raises(TypeError, match="at most 11 options"):
        pjit(lambda x: x, *[None] * 12)
