"""Control flow as users call it: goldens, both call forms, bad input."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import Array, lax
from verax.backend.programs import program
from verax.ir.forms.parser import parse_closed
from verax.ir.walk import close
from verax.ops.table import PRIMITIVES

GOLDENS = Path(__file__).parents[1] / "goldens"


def func7(arg: Array) -> Any:
    return lax.cond(arg >= 0.0, lambda x: x + 3.0, lambda x: x - 3.0, arg)


def func7_older(arg: Array) -> Any:
    return lax.cond(arg >= 0.0, arg, lambda x: x + 3.0, arg, lambda x: x - 3.0)


def func8(arg1: Array, arg2: tuple[Array, Array]) -> Any:
    return lax.cond(
        arg1 >= 0.0,
        lambda x: x[0],
        lambda x: vnp.array([1]) + x[1],
        arg2,
    )


def func8_older(arg1: Array, arg2: tuple[Array, Array]) -> Any:
    return lax.cond(arg1 >= 0.0, arg2, lambda x: x[0], arg2, lambda x: ONE + x[1])


ONE = np.ones(1, np.float32)


def func10(arg: Array, n: Array) -> Any:
    ones = vnp.ones(arg.shape)
    return lax.fori_loop(0, n, lambda i, carry: carry + ones * 3.0 + arg, arg + ones)


def func11(arr: Array, extra: Array) -> Any:
    ones = vnp.ones(arr.shape)

    def body(carry: Array, elements: tuple[Array, Array]) -> tuple[Array, Array]:
        first, second = elements
        return carry + first * second + extra, carry

    return lax.scan(body, 0.0, (arr, ones))


def one_of_three(index: Array, arg: Array) -> Any:
    branches = [lambda x: x + 1.0, lambda x: x - 2.0, lambda x: x + 3.0]
    return lax.switch(index, branches, arg)


def captured(arr: Array) -> Any:
    """Constants in a body, a predicate and a branch."""

    def body(carry: Array, x: Array) -> tuple[Array, None]:
        more = lax.cond(x > 0, lambda: EIGHT, lambda: EIGHT * x)
        return carry + more, None

    total = lax.scan(body, vnp.zeros(8), arr)[0]
    return lax.while_loop(lambda c: (c < EIGHT).any(), lambda c: c + EIGHT, total)


EIGHT = np.ones(8, np.float32)
PAIR = (5.0, (vnp.zeros(1), np.float32(2.0)))
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "func7": (func7, (5.0,)),
    "func7_older": (func7_older, (5.0,)),
    "func8": (func8, PAIR),
    "func8_older": (func8_older, PAIR),
    "func10": (func10, (np.ones(16), 5)),
    "func11": (func11, (np.ones(16), 5.0)),
    "one_of_three": (one_of_three, (1, 5.0)),
    "control_flow_captured": (captured, (vnp.ones(3),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_goldens(name: str) -> None:
    fun, args = PROGRAMS[name]
    text = str(verax.make_jaxpr(fun)(*args)) + "\n"
    assert text == (GOLDENS / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_can_be_read_back_and_agree(name: str) -> None:
    fun, args = PROGRAMS[name]
    closed = verax.make_jaxpr(fun)(*args)
    assert parse_closed(str(closed), PRIMITIVES, closed.consts) == closed
    assert not close(closed).constvars
    eager, jitted = fun(*args), verax.jit(fun)(*args)
    with verax.disable_jit():
        python = fun(*[vnp.asarray(x) if not isinstance(x, tuple) else x for x in args])
    for other in (jitted, python):
        for x, y in zip(
            verax.tree_util.tree_leaves(eager),
            verax.tree_util.tree_leaves(other),
            strict=True,
        ):
            np.testing.assert_allclose(x, y, rtol=1e-6)


def test_constants_of_bodies_are_one_constvar() -> None:
    closed = verax.make_jaxpr(captured)(vnp.ones(3))
    assert [np.asarray(c).shape for c in closed.consts] == [(8,)]


def test_index_is_moved_into_range() -> None:
    branches = [lambda x: x, lambda x: 2 * x, lambda x: 3 * x]
    actual = [int(lax.switch(i, branches, 1)) for i in (-5, 0, 1, 2, 9)]
    assert actual == [1, 1, 2, 3, 3]
    assert int(lax.switch(np.uint32(2**32 - 1), branches, 1)) == 3
    indices = vnp.array([-5, 1, 9])
    assert verax.vmap(lambda i: lax.switch(i, branches, 1))(indices).tolist() == [
        1,
        2,
        3,
    ]


def test_cond_takes_operand_by_name_and_numbers_as_predicate() -> None:
    assert lax.cond(False, lambda x: x + 1, lambda x: x - 1, operand=2).item() == 1
    assert lax.cond(0.5, lambda _: 1, lambda _: 2, operand=None).item() == 1


def test_weak_carries_are_promoted() -> None:
    total, before = lax.scan(lambda c, x: (c + x, c), 0, vnp.arange(3.0))
    assert total.dtype == before.dtype == np.float32
    assert lax.while_loop(lambda c: c < 3, lambda c: c + 1.5, 0).item() == 3.0
    counted = lax.fori_loop(0, 3, lambda i, c: c + i, np.int8(0))
    assert counted.dtype == np.int8


def test_keys_go_through_loops_and_choices() -> None:
    key = verax.random.key(0)

    def step(k: Any, _: None) -> tuple[Any, Any]:
        first, second = verax.random.split(k)
        return first, verax.random.uniform(second)

    expected, k = [], key
    for _ in range(3):
        k, x = step(k, None)
        expected.append(float(x))
    last, actual = lax.scan(step, key, None, 3)
    np.testing.assert_allclose(actual, expected)
    assert verax.random.key_data(last).tolist() == verax.random.key_data(k).tolist()

    def kept(flag: Any) -> Any:
        return lax.cond(flag, lambda k: k, lambda k: step(k, None)[0], key)

    flags = vnp.array([True, False])
    words = verax.vmap(lambda flag: verax.random.key_data(kept(flag)))(flags)
    assert words[0].tolist() == verax.random.key_data(key).tolist()


def test_eager_loops_compile_once_for_changing_constants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def total(weights: Array) -> Any:
        return lax.scan(lambda c, x: (c + (weights * x).sum(), None), 0.0, XS)[0]

    total(vnp.ones(4))
    monkeypatch.setattr(program, "build", None)
    actual = [float(total(vnp.ones(4) * i)) for i in range(3)]
    assert actual == [0.0, 12.0, 24.0]


XS = vnp.arange(3.0)

WRONG: Any = lax
"""For calls that type checkers refuse."""


def test_operands_batched_around_a_choice_for_each_lane() -> None:
    def f(p: Any, y: Any) -> Any:
        return lax.cond(p, lambda y: 2 * y, lambda y: -y, y)

    flags, ys = vnp.array([True, False, True]), vnp.arange(10.0).reshape(2, 5)
    inner = verax.vmap(f, (0, None))
    for run in (lambda g: g, verax.jit):
        actual = run(verax.vmap(inner, (None, 0)))(flags, ys)
        assert actual.tolist() == vnp.stack([2 * ys, -ys, 2 * ys], 1).tolist()
        actual = run(verax.vmap(inner, (None, 1)))(flags, ys.T)
        assert actual.tolist() == vnp.stack([2 * ys, -ys, 2 * ys], 1).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
def test_unrolled_loops_take_every_step_in_turn(reverse: bool) -> None:
    for length, unroll in ((5, 2), (6, 2), (7, 3), (4, 4), (3, 5), (0, 2)):
        rows = vnp.arange(3 * length).reshape(length, 3)

        def step(c: Any, row: Any) -> Any:
            return c * 3 + row[0], (c, row * c)

        @verax.jit
        def loop(rows: Any, step: Any = step, unroll: int = unroll) -> Any:
            return lax.scan(step, vnp.int32(1), rows, reverse=reverse, unroll=unroll)

        c, firsts, seconds = 1, [0] * length, [[0] * 3] * length
        for i in reversed(range(length)) if reverse else range(length):
            firsts[i], seconds[i] = c, [int(x) * c for x in rows[i]]
            c = c * 3 + 3 * i
        actual, (ys, zs) = loop(rows)
        assert int(actual) == c
        assert ys.tolist() == firsts
        assert zs.tolist() == seconds


@pytest.mark.parametrize(
    ("length", "unroll", "loops", "steps"),
    [
        (6, 1, 1, 1),
        (6, 2, 1, 2),
        (7, 3, 1, 4),
        (4, 4, 0, 4),
        (3, 5, 0, 3),
        (1, 1, 0, 1),
    ],
)
def test_a_scan_is_one_loop_unless_all_its_steps_are_unrolled(
    length: int, unroll: int, loops: int, steps: int
) -> None:
    def f(x: Any, rows: Any) -> Any:
        return lax.scan(lambda c, r: (vnp.sin(c) + r, c), x, rows, unroll=unroll)

    text = verax.jit(f).lower(vnp.float32(0.5), vnp.ones(length)).as_text()
    assert text.count("stablehlo.while") == loops
    assert text.count("stablehlo.sine") == steps


def test_map_in_batches() -> None:
    for size in (1, 2, 3, 7, 9):
        actual = lax.map(lambda x: x * x, vnp.arange(7), batch_size=size)
        assert actual.tolist() == [i * i for i in range(7)]


def test_associative_scan() -> None:
    matrices = vnp.arange(12.0).reshape(3, 2, 2)
    actual = lax.associative_scan(vnp.matmul, matrices)
    np.testing.assert_allclose(actual[2], matrices[0] @ matrices[1] @ matrices[2])
    flags = vnp.array([[False, False, True, False]])
    actual = lax.associative_scan(vnp.logical_or, flags, reverse=True, axis=-1)
    assert actual.tolist() == [[True, True, True, False]]


def test_structure_that_the_documents_describe() -> None:
    """Operands, constants, order of branches and carries, as told of each example."""

    def of(name: str) -> Any:
        fun, args = PROGRAMS[name]
        closed = verax.make_jaxpr(fun)(*args)
        return closed, closed.eqns[-1]

    closed, eqn = of("func7")
    *_, index = closed.eqns[:-1]
    assert eqn.invars == (index.outvars[0], closed.jaxpr.invars[0])
    on_false, on_true = eqn.params.branches
    assert [b.eqns[0].primitive.name for b in (on_false, on_true)] == ["sub", "add"]

    closed, eqn = of("func7_older")
    assert eqn.invars[1:] == (closed.jaxpr.invars[0],) * 2

    for name, count in (("func8", 2), ("func8_older", 4)):
        closed, eqn = of(name)
        (constant,) = closed.jaxpr.constvars
        _, *pair = closed.jaxpr.invars
        assert closed.consts[0].shape == (1,)
        assert eqn.invars[1:] == (constant, *(pair * (count // 2)))
        on_false, on_true = eqn.params.branches
        assert on_false.invars[0] in {a for e in on_false.eqns for a in e.invars}
        assert on_true.outvars == (on_true.invars[1],)

    closed, eqn = of("one_of_three")
    assert [str(b.eqns[0].invars[1]) for b in eqn.params.branches] == [
        "1.0:~f32[]",
        "2.0:~f32[]",
        "3.0:~f32[]",
    ]
    assert len(eqn.invars) == 2
    assert closed.eqns[-2].primitive.name == "clamp"

    closed, eqn = of("func10")
    p, (arg, n) = eqn.params, closed.jaxpr.invars
    assert (p.cond_nconsts, p.body_nconsts, len(eqn.invars)) == (0, 2, 5)
    assert eqn.invars[1] is arg
    assert str(eqn.invars[2]).startswith("0:")
    assert eqn.invars[3] is n
    i, end, _ = p.cond_jaxpr.invars
    assert p.cond_jaxpr.eqns[0].invars == (i, end)

    closed, eqn = of("func11")
    p, (arr, extra) = eqn.params, closed.jaxpr.invars
    assert (p.num_consts, p.num_carry, p.length, p.reverse) == (1, 1, 16, False)
    assert eqn.invars[0] is extra
    assert str(eqn.invars[1]) == "0.0:f32[]"
    assert eqn.invars[2] is arr
    assert p.linear == (False,) * 4
    weak = p.jaxpr.eqns[0]
    assert weak.primitive.name == "convert_element_type"
    assert weak.invars == (p.jaxpr.invars[1],)
    assert weak.outvars == (p.jaxpr.outvars[1],)


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lax.cond(XS > 1, lambda: 1, lambda: 2), TypeError, "boolean scalar"),
    (lambda: lax.cond(True, lambda: 1, lambda: 2.5), TypeError, "dtypes do not"),
    (lambda: lax.cond(True, lambda: XS, lambda: XS[:1]), TypeError, r"float32\[1\]"),
    (lambda: lax.cond(True, lambda: {"b": 1}, lambda: {"a": 1}), TypeError, "'a',"),
    (lambda: lax.cond(True, 1, 2), TypeError, "lax.cond: as true_fun"),
    (lambda: lax.switch(1.0, [lambda: 1, lambda: 2]), TypeError, "integer scalar"),
    (lambda: lax.switch(1, []), ValueError, "at least one branch"),
    (lambda: lax.while_loop(lambda c: 1, lambda c: c, 0), TypeError, "boolean scalar"),
    (
        lambda: WRONG.while_loop(lambda c: c["a"] < 1, lambda c: {"a": XS}, {"a": 0}),
        TypeError,
        r"c\['a'\] has type int32\[\] but .* float32\[3\], .* dtypes do not .* shapes",
    ),
    (lambda: lax.scan(lambda c, x: c, 0.0, XS), TypeError, "pair"),
    (
        lambda: lax.scan(lambda c, x: ((c[0], XS[:1]), x), (0.0, XS), XS),
        TypeError,
        r"c\[1\] has type float32\[3\] but .* float32\[1\], so the shapes",
    ),
    (
        lambda: lax.scan(lambda c, x: ({}, x), {"a": 0}, XS),
        TypeError,
        "key sets: .*'a'",
    ),
    (lambda: lax.scan(lambda c, x: (c, x), 0, (XS, XS[:1])), ValueError, r"xs\[1\]: 1"),
    (lambda: lax.scan(lambda c, x: (c, x), 0), ValueError, "length"),
    (lambda: lax.scan(lambda c, x: (c, x), 0, XS, unroll=-1), ValueError, "unroll"),
    (lambda: lax.cond("yes", vnp.sin, vnp.cos, 1.0), TypeError, "got yes of type"),
    (lambda: lax.cond(vnp.any, vnp.sin, vnp.cos, 1.0), TypeError, "Pred type must"),
    (lambda: lax.switch("a", [vnp.sin, vnp.cos], 1.0), TypeError, "integer, got a"),
    (lambda: lax.switch((1, 2), [vnp.sin, vnp.cos], 1.0), TypeError, r"shape \(2,\)"),
    (
        lambda: verax.jit(lambda n: lax.scan(vnp.add, 0, XS, unroll=n))(True),
        verax.errors.ConcretizationTypeError,
        "`unroll` argument to `scan` expects",
    ),
    (lambda: lax.cond(None, vnp.sin, vnp.cos, 1.0), TypeError, "predicate is None"),
    (
        lambda: lax.switch(0, [lambda: 1, lambda: (1, 2), lambda: 3]),
        TypeError,
        r"branch 0 output is a pytree leaf but branch1 output is a .*'tuple'",
    ),
    (
        lambda: lax.while_loop(lambda c: (c < 1,) * 2, vnp.sin, 0.0),
        TypeError,
        "boolean",
    ),
    (
        lambda: WRONG.while_loop(lambda c: c < 1, lambda c: "x", 0.0),
        TypeError,
        "arrays",
    ),
    (
        lambda: WRONG.while_loop(lambda c: c < 1, lambda c: None, 0.0),
        TypeError,
        "struct",
    ),
    (lambda: lax.map(lambda x: x, 1.0), ValueError, "no leading axis"),
    (lambda: WRONG.associative_scan(lambda x, y: (x, y), XS), TypeError, "structure"),
    (
        lambda: lax.platform_dependent(1.0, gpu=cast(Any, 1)),
        TypeError,
        "for gpu, takes",
    ),
    (lambda: lax.platform_dependent(1.0, tpu=vnp.sin), NotImplementedError, "cpu=..."),
    (lambda: verax.jit(lax.platform_dependent)(1.0), TypeError, "at least one"),
    (lambda: lax.fori_loop(0, 2.5, lambda i, c: c, 0), TypeError, "lower and upper"),
    (lambda: lax.scan(lambda c, x: (c, "y"), 0, XS), TypeError, "Only arrays"),
]


@pytest.mark.parametrize("index", range(len(BAD)))
def test_bad_input(index: int) -> None:
    call, error, text = BAD[index]
    with pytest.raises(error, match=text):
        call()


def test_reverse_mode_through_while_says_what_to_use() -> None:
    def doubled(x: Any) -> Any:
        return lax.while_loop(lambda c: c < 9, lambda c: c * 2, x)

    with pytest.raises(
        NotImplementedError, match=r"max_steps=1000.* or use scan, fori_loop"
    ):
        verax.grad(doubled)(1.0)
    assert verax.jvp(doubled, (1.0,), (1.0,))[1].item() == 16.0


class Number:
    """A node that can be called, as the variables of a library can."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


verax.tree_util.register_pytree_node(
    Number, lambda x: ((x.value,), None), lambda _, children: Number(*children)
)


def test_operands_of_cond_may_be_callable() -> None:
    for flag in (True, False):
        actual = lax.cond(
            flag, lambda a, b: a(), lambda a, b: b(), Number(1), Number(2)
        )
        assert int(actual) == 2 - flag


class Traced:
    """Counts how often a step is traced."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, i: Any, x: Any) -> Any:
        self.times += 1
        return x + i


def test_a_counted_loop_traces_its_body_once() -> None:
    body = Traced()
    for _ in range(3):
        assert int(lax.fori_loop(0, 4, body, 0)) == 6
    assert body.times == 1
    assert float(lax.fori_loop(0, 4, body, 0.0)) == 6
    assert body.times == 2


class Paths:
    """A node whose data are in lists, as libraries keep the paths of updates."""


verax.tree_util.register_pytree_node(
    Paths, lambda _: ((), (["x"], [])), lambda data, _: Paths()
)


def test_a_body_that_returns_data_in_lists_is_traced_once() -> None:
    times = 0

    def body(x: Any) -> Any:
        nonlocal times
        times += 1
        return x, Paths()

    for _ in range(2):
        lax.cond(True, body, body, 1.0)
    assert times == 1


@pytest.mark.parametrize("pred", [True, False])
def test_the_first_branch_says_which_results_are_weak(pred: bool) -> None:
    """Of `cond` that is `false_fun`, so a check passes on what it guards as it was."""
    weak, strong = vnp.asarray(1), vnp.int32(1)

    def chosen(p: Any) -> tuple[Any, Any]:
        return (
            lax.cond(p, lambda: strong, lambda: weak),
            lax.cond(p, lambda: weak, lambda: strong),
        )

    for run in (chosen, verax.jit(chosen)):
        assert [x.weak_type for x in run(pred)] == [True, False]
    index = int(pred)
    first = lax.switch(index, [lambda: weak, lambda: strong])
    assert first.weak_type
    assert first.dtype == np.int32
    assert not lax.switch(index, [lambda: strong, lambda: weak]).weak_type


@pytest.mark.slow
@pytest.mark.parametrize("checkpoints", [None, 4])
@pytest.mark.parametrize("reverse", [False, True])
def test_rows_that_a_step_returns_are_not_stacked_again(
    reverse: bool, checkpoints: int | None
) -> None:
    def step(c: Any, row: Any) -> Any:
        return c + row["a"].sum(), {"b": row["a"], "c": row["a"] * c, "d": row["n"]}

    def whole(rows: Any) -> Any:
        return lax.scan(step, 0.0, rows, reverse=reverse, checkpoints=checkpoints)

    rows = {"a": np.arange(8.0).reshape(4, 2), "n": np.arange(4)}
    (eqn,) = verax.make_jaxpr(whole)(rows).eqns
    assert len(eqn.outvars) == 2
    for run in (whole, verax.jit(whole)):
        total, out = run(rows)
        assert float(total) == 28
        assert out["b"].tolist() == rows["a"].tolist()
        assert out["d"].tolist() == [0, 1, 2, 3]
        assert (out["b"].dtype, out["d"].dtype) == (np.float32, np.int32)
        assert out["c"].shape == (4, 2)
    slope = verax.grad(lambda a: whole({**rows, "a": a})[1]["b"].sum())(rows["a"])
    assert slope.tolist() == np.ones((4, 2)).tolist()
