"""Callbacks: what they get and give, when they are called, and what goes wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.experimental import io_callback
from verax.ir.effects import Effect
from verax.ir.forms.parser import parse_jaxpr
from verax.ir.reports.check import check_jaxpr
from verax.ir.text.tokens import ParseError
from verax.ops.calls.callbacks import silenced
from verax.ops.table import PRIMITIVES
from verax.rules.programs.host import CallbackError
from verax.rules.rows.infer import infer

METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"]
DTYPES = [
    *["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32"],
    *["float16", "bfloat16", "float32", "complex64", "float8_e4m3fn", "int4", "uint4"],
]


def like(x: Any) -> verax.ShapeDtypeStruct:
    return verax.ShapeDtypeStruct(x.shape, x.dtype)


def doubled(x: Any, method: str | None = None) -> Any:
    def host(x: Any) -> Any:
        return np.asarray(x) * 2

    return verax.pure_callback(host, like(x), x, vmap_method=method)


def eager(f: Callable[..., Any]) -> Callable[..., Any]:
    return f


@pytest.mark.parametrize("run", [eager, verax.jit])
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_goes_there_and_back(run: Any, name: str) -> None:
    x = vnp.asarray([[0, 1, 1], [1, 0, 1]], dtype=name)
    f = run(lambda x: verax.pure_callback(lambda x: x, like(x), x))
    assert f(x).dtype == x.dtype
    assert (f(x) == x).all()


@pytest.mark.parametrize("run", [eager, verax.jit])
def test_trees_and_keywords_keep_their_structure(run: Any) -> None:
    def host(x: Any, *, y: Any) -> Any:
        assert isinstance(x["a"], verax.Array)
        return {"sum": x["a"] + y[0], "none": None, "pair": (np.float32(3), y[1])}

    def f(x: Any, y: Any) -> Any:
        out = {"sum": x["a"], "none": None, "pair": (np.float32(0), y[1])}
        return verax.pure_callback(host, out, x, y=y)

    actual = run(f)({"a": vnp.ones(2)}, (2.0, vnp.arange(3)))
    assert actual["sum"].tolist() == [3.0, 3.0]
    assert actual["none"] is None
    assert float(actual["pair"][0]) == 3.0
    assert actual["pair"][1].tolist() == [0, 1, 2]


@pytest.mark.parametrize("run", [eager, verax.jit])
@pytest.mark.parametrize("method", METHODS)
def test_vmap_is_the_loop(run: Any, method: str) -> None:
    shapes = []

    def host(x: Any, y: Any) -> Any:
        shapes.append((x.shape, y.shape))
        return np.asarray(x) * np.reshape(y, y.shape + (1,) * (x.ndim - y.ndim))

    def f(x: Any, y: Any) -> Any:
        return verax.pure_callback(host, like(x), x, y, vmap_method=method)

    x, y = vnp.arange(6.0).reshape(2, 3), vnp.float32(3)
    actual = run(verax.vmap(f, (1, None)))(x, y)
    assert actual.tolist() == (x.T * 3).tolist()
    expected: list[Any] = [((2,), ())] * 3
    if method == "expand_dims":
        actual = run(verax.vmap(lambda x: f(x, y)))(vnp.ones((3, 1)))
        expected = [((3, 2), (1,)), ((3, 1), (1,))]
    elif method == "broadcast_all":
        actual = run(verax.vmap(lambda x: f(x, vnp.ones(1) + y)))(vnp.ones((3, 1)))
        expected = [((3, 2), (3,)), ((3, 1), (3, 1))]
    assert shapes == expected


@pytest.mark.parametrize("run", [eager, verax.jit])
@pytest.mark.parametrize("method", ["expand_dims", "broadcast_all"])
def test_operands_of_nested_vmaps_have_a_lane_for_each(run: Any, method: str) -> None:
    shapes = []

    def host(x: Any, y: Any) -> Any:
        shapes.append((x.shape, y.shape))
        wide = np.broadcast_to(np.asarray(y)[..., None], (3, 2, 4))
        return np.broadcast_to(x, (3, 2, 4)) + wide

    def f(x: Any, y: Any) -> Any:
        return verax.pure_callback(host, like(x), x, y, vmap_method=method)

    x, y = vnp.arange(8.0).reshape(2, 4), vnp.arange(3.0)
    inner = verax.vmap(f, (0, None))
    actual = run(verax.vmap(inner, (None, 0)))(x, y)
    assert actual.tolist() == (x[None] + y[:, None, None]).tolist()
    once = method == "expand_dims"
    assert shapes == [((1, 2, 4), (3, 1)) if once else ((3, 2, 4), (3, 2))]


@pytest.mark.parametrize("run", [eager, verax.jit])
def test_operands_without_a_batch_pass_as_they_are(run: Any) -> None:
    shapes = []

    def host(x: Any, y: Any) -> Any:
        shapes.append((x.shape, y.shape))
        return np.asarray(x) * y

    def f(x: Any, y: Any) -> Any:
        method = "legacy_vectorized"
        return verax.pure_callback(host, like(x), x, y, vmap_method=method)

    actual = run(verax.vmap(f, (1, None)))(vnp.arange(6.0).reshape(2, 3), 2.0)
    assert actual.tolist() == [[0, 6], [2, 8], [4, 10]]
    assert shapes == [((3, 2), ())]


@pytest.mark.parametrize("run", [eager, verax.jit])
def test_nested_vmap_goes_through_lanes_in_order(run: Any) -> None:
    seen: list[tuple[int, int]] = []

    def f(x: Any, y: Any) -> Any:
        io_callback(lambda x, y: seen.append((int(x), int(y))), None, x, y)
        return doubled(x + y, "sequential")

    g = verax.vmap(verax.vmap(f, (None, 0)), (0, None))
    actual = run(g)(vnp.arange(2), vnp.arange(3))
    verax.effects_barrier()
    assert seen == [(i, j) for i in range(2) for j in range(3)]
    assert actual.tolist() == [[0, 2, 4], [2, 4, 6]]
    seen.clear()
    run(verax.vmap(verax.vmap(f, (0, None)), (None, 0)))(vnp.arange(2), vnp.arange(3))
    verax.effects_barrier()
    assert seen == [(i, j) for j in range(3) for i in range(2)]


@pytest.mark.parametrize("run", [eager, verax.jit])
@pytest.mark.parametrize("method", METHODS)
def test_several_results_are_batched_alike(run: Any, method: str) -> None:
    def host(x: Any) -> Any:
        return np.asarray(x) + 1, -np.asarray(x)

    def f(x: Any) -> Any:
        return verax.pure_callback(host, (like(x), like(x)), x, vmap_method=method)

    x = vnp.arange(6.0).reshape(2, 3)
    more, less = run(verax.vmap(f, 1, 1))(x)
    assert more.tolist() == (x + 1).tolist()
    assert less.tolist() == (-x).tolist()


@pytest.mark.parametrize("run", [eager, verax.jit])
def test_lanes_of_nested_vmaps_keep_the_dimensions_of_operands(run: Any) -> None:
    def host(x: Any, y: Any, z: Any) -> Any:
        return np.asarray(x) * 100 + np.asarray(y)[:, None] * 10 + np.asarray(z)

    def f(x: Any, y: Any, z: Any) -> Any:
        out = verax.ShapeDtypeStruct((2, 3), "float32")
        return verax.pure_callback(host, out, x, y, z, vmap_method="sequential")

    x = vnp.arange(4 * 6.0).reshape(4, 2, 3)
    y = vnp.arange(5 * 2.0).reshape(5, 2)
    z = vnp.arange(7 * 3.0).reshape(7, 3)
    g = verax.vmap(f, (0, None, None))
    g = verax.vmap(g, (None, 0, None))
    g = verax.vmap(g, (None, None, 0))
    expected = (
        x[None, None] * 100 + y[None, :, None, :, None] * 10 + z[:, None, None, None]
    )
    assert run(g)(x, y, z).tolist() == expected.tolist()


def test_silenced_programs_keep_all_but_debug_callbacks() -> None:
    def shown(x: Any) -> None:
        verax.debug.print("x = {x}", x=x)

    def told(x: Any) -> None:
        shown(x)
        io_callback(print, None, x)

    def f(x: Any) -> Any:
        shown(x)
        verax.jit(shown)(x)
        verax.jit(told)(x)
        return x + 1

    jaxpr = silenced(verax.make_jaxpr(f)(1.0).jaxpr)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["jit", "add"]
    (inner,) = jaxpr.eqns[0].params.subjaxprs()
    assert [eqn.primitive.name for eqn in inner.eqns] == ["io_callback"]
    assert [str(effect) for effect in jaxpr.effects] == ["io"]
    told_only = verax.make_jaxpr(lambda x: io_callback(print, None, x))(1.0).jaxpr
    assert silenced(told_only) is told_only


def test_vmap_without_a_method_says_what_to_write() -> None:
    with pytest.raises(NotImplementedError, match=r"vmap_method='sequential'"):
        verax.vmap(doubled)(vnp.ones(3))
    assert verax.vmap(lambda x: doubled(vnp.ones(2)))(vnp.ones(3)).shape == (3, 2)


def test_derivatives_say_what_to_write() -> None:
    advice = r"custom_jvp or verax\.custom_vjp"
    with pytest.raises(verax.errors.ForeignDerivative, match=advice):
        verax.grad(lambda x: doubled(x))(1.0)
    with pytest.raises(ValueError, match=advice):  # as in JAX
        verax.jvp(doubled, (vnp.ones(2),), (vnp.ones(2),))

    @verax.custom_jvp
    def twice(x: Any) -> Any:
        return doubled(x)

    twice.defjvps(lambda t, ans, x: 2.0 * t)
    assert float(verax.jit(verax.grad(twice))(1.0)) == 2.0


def wrong(result: Any) -> Callable[[Any], Any]:
    return lambda x: verax.pure_callback(lambda x: result, like(x), x)


@pytest.mark.parametrize("run", [eager, verax.jit])
@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        (np.ones(2, np.float32), r"returned float32\[2\] as result 0, .* float32\[3\]"),
        (np.ones(3, np.int32), r"returned int32\[3\] as result 0"),
        (np.ones(3, object), r"returned object\[3\]"),
        ("text", r"returned <U4\[\]"),
        (None, "returned the structure"),
        ((np.ones(3), np.ones(3)), "returned the structure"),
    ],
)
def test_wrong_results_are_one_clear_error(
    run: Any, result: Any, complaint: str
) -> None:
    f = run(wrong(result))
    for _ in range(2):
        with pytest.raises(CallbackError, match=complaint):
            f(vnp.ones(3, "float32"))
    assert run(doubled)(vnp.ones(3)).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("run", [eager, verax.jit])
def test_wide_and_strided_results_are_fitted(run: Any) -> None:
    x = vnp.arange(3.0)
    for result in (np.arange(3.0), np.arange(6.0, dtype=np.float32)[::2] / 2):
        assert run(wrong(result))(x).tolist() == [0.0, 1.0, 2.0]
    assert float(run(wrong(2.5))(vnp.float32(0))) == 2.5


@pytest.mark.parametrize("run", [eager, verax.jit])
def test_exceptions_are_chained_and_leave_everything_usable(run: Any) -> None:
    fail = [True]

    def host(x: Any) -> Any:
        if fail[0]:
            raise KeyError("the key")
        return np.asarray(x) + 1

    f = run(lambda x: verax.pure_callback(host, like(x), x))
    x = vnp.ones(3)
    for _ in range(2):
        with pytest.raises(CallbackError, match=r"callback host.*raised KeyError") as e:
            f(x)
        assert isinstance(e.value.__cause__, KeyError)
        assert e.value.__cause__.__traceback__ is not None
        assert "test_callbacks.py" in str(e.value)
    fail[0] = False
    assert f(x).tolist() == [2.0, 2.0, 2.0]
    verax.effects_barrier()


@pytest.mark.parametrize("run", [eager, verax.jit])
def test_a_callback_may_use_verax_itself(run: Any) -> None:
    inner = verax.jit(lambda x: (verax.debug.callback(seen.append, x), x @ x)[1])
    seen: list[Any] = []

    def host(x: Any) -> Any:
        verax.effects_barrier()
        return verax.grad(lambda x: inner(x).sum())(x)

    f = run(lambda x: verax.pure_callback(host, like(x), x))
    assert f(vnp.ones((100, 100)))[0, 0] == 200.0
    assert len(seen) == 1


def test_promises_are_checked() -> None:
    x = vnp.ones(3)
    with pytest.raises(
        ValueError,
        match="64-bit types while they are off, but has float64; use float32",
    ):
        verax.pure_callback(np.sin, verax.ShapeDtypeStruct((3,), "float64"), x)
    with pytest.raises(TypeError, match="cannot return keys"):
        verax.pure_callback(np.sin, verax.random.key(0), x)
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        verax.pure_callback(np.sin, 3.0, x)
    with pytest.raises(ValueError, match="vmap_method must be one of"):
        verax.pure_callback(np.sin, x, x, vmap_method="all")
    with pytest.raises(TypeError, match="a callback must be a function"):
        io_callback("print", None, x)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(TypeError, match=r"argument to print as .* at path args\[0\]"):
        io_callback(print, None, "text")
    with pytest.raises(ValueError, match="sharding over one device"):
        verax.pure_callback(np.sin, x, x, sharding=Spread())
    with verax.enable_x64():
        wide = verax.ShapeDtypeStruct((3,), "float64")
        y = verax.pure_callback(lambda x: np.sin(x, dtype=float), wide, x)
        assert y.dtype == "float64"
        with pytest.raises(CallbackError, match="returned float64"):
            verax.pure_callback(lambda x: np.sin(x, dtype=float), x, x)


class Spread:
    device_set = frozenset((1, 2))


def test_keys_are_arguments_but_no_results() -> None:
    def host(key: Any) -> Any:
        return verax.random.key_data(key)

    def f(key: Any) -> Any:
        return verax.pure_callback(
            host, verax.ShapeDtypeStruct((2,), "uint32"), key, vmap_method="sequential"
        )

    keys = verax.random.split(verax.random.key(3), 4)
    expected = verax.random.key_data(keys).tolist()
    assert verax.jit(verax.vmap(f))(keys).tolist() == expected
    assert [f(key).tolist() for key in keys] == expected


def test_a_program_with_callbacks_stays_in_the_process() -> None:
    compiled = verax.jit(doubled).lower(vnp.ones(3)).compile()
    assert compiled(vnp.ones(3)).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(ValueError, match="callbacks cannot be serialised"):
        compiled.program.executable.serialize()


def test_tracing_twice_gives_equal_programs() -> None:
    def f(x: Any) -> Any:
        verax.debug.print("x = {x}", x=x)
        return verax.pure_callback(np.sin, like(x), x)

    first, second = (verax.make_jaxpr(lambda x: f(x))(vnp.ones(3)) for _ in range(2))
    assert first.jaxpr == second.jaxpr
    assert hash(first.jaxpr) == hash(second.jaxpr)
    assert [str(e) for e in first.effects] == ["debug"]


def test_programs_print_and_are_checked() -> None:
    def f(x: Any) -> Any:
        verax.debug.print("x = {x}", x=x, ordered=True)
        return verax.pure_callback(np.sin, like(x), x)

    jaxpr = verax.make_jaxpr(f)(vnp.ones(3)).jaxpr
    check_jaxpr(jaxpr, infer)
    text = str(jaxpr)
    assert "callback=<sin>" in text
    assert "effect=Effect(name=debug, ordered=True)" in text
    with pytest.raises(ParseError, match=r"<debug\.print> has no text"):
        parse_jaxpr(text, PRIMITIVES)
    silent = jaxpr.eqns[0]
    assert silent.effects == {Effect("debug", ordered=True)}
    assert jaxpr.eqns[1].effects == frozenset()


def test_disable_jit_calls_at_once() -> None:
    with verax.disable_jit():
        assert verax.jit(doubled)(vnp.ones(2)).tolist() == [2.0, 2.0]
