"""jit: what repeated calls do: kinds of arguments, statics, shared scalars, methods."""

import functools
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.api.arguments.call_keys import typed


class Sub(np.ndarray):
    """A subclass of NumPy's arrays."""


KINDS: dict[str, Callable[[], Any]] = {
    "array": lambda: vnp.float32(2.0),
    "python float": lambda: 2.0,
    "python int": lambda: 2,
    "python bool": lambda: True,
    "python complex": lambda: 2j,
    "numpy scalar": lambda: np.float32(2.0),
    "numpy int64": lambda: np.int64(2),
    "numpy longlong": lambda: np.longlong(2),
    "numpy array": lambda: np.array([2.0, 3.0], np.float32),
    "float64 array": lambda: np.array([2.0, 3.0]),
    "strided": lambda: np.arange(6, dtype=np.float32)[::2],
    "reversed": lambda: np.arange(3, dtype=np.int32)[::-1],
    "empty": lambda: np.zeros((0, 3), np.float32),
    "subclass": lambda: np.array([1.0]).view(Sub),
    "dict": lambda: {"a": 2.0, "b": [np.float32(3.0), vnp.ones(2)]},
    "nothing": lambda: None,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_call_gives_what_the_first_gave(kind: str) -> None:
    """The first call takes the long way, the later ones the short one."""
    x = KINDS[kind]()

    def fun(x: Any, y: Any) -> Any:
        return verax.tree.map(lambda a: a * 3, x), y + 1

    jitted = verax.jit(fun)
    first = jitted(x, 1.0)
    for got, due in zip(
        verax.tree.leaves(first), verax.tree.leaves(fun(x, 1.0)), strict=True
    ):
        np.testing.assert_allclose(np.asarray(got), np.asarray(due))
    for _ in range(3):
        assert repr(jitted(x, 1.0)) == repr(first)


def test_zeros_of_both_signs_stay_apart() -> None:
    inverse = verax.jit(lambda x: 1.0 / x)
    for x in (0.0, -0.0, 0.0, np.float32(0.0), np.float32(-0.0), np.float32(0.0)):
        assert float(inverse(x)) == (-np.inf if np.signbit(x) else np.inf)


def test_many_scalars_one_after_the_other() -> None:
    shifted = verax.jit(lambda x: x + 1)
    for i in [*range(200), *range(200)]:
        assert int(shifted(i)) == i + 1
        assert float(shifted(i / 4)) == i / 4 + 1


def test_a_host_array_is_copied_at_the_call() -> None:
    held = np.zeros(4, np.float32)
    shifted = verax.jit(lambda x: x + 1)
    shifted(held)
    result = shifted(held)
    held[:] = 7
    assert result.tolist() == [1, 1, 1, 1]
    assert shifted(held).tolist() == [8, 8, 8, 8]


def test_scalars_may_be_donated_and_used_again() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shifted = verax.jit(lambda x: x + 1, donate_argnums=0)
        for _ in range(4):
            assert float(shifted(1.5)) == 2.5


def test_unused_and_constant_arguments() -> None:
    table = vnp.arange(3.0)
    first = verax.jit(lambda x, y: x + table)
    for _ in range(3):
        assert first(1.0, object.__new__(Leaf)).tolist() == [1, 2, 3]
        assert first(vnp.float32(1.0), vnp.ones(2)).tolist() == [1, 2, 3]


@verax.tree_util.register_pytree_node_class
class Leaf:
    """A pytree without leaves."""

    def tree_flatten(self) -> tuple[tuple[()], None]:
        return (), None

    @classmethod
    def tree_unflatten(cls, data: None, children: tuple[()]) -> "Leaf":
        return cls()


def test_an_overflowing_integer_raises_on_every_call() -> None:
    shifted = verax.jit(lambda x: x + 1)
    shifted(1)
    shifted(1)
    for _ in range(2):
        with pytest.raises(OverflowError, match="too large to convert to int32"):
            shifted(2**40)


def test_an_overflow_says_in_which_argument() -> None:
    total = verax.jit(lambda x, *rest, last: x + sum(rest) + last["a"])
    message = r"whose argument path is {}: Python int .* too large to convert to int32"
    for _ in range(2):
        with pytest.raises(OverflowError, match=message.format("x")):
            total(2**31, 1, last={"a": 1})
        with pytest.raises(OverflowError, match=message.format(r"rest\[0\]")):
            total(1, -(2**40), last={"a": 1})
        with pytest.raises(OverflowError, match=message.format(r"last\['a'\]")):
            total(1, 1, last={"a": 2**40})
        assert total(2**31 - 1, -1, last={"a": 0}) == 2**31 - 2

    def fails(x: Any) -> Any:
        raise OverflowError("one of the function's own")

    with pytest.raises(OverflowError, match=r"^one of the function's own"):
        verax.jit(fails)(1)


def test_deleted_arguments_raise_on_every_call() -> None:
    shifted = verax.jit(lambda x: x + 1)
    x = shifted(vnp.ones(2))
    shifted(x)
    x.delete()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="deleted"):
            shifted(x)


def test_disable_jit_holds_for_functions_that_are_compiled() -> None:
    seen: list[Any] = []

    @verax.jit
    def fun(x: Any) -> Any:
        seen.append(x)
        return x + 1

    x = vnp.ones(2)
    for _ in range(3):
        fun(x)
    with verax.disable_jit():
        fun(x)
    fun(x)
    assert len(seen) == 2
    assert seen[1] is x


def test_keys_of_static_values_tell_types_and_signs_apart() -> None:
    different = [1, True, 1.0, (1,), (True,), (1.0,), 0.0, -0.0, "1", None, np.int32(1)]
    different += [((1,),), ((1.0,),), frozenset({1}), frozenset({True}), ()]
    assert len({typed(value) for value in different}) == len(different)
    assert typed(float("nan")) == typed(float("nan"))
    assert typed((0, "a")) == typed((0, "a"))


def test_static_values_inside_tuples_and_zeros() -> None:
    kind = verax.jit(
        lambda x, n: x + (1 if isinstance(n[0], bool) else 2), static_argnums=1
    )
    for _ in range(2):
        assert float(kind(0.0, (True,))) == 1
        assert float(kind(0.0, (1,))) == 2
    sign = verax.jit(lambda x, z: x + float(np.copysign(1, z)), static_argnames="z")
    for _ in range(2):
        assert float(sign(0.0, 0.0)) == 1
        assert float(sign(0.0, z=-0.0)) == -1
        assert float(sign(0.0, z=0.0)) == 1


def test_static_keywords_in_any_order_and_with_traced_ones() -> None:
    runs: list[int] = []

    @functools.partial(verax.jit, static_argnames=("p", "q"))
    def fun(x: Any, *, p: int, q: str, y: Any = 0.0) -> Any:
        runs.append(1)
        return x * p + y + len(q)

    for _ in range(2):
        assert float(fun(2.0, p=3, q="ab")) == 8
        assert float(fun(2.0, q="ab", p=3)) == 8
        assert float(fun(2.0, q="ab", p=3, y=1.0)) == 9
        assert float(fun({"a": 2.0}["a"], y=vnp.float32(2), p=3, q="ab")) == 10
    assert len(runs) == 3


def test_a_static_value_without_a_hash_raises_on_every_call() -> None:
    fun = verax.jit(lambda x, n: x * n[0], static_argnums=1)
    assert float(fun(2.0, (3,))) == 6
    for _ in range(2):
        with pytest.raises(ValueError, match=r"static argument 1 .* not hashable"):
            fun(2.0, [3])
    with pytest.raises(ValueError, match=r"static argument 1 .* not hashable"):
        fun(2.0, ([3],))


class Scaled:
    """A class whose objects compare by identity."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    @functools.partial(verax.jit, static_argnums=0)
    def apply(self, x: Any) -> Any:
        return x * self.scale


def test_a_static_self_that_changes_warns() -> None:
    model = Scaled(2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [float(model.apply(3.0)) for _ in range(3)] == [6, 6, 6]
    model.scale = 5.0
    for _ in range(2):
        with pytest.warns(
            UserWarning, match="static argument 0 of apply.*scale"
        ) as got:
            assert float(model.apply(3.0)) == 6
        assert got[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(Scaled(5.0).apply(3.0)) == 15


class Hashed:
    """A class whose objects compare by an attribute that may change."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __hash__(self) -> int:
        return hash(self.scale)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hashed) and self.scale == other.scale


def test_a_static_object_with_another_hash_warns_and_is_traced_anew() -> None:
    fun = verax.jit(lambda x, model: x * model.scale, static_argnums=1)
    model = Hashed(2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [float(fun(3.0, model)) for _ in range(2)] == [6, 6]
        assert float(fun(3.0, Hashed(4.0))) == 12
    model.scale = 5.0
    with pytest.warns(UserWarning, match="static argument 1 .* hash") as got:
        assert float(fun(3.0, model)) == 15
    assert got[0].filename == __file__


def test_bound_methods_are_bound() -> None:
    model = Scaled(2.0)
    bound = model.apply
    assert float(bound(1.0)) == 2
    assert float(functools.reduce(lambda x, f: f(x), [bound, bound], 1.0)) == 4
    assert Scaled.apply is Scaled.__dict__["apply"]


def test_keywords_in_any_order_and_statics_between_them() -> None:
    @functools.partial(verax.jit, static_argnums=1, static_argnames="power")
    def f(a: Any, sign: int, b: Any = 0.0, *, c: Any, power: int) -> Any:
        return a + sign * (b - 10 * c) ** power

    x, y, z = (vnp.asarray(float(v)) for v in (1, 2, 3))
    expected = 1 - (2 - 30.0) ** 3
    for _ in range(2):
        assert f(x, -1, y, c=z, power=3).item() == expected
        assert f(x, -1, c=z, power=3, b=y).item() == expected
        assert f(x, -1, power=3, b=y, c=z).item() == expected
        assert f(power=3, c=z, b=y, sign=-1, a=x).item() == expected
        assert f(x, -1, 2.0, c=3.0, power=3).item() == expected
        assert f(x, 1, y, c=z, power=True).item() == 1 - 28.0
        assert f(x, 1, [y][0], c={"c": z}["c"], power=1).item() == 1 - 28.0


def test_an_array_of_numpy_may_be_written_to_after_the_call() -> None:
    double = verax.jit(lambda x: x * 2)
    for n in (1, 8, 1 << 20):
        x = np.full(n, 3.0, np.float32)
        for _ in range(3):
            x[:] = 3.0
            actual = double(x)
            x[:] = 5.0
            assert (np.asarray(actual) == 6.0).all()


def numbers(n: int) -> list[Any]:
    """Values of one kind after the other."""
    return [np.full(4, i + 0.5, np.float32) for i in range(n)]


def test_results_are_no_views_of_what_later_calls_write() -> None:
    """Host values are written to memory that is used again."""
    same = verax.jit(lambda x, s: (x, s, x + s))
    calls = [(x, i) for i, x in enumerate(numbers(6))]
    results = [same(x, i) for x, i in calls]
    for (x, i), (one, two, three) in zip(calls, results, strict=True):
        assert one.tolist() == x.tolist()
        assert (int(two), three.tolist()) == (i, (x + i).tolist())


def test_host_values_of_calls_that_are_still_running() -> None:
    @verax.jit
    def long(x: Any, y: Any) -> Any:
        return verax.lax.fori_loop(0, 30, lambda _, m: vnp.tanh(m @ m), x)[0, 0] * 0 + y

    work, host = vnp.eye(120) * 0.5, np.zeros(3, np.float32)
    results = []
    for i in range(12):
        host[:] = i
        results.append((long(work, host), long(work, float(i))))
    for i, (arrays, scalars) in enumerate(results):
        assert (arrays.tolist(), float(scalars)) == ([i] * 3, i)


def test_host_values_beside_donated_arrays() -> None:
    step = verax.jit(lambda state, batch, rate: state - rate * batch, donate_argnums=0)
    state = vnp.zeros(4)
    for i, batch in enumerate(numbers(5)):
        before, state = state, step(state, batch, 0.5 * i)
        with pytest.raises(RuntimeError, match="donated"):
            before.tolist()
    due = -sum(0.5 * i * batch for i, batch in enumerate(numbers(5)))
    assert state.tolist() == due.tolist()


def test_host_values_in_many_threads() -> None:
    add = verax.jit(lambda x, s: x + s)
    add(np.zeros(4, np.float32), 0.0)

    def work(k: int) -> bool:
        x = np.full(4, k, np.float32)
        return all(add(x, float(i)).tolist() == [k + i] * 4 for i in range(200))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_values_that_the_memory_cannot_take() -> None:
    double = verax.jit(lambda x: x * 2)
    for x in (np.int64(3), np.int64(2**40 + 1), np.int64(-5)):
        assert double(x) == double(np.array(x)) == double(vnp.asarray(x))
    for _ in range(2):
        assert double(7) == 14
        with pytest.raises(OverflowError, match="too large to convert to int32"):
            double(2**40)
    with np.errstate(over="ignore"):
        assert double(3.0) == 6
        assert double(1e300) == np.inf


def test_none_trees_and_statics_in_every_place() -> None:
    def fun(x: Any, n: Any, tree: Any, *, flag: Any, last: Any = None) -> Any:
        total = sum(verax.tree.leaves(tree), start=vnp.float32(0))
        more = 0 if last is None else last["b"] - last["a"]
        return x * n + (total if flag else -total) + more

    jitted = verax.jit(fun, static_argnums=1, static_argnames="flag")
    x, y = vnp.ones(2), vnp.arange(2.0)
    for tree in (None, (), (y, None), {"a": [1.0], "b": y}, [None], y):
        for last in (None, {"b": 3.0, "a": y}):
            for n, flag in ((2, True), (3, False)):
                due = fun(x, n, tree, flag=flag, last=last).tolist()
                for _ in range(2):
                    assert jitted(x, n, tree, flag=flag, last=last).tolist() == due
                    assert jitted(x, n, tree, last=last, flag=flag).tolist() == due
    assert jitted(x, 2, None, flag=True).tolist() == [2.0, 2.0]


def test_trees_are_told_apart_by_structure_and_by_leaves() -> None:
    jitted = verax.jit(lambda t: verax.tree.map(lambda a: a + 1, t))
    for tree in ([1, 2.0], [1.0, 2], (1, 2.0), {"a": 1}, {"b": 1}, [[1], 2.0], None):
        for _ in range(2):
            got = jitted(tree)
            assert verax.tree.structure(got) == verax.tree.structure(tree)
            types = [a.dtype for a in verax.tree.leaves(got)]
            assert types == [vnp.asarray(a).dtype for a in verax.tree.leaves(tree)]


def test_attributes_of_functions_shadow_nothing_of_jit() -> None:
    def double(x: Any) -> Any:
        return x * 2

    for name in ("signature", "program", "trace", "lower", "miss", "note"):
        setattr(double, name, None)
    batched: Any = verax.custom_batching.custom_vmap(double)
    batched.def_vmap(lambda size, batched, x: (x * 2, True))
    derived: Any = verax.custom_jvp(double)
    derived.defjvps(lambda t, out, x: 2 * t)
    jitted: Any = verax.jit(double)
    for wrapped in (jitted, batched, derived):
        assert wrapped(3.0) == 6.0
        assert wrapped.note is None
    assert jitted.lower(1.0).compile()(3.0) == 6.0


@pytest.mark.parametrize("option", ["static_argnames", "donate_argnames"])
def test_names_that_no_call_can_use(option: str) -> None:
    def f(a: Any, /, b: Any, *args: Any, **more: Any) -> Any:
        return b

    jit: Any = verax.jit
    jit(f, **{option: ("b", "anything")})
    for name in ("a", "args"):
        with pytest.raises(ValueError, match="cannot be passed by keyword"):
            jit(f, **{option: (name, "b")})


@pytest.mark.parametrize("tree", [False, True])
def test_static_keywords_among_traced_ones_in_any_order(tree: bool) -> None:
    def fun(a: Any, n: int, b: Any, *, mode: str, c: Any) -> Any:
        traces.append((n, mode))
        first = a["w"] if tree else a
        return first * n + b - c if mode == "full" else first

    traces: list[tuple[int, str]] = []
    f = verax.jit(fun, static_argnames=("n", "mode"))
    x, y, z = vnp.ones(2), vnp.full(2, 10.0), vnp.full(2, 100.0)
    a = {"w": x} if tree else x
    for _ in range(3):
        assert f(a, 3, y, mode="full", c=z).tolist() == [-87, -87]
        assert f(a, 3, y, c=z, mode="full").tolist() == [-87, -87]
        assert f(a, 3, c=z, mode="full", b=y).tolist() == [-87, -87]
        assert f(c=z, b=y, a=a, mode="full", n=3).tolist() == [-87, -87]
        assert f(a, 4, y, mode="full", c=z).tolist() == [-86, -86]
        assert f(a, 3, y, mode="first", c=z).tolist() == [1, 1]
        assert f(a, True, y, mode="full", c=z).tolist() == [-89, -89]
    assert len(set(traces)) == 4
