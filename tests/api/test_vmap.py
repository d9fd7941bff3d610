"""vmap: axes in and out, containers, keywords, nesting, and sizes that disagree."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_in_and_out_axes() -> None:
    assert verax.vmap(lambda x: x.sum())(X).tolist() == [3, 12]
    assert verax.vmap(lambda x: x.sum(), in_axes=1)(X).tolist() == [3, 5, 7]
    assert verax.vmap(lambda x: x.sum(), in_axes=-1)(X).tolist() == [3, 5, 7]
    assert verax.vmap(lambda x: x * 2, out_axes=1)(X).shape == (3, 2)
    assert verax.vmap(lambda x: x * 2, out_axes=-1)(X).shape == (3, 2)


def test_unbatched_arguments_and_outputs() -> None:
    actual = verax.vmap(lambda x, y: x * y, in_axes=(0, None))(X, 2.0)
    assert actual.tolist() == (X * 2).tolist()
    same = verax.vmap(lambda x, y: y + 1, in_axes=(0, None), out_axes=None)(X, 2.0)
    assert float(same) == 3
    repeated = verax.vmap(lambda x: vnp.float32(7))(X)
    assert repeated.tolist() == [7, 7]


def test_prefix_trees_of_axes() -> None:
    def fun(p: dict[str, Any], x: Any) -> dict[str, Any]:
        return {"y": p["w"] * x + p["b"]}

    p = {"w": X, "b": vnp.ones(3)}
    actual = verax.vmap(fun, in_axes=({"w": 0, "b": None}, None))(p, 2.0)
    assert actual["y"].shape == (2, 3)
    actual = verax.vmap(fun, in_axes=({"w": 0, "b": None}, None), out_axes={"y": 1})(
        p, 2.0
    )
    assert actual["y"].shape == (3, 2)


def test_python_numbers_that_are_not_mapped_stay_what_they_are() -> None:
    def fun(x: Any, config: Any, scale: Any) -> Any:
        assert type(config["size"]) is int
        assert not isinstance(scale, float)
        total = x * 0
        for _ in range(config["size"]):
            total = total + x.reshape(config["size"], -1).sum() * scale
        return total if config["flag"] else x

    x = vnp.arange(8.0).reshape(2, 4)
    mapped = verax.vmap(fun, in_axes=(0, {"size": None, "flag": None}, None))
    for outer in (mapped, verax.jit(lambda x: mapped(x, CONFIG, vnp.ones(())))):
        args = (x, CONFIG, vnp.ones(())) if outer is mapped else (x,)
        assert outer(*args).tolist() == [[12] * 4, [44] * 4]
    slopes = verax.grad(lambda s: mapped(x, CONFIG, s).sum())(vnp.float32(2))
    assert float(slopes) == 4 * (12 + 44)
    batched = verax.vmap(mapped, in_axes=(None, None, 0))(x, CONFIG, vnp.ones(3))
    assert batched.shape == (3, 2, 4)


CONFIG = {"size": 2, "flag": True}


def test_keyword_arguments_run_over_the_first_dimension() -> None:
    actual = verax.vmap(lambda x, y: x.sum() + y, in_axes=0)(X, y=vnp.arange(2.0))
    assert actual.tolist() == [3, 13]


def test_axis_size_alone() -> None:
    actual = verax.vmap(lambda x: x + 1, in_axes=None, axis_size=4)(1.0)
    assert actual.tolist() == [2, 2, 2, 2]


def test_nested_with_equal_sizes() -> None:
    square = np.arange(4, dtype=np.float32).reshape(2, 2)
    outer = verax.vmap(verax.vmap(lambda x, y: x - y, (0, None)), (None, 0))
    actual = outer(square[0], square[1])
    assert actual.tolist() == [[-2, -1], [-3, -2]]


def test_sizes_zero_and_one() -> None:
    assert verax.vmap(lambda x: x + 1)(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert verax.vmap(vnp.sum)(np.ones((1, 3), np.float32)).tolist() == [3]


def test_what_is_not_batched_stays_so() -> None:
    jaxpr = verax.make_jaxpr(
        verax.vmap(lambda x, n: x * vnp.sin(n), in_axes=(0, None))
    )(X, 1.0)
    (sine,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "sin"]
    assert sine.outvars[0].aval.shape == ()


def test_vmap_under_jit_and_grad() -> None:
    fun = verax.vmap(lambda x: vnp.sin(x).sum())
    np.testing.assert_allclose(
        verax.jit(verax.grad(lambda x: fun(x).sum()))(X), np.cos(X), 1e-5, 1e-6
    )


def test_disagreeing_sizes_are_told() -> None:
    def model(x: Any, y: Any, z: Any) -> Any:
        return x

    with pytest.raises(ValueError, match="inconsistent sizes") as error:
        verax.vmap(model)(vnp.zeros((5, 2)), vnp.zeros(4), vnp.zeros(5))
    assert str(error.value).splitlines() == [
        "vmap got inconsistent sizes for array axes to be mapped:",
        "  * most axes (2 of them) had size 5, e.g. axis 0 of argument x of type "
        "float32[5,2];",
        "  * one axis had size 4: axis 0 of argument y of type float32[4];",
        "The axes of model that in_axes names must have the same size",
    ]


def test_sizes_in_containers_and_axis_size_are_told() -> None:
    with pytest.raises(ValueError, match=r"size 4: .* p\['b'\]\[1\] of type f"):
        verax.vmap(lambda p: p["a"])(
            {"a": vnp.zeros(3), "b": [vnp.zeros(3), vnp.zeros(4)]}
        )
    with pytest.raises(ValueError, match=r"`axis_size` argument was 7;"):
        verax.vmap(lambda x: x, axis_size=7)(vnp.zeros(3))


@pytest.mark.parametrize(
    ("in_axes", "out_axes", "kind", "words"),
    [
        (None, 0, ValueError, "at least one non-None value in in_axes"),
        (2, 0, ValueError, r"least 3, but is only 2 .* says so of argument x"),
        ("0", 0, TypeError, "in_axes must be an int"),
        (0, 5, ValueError, "out_axes: axis 5 is out of bounds"),
        (0, None, ValueError, "mapped output but out_axes is None: at vmap out"),
        ((0, 0), 0, ValueError, r"got len\(in_axes\)=2, len\(args\)=1"),
        (
            ({"a": 0},),
            0,
            ValueError,
            r"(?s)must be a tree prefix.* at key path\n *vmap in_axes\[0\]",
        ),
    ],
)
def test_wrong_axes(
    in_axes: object, out_axes: object, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        verax.vmap(lambda x: x * 1, in_axes, out_axes)(vnp.zeros((3, 2)))  # type: ignore[arg-type]  # on purpose


def signed(x: Any, y: Any) -> Any:
    return x * y if y > 0 else -x


def test_python_may_branch_on_what_is_not_mapped() -> None:
    ones = vnp.ones(3)
    over = verax.vmap(signed, (0, None))
    assert over(ones, vnp.float32(2)).tolist() == [2, 2, 2]
    assert over(ones, np.float32(-2)).tolist() == [-1, -1, -1]
    assert (
        verax.vmap(verax.grad(signed), (0, None))(ones, vnp.array(4.0)).tolist()
        == [4.0] * 3
    )
    stacked = verax.vmap(lambda row, y: over(row, y), (0, None))(vnp.ones((2, 3)), 2.0)
    assert stacked.tolist() == [[2.0] * 3] * 2
    first = verax.vmap(lambda x, n: x[: int(n)], (0, None))
    assert first(X, vnp.array(2)).tolist() == X[:, :2].tolist()
    assert verax.vmap(
        lambda p: p["x"] * len(range(int(p["n"]))), ({"x": 0, "n": None},)
    )({"x": ones, "n": vnp.array(3)}).tolist() == [3, 3, 3]


def test_python_may_branch_on_what_is_closed_over_where_that_has_a_value() -> None:
    def total(a: Any) -> Any:
        return verax.vmap(lambda y: y * a if a > 0 else -y)(vnp.ones(3)).sum()

    assert float(verax.grad(total)(2.0)) == 3
    assert float(verax.grad(total)(-2.0)) == 0
    with pytest.raises(TypeError, match="only types are known"):
        verax.jit(verax.vmap(lambda x, y: signed(x, 1.0 * y), (0, None)))(X, 2.0)


def test_python_may_branch_on_what_the_function_makes_or_closes_over() -> None:
    def signs(x: Any) -> Any:
        kernel = vnp.ones((3, 2)) + 1.0
        assert kernel.sum() == 12
        return x @ (kernel if X.sum() > 0 else -kernel)

    twos = [[6, 6], [24, 24]]
    assert verax.vmap(signs)(X).tolist() == twos
    assert verax.vmap(verax.vmap(signs))(X[None]).tolist() == [twos]
    slopes = verax.vmap(verax.grad(lambda x: signs(x).sum()))(X)
    assert slopes.tolist() == [[4, 4, 4], [4, 4, 4]]
    for abstract in (verax.jit(verax.vmap(signs)), verax.vmap(verax.jit(signs))):
        with pytest.raises(TypeError, match="only types are known"):
            abstract(X)


def test_a_mapped_argument_has_no_value() -> None:
    def mixed(x: Any, y: Any) -> Any:
        return x if x * y > 0 else y

    with pytest.raises(TypeError, match=r"It depends on argument x of mixed\. Use"):
        verax.vmap(mixed, (0, None))(vnp.ones(2), vnp.array(2.0))
    with pytest.raises(TypeError, match="traced for vmap"):
        verax.vmap(lambda k, z: verax.vmap(signed, (0, None))(k, z))(X, vnp.ones(2))
    with pytest.raises(TypeError, match="a collective"):
        verax.vmap(
            lambda x, y: x if verax.lax.psum(y, "i") > 0 else -x,
            (0, None),
            axis_name="i",
        )(vnp.ones(2), vnp.array(2.0))


def test_under_disable_jit_only_known_predicates_choose() -> None:
    def choose(x: Any, y: Any) -> Any:
        return verax.lax.cond(x > y, lambda: x, lambda: -x)

    xs = vnp.array([1.0, 3.0])
    with verax.disable_jit():
        actual = verax.vmap(choose, (0, None))(xs, vnp.array(2.0))
    assert actual.tolist() == [-1, 3]


def test_rules_of_the_users_may_branch_on_what_is_not_mapped() -> None:
    @verax.custom_jvp
    def scaled(x: Any, y: Any) -> Any:
        return x * y

    @scaled.defjvp
    def scaled_jvp(primals: Any, tangents: Any) -> Any:
        (x, y), (t, _) = primals, tangents
        return x * y, t * y if y > 0 else -t

    slope = verax.grad(scaled)
    ones = vnp.ones(2)
    assert verax.vmap(slope, (0, None))(ones, vnp.array(3.0)).tolist() == [3, 3]
    assert verax.vmap(slope, (0, None))(ones, vnp.array(-3.0)).tolist() == [-1, -1]


def test_what_is_not_mapped_may_be_anything() -> None:
    class Mode:
        scale = 2.0

    x = vnp.arange(3.0)
    for run in (lambda f: f, verax.jit):
        actual = run(lambda x: verax.vmap(lambda x, f: f(x), (0, None))(x, vnp.sin))(x)
        np.testing.assert_allclose(actual, np.sin(x), rtol=1e-6)
        actual = run(
            lambda x: verax.vmap(
                lambda x, rest: x * rest["mode"].scale + rest["y"], (0, None)
            )(x, {"mode": Mode(), "y": x[1], "name": "a"})
        )(x)
        assert actual.tolist() == [1, 3, 5]
    assert verax.vmap(lambda x, k: x, (0, None))(x, "text").tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match=r"at path f: .*sin"):
        verax.vmap(lambda x, f: f(x))(x, vnp.sin)
    with pytest.raises(TypeError, match="Only arrays"):
        verax.vmap(lambda x, k: k, (0, None))(x, "text")


def test_outputs_are_summed_where_no_axis_is_wanted() -> None:
    def f(x: Any) -> Any:
        return 2.0 * x, 7

    total, same = verax.vmap(f, out_axes=None, sum_match=True)(X)
    assert total.tolist() == (2 * X.sum(0)).tolist()
    assert int(same) == 7
    kept, added = verax.vmap(
        lambda x: (x, x), in_axes=1, out_axes=(1, None), sum_match=True
    )(X)
    assert kept.tolist() == X.tolist()
    assert added.tolist() == X.sum(1).tolist()
    with pytest.raises(ValueError, match="out_axes is None"):
        verax.vmap(f, out_axes=None)(X)
