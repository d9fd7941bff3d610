"""Mutable references: reading, writing, ending, aliases, and every transformation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.ir.effects import RefEffect
from verax.transforms.engine.engine import STANDARD


def held(ref: verax.Ref) -> Any:
    return ref[...].tolist()


def act(method: Callable[..., Any], *args: Any) -> Any:
    """Call what returns nothing, in an expression."""
    return method(*args)


def stepping(x: verax.Ref) -> None:
    x[...] += 1.0
    x[0] += 1
    x[1] += 5


@pytest.mark.parametrize("change", [lambda f: f, verax.jit])
def test_a_reference_is_written_by_eager_and_compiled_code(
    change: Callable[..., Any],
) -> None:
    x = verax.new_ref(vnp.zeros(3))
    f = change(stepping)
    f(x)
    f(x)
    assert held(x) == [4, 12, 2]
    g = change(lambda: stepping(x))
    g()
    g()
    assert held(x) == [8, 24, 4]


def test_indices_are_those_of_arrays() -> None:
    x = verax.new_ref(np.arange(12.0, dtype=np.float32).reshape(3, 4))
    x[1] = x[0]
    x[2, -1] = x[1, 2]
    x[0, :3] = x[:, 1]
    x[np.array([1, 2, 1]), np.array([0, 0, 1])] = 7.0
    assert held(x) == [[1, 1, 9, 3], [7, 7, 2, 3], [7, 9, 10, 2]]
    part = x.at[1:, 1]
    assert part.shape == (2,)
    part[...] += 1.0
    part.at[1][...] = 0.0
    assert held(x) == [[1, 1, 9, 3], [7, 8, 2, 3], [7, 0, 10, 2]]
    assert len(x) == 3
    assert (x.ndim, x.size, x.dtype.name) == (2, 12, "float32")


def test_get_set_swap_and_addupdate() -> None:
    x = verax.new_ref(vnp.zeros(3))
    assert x.swap(5.0, 1).item() == 0
    assert verax.ref.swap(x, None, vnp.ones(3)).tolist() == [0, 5, 0]
    verax.ref.set(x, 0, 3.0)
    verax.ref.addupdate(x, np.array([2, 2]), 1.0)
    x.addupdate(1.0)
    assert verax.ref.get(x).tolist() == [4, 2, 4]
    assert verax.ref.get(x, 1).item() == 2


@pytest.mark.parametrize("value", [1.5, np.float32(1), np.ones(3, np.int64)])
def test_a_value_of_another_dtype_is_an_error(value: object) -> None:
    x = verax.new_ref(vnp.zeros(3, "int8"))
    with pytest.raises(ValueError, match="to a reference of dtype int8"):
        x[...] = value


def test_a_value_that_does_not_fit_is_an_error() -> None:
    x = verax.new_ref(vnp.zeros(3))
    with pytest.raises(ValueError, match=r"shape \(4,\) cannot be written"):
        x[...] = vnp.ones(4)
    x[...] = 2.0
    assert held(x) == [2, 2, 2]


def test_weak_values_adopt_the_dtype() -> None:
    x = verax.new_ref(vnp.array(0, "bfloat16"))
    x[...] += 1.0
    x[...] = 3
    assert x[...].dtype == "bfloat16"
    assert not x[...].weak_type


@pytest.mark.parametrize(
    "use", [vnp.sin, vnp.asarray, lambda x: vnp.add(x, 1), lax.sin, verax.new_ref]
)
def test_a_reference_is_not_an_array(use: Callable[..., Any]) -> None:
    x = verax.new_ref(1.0)
    jitted: Callable[..., Any] = verax.jit(use)
    for function in (use, jitted):
        with pytest.raises(TypeError, match=r"ref\[\.\.\.\]"):
            function(x)
    assert [isinstance(x, kind) for kind in (verax.Ref, verax.Array)] == [True, False]


def test_a_reference_that_has_ended_is_not_used() -> None:
    x = verax.new_ref(vnp.ones(2))
    assert verax.freeze(x).tolist() == [1, 1]
    for use in (lambda: x[...], lambda: stepping(x), lambda: verax.jit(stepping)(x)):
        with pytest.raises(ValueError, match="after it was frozen or freed"):
            use()

    @verax.jit
    def twice(v: Any) -> None:
        ref = verax.new_ref(v)
        verax.free_ref(ref)
        verax.free_ref(ref)

    with pytest.raises(ValueError, match="after it was frozen or freed"):
        twice(1.0)


def test_only_its_maker_ends_a_reference() -> None:
    x = verax.new_ref(1.0)
    for f in (lambda r: verax.freeze(r), lambda r: verax.free_ref(x)):
        with pytest.raises(ValueError, match="only by the function that made it"):
            verax.jit(f)(x)


def test_values_that_were_read_do_not_change() -> None:
    source = vnp.arange(3.0)
    x = verax.new_ref(source)
    before = x[...]
    part = x[:2]
    verax.jit(stepping)(x)
    after = x[...]
    verax.jit(stepping)(x)
    assert source.tolist() == before.tolist() == [0, 1, 2]
    assert part.tolist() == [0, 1]
    assert after.tolist() == [2, 7, 3]
    host = np.zeros(3, np.float32)
    y = verax.new_ref(host)
    host[0] = 5
    assert held(y) == [0, 0, 0]


def test_a_compiled_call_writes_into_the_same_memory() -> None:
    x: Any = verax.new_ref(vnp.zeros(1 << 12))
    step = verax.jit(lambda r: act(r.addupdate, 1.0))
    step(x)
    place = x.unsafe_buffer_pointer()
    for _ in range(3):
        step(x)
    assert x.unsafe_buffer_pointer() == place
    assert float(x[...].max()) == 4


def test_references_of_its_own_leave_a_function_pure() -> None:
    def f(x: Any) -> Any:
        ref = verax.new_ref(x)
        for i in (0, 0, 2):
            ref[i] += 1.0
        return ref[...] * verax.freeze(ref)

    x = vnp.arange(3.0)
    expected = (x + vnp.array([2.0, 0.0, 1.0])) ** 2
    for change in (lambda f: f, verax.jit, lambda f: verax.jit(verax.jit(f))):
        assert change(f)(x).tolist() == expected.tolist()
    jaxpr = verax.make_jaxpr(f)(x)
    assert not jaxpr.effects
    assert "ref" not in str(jaxpr)
    slope = verax.grad(lambda x: f(x).sum())(x)
    assert slope.tolist() == (2 * (x + vnp.array([2.0, 0.0, 1.0]))).tolist()
    assert verax.vmap(f)(x[None]).tolist() == expected[None].tolist()


def test_loops_and_choices_write_what_they_close_over() -> None:
    def run(x: verax.Ref) -> Any:
        def body(c: Any, row: Any) -> tuple[Any, Any]:
            x[...] += row
            return c + 1, x[...]

        count, ys = lax.scan(body, 0, vnp.arange(4), reverse=True)
        lax.cond(x[...] > 5, lambda: act(x.addupdate, 10), lambda: act(x.set, 0))
        lax.switch(
            x[...] % 3, [lambda: None, lambda: act(x.addupdate, 1), lambda: None]
        )
        steps = lax.while_loop(
            lambda c: x[...] < 40, lambda c: (act(x.addupdate, c), c + 1)[1], 0
        )
        lax.fori_loop(0, 3, lambda i, c: (act(x.addupdate, i), c)[1], None)
        return count, ys, steps

    for change in (lambda f: f, verax.jit, verax.checkpoint):
        x = verax.new_ref(0)
        count, ys, steps = change(run)(x)
        assert count.item() == 4
        assert ys.tolist() == [6, 6, 5, 3]
        assert held(x) == 16 + 1 + sum(range(8)) + 3
        assert steps.item() == 8


def test_the_predicate_of_a_loop_only_reads() -> None:
    x = verax.new_ref(0)
    with pytest.raises(ValueError, match="it may only read"):
        lax.while_loop(lambda c: (act(x.set, 1), c < 3)[1], lambda c: c + 1, 0)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_gives_each_step_its_part_of_a_reference(reverse: bool) -> None:
    def run(x: verax.Ref) -> Any:
        def body(c: Any, row: Any) -> tuple[Any, Any]:
            i, part = row
            part[...] += c
            return c + i, part[...]

        return lax.scan(body, 1, (vnp.arange(3), x), reverse=reverse)

    for change in (lambda f: f, verax.jit):
        x = verax.new_ref(10 * vnp.arange(6).reshape(3, 2))
        total, ys = change(run)(x)
        added = np.array([4, 3, 1] if reverse else [1, 1, 2])[:, None]
        expected = 10 * np.arange(6).reshape(3, 2) + added
        assert held(x) == ys.tolist() == expected.tolist()
        assert total.item() == 4


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_vmap_maps_references_over_any_axis(axis: int) -> None:
    def f(ref: verax.Ref, x: Any) -> Any:
        ref[0] = x
        ref[...] += x
        return ref[...].sum()

    start = np.arange(6, dtype=np.float32).reshape(2, 3)
    count = start.shape[axis]
    ref = verax.new_ref(start)
    xs = vnp.arange(1.0, count + 1)
    actual = verax.vmap(f, in_axes=(axis, 0))(ref, xs)
    expected = np.moveaxis(start, axis, 0).copy()
    for row, x in zip(expected, xs.tolist(), strict=True):
        row[0] = x
        row += x
    assert held(ref) == np.moveaxis(expected, 0, axis).tolist()
    assert actual.tolist() == expected.sum(1).tolist()


def test_vmap_of_choices_and_loops_on_references() -> None:
    def f(ref: verax.Ref, n: Any) -> None:
        lax.cond(n > 1, lambda: act(ref.addupdate, 10), lambda: None)
        lax.while_loop(lambda c: c < n, lambda c: (act(ref.addupdate, 1), c + 1)[1], 0)

    ref = verax.new_ref(vnp.zeros(4, "int32"))
    verax.vmap(f)(ref, vnp.arange(4))
    assert held(ref) == [0, 1, 12, 13]


def test_vmap_needs_a_part_for_each_element() -> None:
    ref = verax.new_ref(0)
    with pytest.raises(ValueError, match="unbatched array reference"):
        verax.vmap(lambda x: act(ref.addupdate, x))(vnp.arange(3))
    assert verax.vmap(lambda x: x + ref[...])(vnp.arange(3)).tolist() == [0, 1, 2]
    verax.vmap(lambda x: act(ref.set, 7))(vnp.arange(3))
    assert held(ref) == 7


def test_derivatives_take_references_along() -> None:
    def loss(x: Any, seen: verax.Ref) -> Any:
        y = x * x
        seen[...] += lax.stop_gradient(y)
        return y

    seen = verax.new_ref(0.0)
    for change in (lambda f: f, verax.jit):
        assert change(verax.grad(loss))(3.0, seen).item() == 6
        assert verax.grad(change(loss))(3.0, seen).item() == 6
    assert held(seen) == 36
    value, slope = verax.jvp(lambda x: loss(x, seen), (3.0,), (1.0,))
    assert (value.item(), slope.item(), held(seen)) == (9, 6, 45)
    count = verax.new_ref(0)

    def looping(x: Any) -> Any:
        return lax.scan(
            lambda c, _: (act(count.addupdate, 1), (c * 2, ()))[1], x, length=3
        )

    assert verax.grad(lambda x: looping(x)[0])(1.0).item() == 8
    assert held(count) == 3


def test_what_is_differentiated_is_not_written_elsewhere() -> None:
    ref = verax.new_ref(0.0)

    def leak(x: Any) -> Any:
        ref[...] = x
        return x

    ways: list[Callable[[], Any]] = [
        lambda: verax.grad(leak)(1.0),
        lambda: verax.jvp(leak, (1.0,), (1.0,)),
        lambda: verax.grad(verax.jit(leak))(1.0),
    ]
    for way in ways:
        with pytest.raises(ValueError, match="Move the array reference"):
            way()
    assert held(ref) == 0


def test_one_reference_is_passed_once() -> None:
    x = verax.new_ref(1.0)
    with pytest.raises(ValueError, match="appeared at both a and b"):
        verax.jit(lambda a, b: a[...] + b[...])(x, x)
    with pytest.raises(ValueError, match=r"appeared at both a and b\['k'\]"):
        verax.vmap(lambda a, b: None)(*[(r := verax.new_ref(vnp.ones(3))), {"k": r}])
    with pytest.raises(ValueError, match="closed over and passed as the argument b"):
        verax.jit(lambda b: x[...] + b[...])(x)
    with pytest.raises(ValueError, match="closed over and passed as the argument b"):
        lax.cond(True, lambda b: x[...] + b[...], lambda b: b[...], x)
    with pytest.raises(ValueError, match="closed over and passed as the argument b"):
        verax.jit(lambda a: verax.jit(lambda b: a[...] + b[...])(a))(x)


def add_one(part: Any) -> Any:
    part[...] += 1.0
    return part[...].sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    "run",
    [
        lambda part: verax.jit(add_one)(part),
        lambda part: verax.checkpoint(add_one)(part),
        lambda part: verax.jit(verax.checkpoint(add_one))(part),
        lambda part: verax.lax.cond(True, add_one, lambda part: 0.0, part),
        lambda part: verax.jit(lambda: verax.jit(add_one)(part))(),
        lambda part: verax.jit(lambda tree: add_one(tree["part"]))({"part": part}),
        lambda part: verax.vmap(add_one, None, 0, axis_size=1)(part)[0],
        lambda part: verax.vjp(lambda x, part: x * add_one(part), 1.0, part)[0],
    ],
)
@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (slice(1, 3), [0, 1, 1, 0]),
        (2, [0, 0, 1, 0]),
        (vnp.array([0, 3]), [1, 0, 0, 1]),
        ((..., np.int32(1)), [0, 1, 0, 0]),
        (None, [1, 1, 1, 1]),
    ],
)
def test_a_part_of_a_reference_is_an_argument(
    run: Any, index: Any, expected: list[int]
) -> None:
    ref = verax.new_ref(vnp.zeros(4))
    assert run(ref.at[index]) == sum(expected)
    assert ref[...].tolist() == expected
    assert run(ref.at[1:].at[1:3].at[0]) == expected[2] + 1


def test_rows_and_places_that_a_program_computes_are_arguments() -> None:
    ref = verax.new_ref(vnp.zeros((3, 2)))
    _, sums = verax.lax.scan(lambda _, row: (_, verax.jit(add_one)(row)), 0, ref.at[:2])
    assert sums.tolist() == [2, 2]
    at = verax.jit(lambda ref, i: verax.jit(add_one)(ref.at[i]))
    assert [at(ref, 0), at(ref, 2)] == [4, 2]
    assert ref[...].tolist() == [[2, 2], [1, 1], [1, 1]]


def test_a_part_of_a_reference_is_not_cut() -> None:
    part = verax.new_ref(vnp.zeros((3, 2))).at[1:]
    for cut in (verax.vmap(add_one), verax.vmap(add_one, ({"a": 1},))):
        with pytest.raises((TypeError, ValueError), match=r"not allowed|prefix"):
            cut(part)
    with pytest.raises(ValueError, match="only one reference"):
        verax.jit(lambda a, b: a[...] + b[...])(part, part.parent)
    leaves, tree = verax.tree.flatten(part)
    assert leaves == [part.parent]
    assert verax.tree.leaves(tree.unflatten([3])) == [3]


def test_references_are_not_returned() -> None:
    x = verax.new_ref(1.0)
    with pytest.raises(ValueError, match=r"returned a mutable.*\n\n.*argument r\."):
        verax.jit(lambda r: r)(x)
    with pytest.raises(ValueError, match=r"returned a mutable.*\n\n.*created on line"):
        verax.jit(verax.new_ref)(1.0)
    step: Any = lambda c, _: (verax.new_ref(c), None)  # noqa: E731
    with pytest.raises(ValueError, match="traced for scan returned a mutable"):
        lax.scan(step, 0, length=2)


def test_effects_name_the_inputs_that_are_touched() -> None:
    a, b, own = verax.new_ref(1.0), verax.new_ref(2.0), verax.new_ref(3.0)

    def f(x: verax.Ref, y: verax.Ref) -> Any:
        inner = verax.jit(lambda r: act(r.set, own[...]))
        lax.cond(True, lambda: inner(y), lambda: None)
        return x[...]

    jaxpr = verax.make_jaxpr(f)(a, b)
    assert {str(e) for e in jaxpr.effects} == {"read 0", "read 1", "write 2"}
    assert all(isinstance(e, RefEffect) for e in jaxpr.effects)
    assert [str(v.aval) for v in jaxpr.jaxpr.constvars] == ["Ref{f32[]}"]


def test_discharge_shows_the_state_as_values() -> None:
    ref = verax.new_ref(vnp.zeros(3))

    def f(ref: verax.Ref, x: Any) -> Any:
        lax.scan(lambda _, i: (None, act(ref.addupdate, x, i)), None, vnp.arange(3))
        return ref[0]

    jaxpr = verax.make_jaxpr(f)(ref, 2.0)
    pure = verax.ref.discharge(jaxpr)
    assert not pure.effects
    start = np.ones(3, np.float32)
    outs = STANDARD.evaluate(pure.jaxpr, [start, np.array(2, np.float32)])
    assert [x.tolist() for x in outs] == [3, [3, 3, 3]]
    read = verax.ref.discharge(verax.make_jaxpr(lambda r: r[0])(ref))
    assert str(read.jaxpr.outvars[1]) == str(read.jaxpr.invars[0])


def test_empty_references_hold_zeros() -> None:
    @verax.jit
    def f(x: Any) -> Any:
        ref = verax.empty_ref(verax.ShapeDtypeStruct((2,), "float32"))
        ref[0] = 2.0 * x
        actual = ref[...]
        verax.free_ref(ref)
        return actual.sum()

    assert f(3.0).item() == 6
    assert verax.grad(f)(3.0).item() == 2


def test_keys_and_sizes_zero_and_one() -> None:
    key = verax.new_ref(verax.random.key(0))
    key[...] = verax.random.fold_in(key[...], 1)
    verax.jit(lambda k: k.set(verax.random.fold_in(k[...], 2)))(key)
    expected = verax.random.fold_in(verax.random.fold_in(verax.random.key(0), 1), 2)
    assert verax.random.key_data(key[...]).tolist() == (
        verax.random.key_data(expected).tolist()
    )
    for shape in ((0,), (1,), (0, 3)):
        ref = verax.new_ref(vnp.zeros(shape))
        verax.jit(lambda r: act(r.addupdate, 1.0))(ref)
        assert held(ref) == np.ones(shape).tolist()


def test_the_gradient_for_a_reference_is_the_state_backwards() -> None:
    def f(ref: verax.Ref) -> Any:
        ref[...] = vnp.sin(ref[...])
        return ref[...] ** 2

    for change in (lambda f: f, verax.jit):
        ref, total = verax.new_ref(2.0), verax.new_ref(100.0)
        value, pull = verax.vjp(change(f), ref)
        assert np.isclose(held(ref), np.sin(2.0))
        assert np.isclose(value, np.sin(2.0) ** 2)
        assert pull.with_refs(total)(1.0) == (verax.ad.GradRef(),)
        # Of 100 * state at the end + output, by what the state was.
        expected = 100 * np.cos(2.0) + 2 * np.sin(2.0) * np.cos(2.0)
        assert np.isclose(held(total), expected)
    read, pull = verax.vjp(lambda r: r[...] ** 2, verax.new_ref(vnp.arange(3.0)))
    total = verax.new_ref(vnp.ones(3))
    pull.with_refs(total)(vnp.ones(3))
    assert held(total) == [1, 3, 5]
    assert read.tolist() == [0, 1, 4]


def test_gradients_accumulate_in_references() -> None:
    def f(p: dict[str, Any], x: Any) -> Any:
        return vnp.sum(p["w"] * x + p["b"])

    p = {"w": vnp.arange(3.0), "b": 1.0}
    total = verax.new_ref(vnp.zeros(3))

    def run(total: verax.Ref, xs: Any) -> Any:
        def step(_: Any, x: Any) -> tuple[None, Any]:
            value, pull = verax.vjp(f, p, x)
            entries = {"w": total, "b": verax.ad.GradValue()}
            actual, skipped = pull.with_refs(entries, verax.ad.DontWant())(1.0)
            assert actual["w"] == verax.ad.GradRef()
            assert skipped == verax.ad.DidntWant()
            return None, (value, actual["b"])

        return lax.scan(step, None, xs)[1]

    xs = vnp.array([[1.0, 0.0, 2.0], [0.0, 5.0, 1.0]])
    for change in (lambda f: f, verax.jit):
        _, slopes = change(run)(total, xs)
        assert slopes.tolist() == [3, 3]
    assert held(total) == [2, 10, 6]


def test_gradients_that_are_not_wanted_are_not_computed() -> None:
    w, x = vnp.ones((4, 4)), vnp.ones(4)
    _, pull = verax.vjp(lambda w, x: w @ x, w, x)
    value, dont = verax.ad.GradValue(), verax.ad.DontWant()
    for entries, count in (((value, value), 2), ((value, dont), 1), ((dont, dont), 0)):
        jaxpr = verax.make_jaxpr(lambda e=entries: pull.with_refs(*e)(x))()
        assert str(jaxpr).count("dot_general") == count
        assert str(jaxpr).count("broadcast_in_dim") == 0
    assert pull.with_refs(dont, value)(x)[1].tolist() == pull(x)[1].tolist()


def test_wrong_entries_for_gradients() -> None:
    ref = verax.new_ref(2.0)
    _, pull = verax.vjp(lambda r, x: r[...] * x["a"], ref, {"a": 3.0})
    value = verax.ad.GradValue()
    with pytest.raises(ValueError, match=r"args\[0\] of .* accumulated into a ref"):
        pull(1.0)
    with pytest.raises(ValueError, match=r"args\[0\] .* can't be returned as a value"):
        pull.with_refs(value, {"a": value})
    with pytest.raises(ValueError, match="an entry for each leaf"):
        pull.with_refs(value, value)
    with pytest.raises(ValueError, match=r"args\[1\]\['a'\].*Ref\{f32\[\]\}, not"):
        pull.with_refs(verax.ad.DontWant(), {"a": verax.new_ref(vnp.zeros(3))})
    with pytest.raises(TypeError, match="with_refs"):
        verax.grad(lambda r: r[...])(ref)


def test_a_reference_without_gradients_takes_what_is_differentiated() -> None:
    seen = verax.new_ref(1.0, kind="no_grad_no_remat")

    def f(y: Any) -> Any:
        out = y * y
        seen[...] += out
        return out

    for change in (lambda f: f, verax.jit, verax.checkpoint):
        assert verax.grad(change(f))(2.0).item() == 4
    assert held(seen) == 13


def test_references_stay_on_their_devices() -> None:
    mesh = verax.make_mesh((1,), ("i",))
    place = verax.NamedSharding(mesh, verax.P("i"))
    ref: Any = verax.new_ref(verax.device_put(vnp.arange(2), place))
    for _ in range(2):
        assert ref.sharding == place
        verax.jit(lambda r: act(r.addupdate, 1))(ref)
    assert held(ref) == [2, 3]


@pytest.mark.slow
def test_a_backward_rule_writes_to_a_reference() -> None:
    @verax.custom_vjp
    def stash(seen: verax.Ref, x: Any) -> Any:
        return x

    def backward(seen: verax.Ref, ct: Any) -> Any:
        seen[...] += ct
        return None, ct

    stash.defvjp(lambda seen, x: (x, seen), backward)

    def f(seen: verax.Ref, x: Any) -> Any:
        return vnp.sin(stash(seen, vnp.sin(x)))

    def looping(seen: verax.Ref, x: Any) -> Any:
        return lax.scan(lambda c, _: (f(seen, c), None), x, length=2)[0]

    plain: Callable[..., Any] = lambda f: f  # noqa: E731  # one of two ways
    middle = float(np.sin(np.sin(1.0)))
    second = np.cos(np.sin(middle))
    first = second * np.cos(middle) * np.cos(np.sin(1.0))
    for inner in (plain, verax.jit, verax.checkpoint):
        for outer in (plain, verax.jit):
            seen = verax.new_ref(0.0)
            slope = outer(verax.grad(inner(f), 1))(seen, 1.0)
            assert np.isclose(slope, np.cos(np.sin(1.0)) * np.cos(1.0))
            assert np.isclose(held(seen), np.cos(np.sin(1.0)))
            seen = verax.new_ref(0.0)
            outer(verax.grad(inner(looping), 1))(seen, 1.0)
            assert np.isclose(held(seen), second + first)
    seen = verax.new_ref(0.0)
    _, pull = verax.vjp(lambda x: f(seen, x), 1.0)
    assert held(seen) == 0
    pull(1.0)
    pull(1.0)
    assert np.isclose(held(seen), 2 * np.cos(np.sin(1.0)))
    assert np.isclose(verax.jit(f)(seen, 1.0), f(seen, 1.0))


def test_a_forward_rule_passes_on_only_what_it_takes() -> None:
    @verax.custom_vjp
    def f(x: Any, ref: verax.Ref) -> Any:
        return x

    f.defvjp(lambda x, ref: (x, verax.new_ref(0.0)), lambda res, ct: (ct, None))
    with pytest.raises(ValueError, match="returned a mutable array reference"):
        verax.grad(f)(1.0, verax.new_ref(0.0))
    seen = verax.new_ref(0.0)

    def leak(x: Any) -> Any:
        seen[...] = x
        return f(x, seen)

    with pytest.raises(ValueError, match="Move the array reference"):
        verax.grad(leak)(1.0)


def test_compiled_ahead_of_time() -> None:
    closed = verax.new_ref(1.0)

    @verax.jit
    def f(state: Any, x: Any) -> Any:
        state["ref"][...] += x
        closed[...] *= 2.0
        return {"sum": state["ref"][...].sum()}

    ref, x = verax.new_ref(vnp.zeros(2)), np.array([1.0, 2.0], np.float32)
    struct = verax.ShapeDtypeStruct((2,), np.float32, is_ref=True)
    before = ref[...]
    steps = [f.lower({"ref": given}, x).compile() for given in (ref, struct)]
    for compiled in steps:
        assert compiled({"ref": ref}, x)["sum"] == ref[...].sum()
    assert before.tolist() == [0, 0]
    assert ref[...].tolist() == [2, 4]
    assert held(closed) == 4
    with pytest.raises(TypeError, match=r"state\['ref'\] of f must be a reference"):
        steps[0]({"ref": x}, x)
    with pytest.raises(TypeError, match=r"state\['ref'\]' compiled with float32\[2\]"):
        steps[0]({"ref": verax.new_ref(1.0)}, x)
    both = verax.jit(lambda a, b: a[...] + b[...]).lower(closed, verax.new_ref(1.0))
    with pytest.raises(ValueError, match="at both a and b"):
        both.compile()(closed, closed)
    assert "is_ref=True" in repr(struct)
    assert verax.eval_shape(lambda r: r[...] * 2, struct).shape == (2,)


def forward(f: Callable[..., Any]) -> Any:
    g = verax.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (g(*primals), 3 * tangents[1]))
    return g


def backward(f: Callable[..., Any]) -> Any:
    g = verax.custom_vjp(f)
    g.defvjp(lambda r, x: (g(r, x), None), lambda _, ct: (None, 3 * ct))
    return g


def counting(ref: Any, x: Any) -> Any:
    ref[...] += x
    return 2 * x


@pytest.mark.parametrize("ruled", [forward, backward])
def test_functions_with_rules_take_references(ruled: Any) -> None:
    f = ruled(counting)

    def whole(x: Any) -> Any:
        ref = verax.new_ref(x)
        return (f(ref, x) + ref[...]).sum()

    x = vnp.arange(3.0)
    for change in (lambda g: g, verax.jit):
        assert change(verax.vmap(whole))(x).tolist() == [0, 4, 8]
        # 3 by the rule; 1 is that of the reference, of which the rule says nothing.
        assert change(verax.grad(whole))(x).tolist() == [4, 4, 4]
        assert change(verax.vmap(verax.grad(whole)))(x).tolist() == [4, 4, 4]
        ref = verax.new_ref(vnp.zeros((2, 3)))
        assert change(verax.vmap(f, in_axes=(1, 0)))(ref, x).tolist() == [0, 2, 4]
        assert held(ref) == [[0, 1, 2]] * 2
        ref = verax.new_ref(vnp.zeros(3))
        slopes = change(verax.vmap(verax.grad(f, argnums=1)))(ref, x)
        assert (slopes.tolist(), held(ref)) == ([3, 3, 3], [0, 1, 2])


def test_a_backward_rule_gives_a_cotangent_for_a_reference() -> None:
    read = verax.custom_vjp(lambda ref: ref[...])
    read.defvjp(lambda ref: (read(ref), None), lambda _, ct: (5 * ct,))
    count = verax.custom_vjp(counting)
    count.defvjp(lambda r, x: (count(r, x), None), lambda _, ct: (5 * ct, 3 * ct))

    def both(x: Any) -> Any:
        ref = verax.new_ref(x)
        return count(ref, x) + ref[...]

    def reading(x: Any) -> Any:
        return read(verax.new_ref(x))

    for change in (lambda f: f, verax.jit):
        assert change(verax.grad(reading))(1.0) == 5
        assert change(verax.grad(both))(1.0) == 5 + 3 + 1


def test_batching_rules_take_references() -> None:
    f = verax.custom_batching.custom_vmap(counting)

    @f.def_vmap
    def rule(size: int, batched: Any, ref: Any, x: Any) -> Any:
        ref[...] += 10 * x
        return 5 * x, True

    x, ref = vnp.arange(3.0), verax.new_ref(vnp.zeros(3))
    assert verax.vmap(f)(ref, x).tolist() == [0, 5, 10]
    assert verax.jit(verax.vmap(f))(ref, x).tolist() == [0, 5, 10]
    assert held(ref) == [0, 20, 40]


def test_references_that_rules_cannot_have() -> None:
    x, ref = vnp.arange(3.0), verax.new_ref(1.0)

    def local(f: Any) -> Any:
        return lambda x: f(verax.new_ref(x), x)

    extra = verax.custom_jvp(lambda r, x: x * r[...])
    extra.defjvp(lambda p, t: (counting(*p), t[1]))
    with pytest.raises(NotImplementedError, match="have the function write, too"):
        verax.grad(local(extra))(1.0)
    shared = verax.custom_vjp(counting)
    shared.defvjp(lambda r, x: (counting(r, x), r), lambda r, ct: (None, r[...]))
    with pytest.raises(NotImplementedError, match="hands a mutable reference"):
        verax.grad(local(shared))(1.0)
    closed = verax.custom_batching.custom_vmap(lambda x: counting(ref, x))
    closed.def_vmap(lambda size, batched, x: (x, True))
    with pytest.raises(NotImplementedError, match="closes over a mutable"):
        verax.vmap(closed)(x)
    plain = verax.custom_batching.custom_vmap(lambda x: x)
    plain.def_vmap(lambda size, batched, x: (x * ref[...], True))
    with pytest.raises(NotImplementedError, match="pass it to <lambda> as an argument"):
        verax.vmap(plain)(x)


def test_rules_close_over_references() -> None:
    scale, seen = verax.new_ref(2.0), verax.new_ref(0.0)
    f = verax.custom_jvp(lambda x: x * scale[...])
    f.defjvp(lambda p, t: (f(*p), 3 * t[0] * scale[...]))
    assert verax.vmap(f)(vnp.arange(3.0)).tolist() == [0, 2, 4]
    g = verax.custom_vjp(lambda x: 2 * x)

    def backward(factor: Any, ct: Any) -> Any:
        seen[...] += ct
        return (ct * factor,)

    g.defvjp(lambda x: (g(x), scale[...]), backward)

    def looped(x: Any) -> Any:
        return lax.scan(lambda c, _: (g(c), None), x, length=2)[0]

    for change in (lambda h: h, verax.jit):
        assert change(verax.grad(f))(1.0) == 6
        assert change(lambda x: verax.jvp(f, (x,), (x,)))(1.0) == (2, 6)
        seen[...] = 0.0
        assert (change(verax.grad(g))(1.0), held(seen)) == (2, 1)
        assert (change(verax.grad(looped))(1.0), held(seen)) == (4, 4)


def test_values_stay_where_their_address_was_asked_for() -> None:
    """Programs write in place, and what was read before keeps its own values."""
    given: Any = vnp.zeros(3)
    ref: Any = verax.new_ref(given)
    address = ref.unsafe_buffer_pointer()
    assert address != given.unsafe_buffer_pointer()

    def doubled(r: verax.Ref, x: verax.Array) -> verax.Array:
        r[...] = r[...] + x
        return x * 2  # of the same type as what the reference holds

    kept = []
    for step in (verax.jit(doubled), doubled):
        step(ref, vnp.ones(3))
        kept.append(ref[...])
        assert ref.unsafe_buffer_pointer() == address
    verax.jit(lambda r: act(r.__setitem__, ..., 7.0))(ref)
    ref[0] = 5.0
    ref[...] += 1
    kept.append(ref[...])
    ref[...] = vnp.full(3, 9.0)
    assert ref.unsafe_buffer_pointer() == address
    assert [x.tolist() for x in kept] == [[1] * 3, [2] * 3, [6, 8, 8]]
    assert (given.tolist(), held(ref)) == ([0] * 3, [9] * 3)
    end: Any = verax.freeze(ref)
    assert end.unsafe_buffer_pointer() == address
