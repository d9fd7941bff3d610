"""Exported programs for all sizes: one file, refined for each call."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import NIGHTLY, by_turns
from verax import lax
from verax.export import Exported, deserialize, export, symbolic_args_specs

X = np.arange(24, dtype=np.float32).reshape(4, 6) / 10


def saved(
    function: Callable[..., Any], *args: Any, shapes: Any, **more: Any
) -> Exported:
    """The function, exported for symbolic shapes, after a way through bytes."""
    specs = symbolic_args_specs(args, shapes, **more)
    return deserialize(export(verax.jit(function))(*specs).serialize())


def layer(x: Any, w: Any) -> Any:
    return vnp.tanh(x @ w).mean(0)


def normal(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / vnp.sqrt(x.var(-1, keepdims=True) + 1)


def running(x: Any) -> Any:
    return lax.scan(lambda total, row: (total + row, total), x[0], x)


def counting(x: Any) -> Any:
    return lax.fori_loop(0, x.shape[0], lambda i, total: total + x[i], x[0])


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "sin": vnp.sin,
    "normal": normal,
    "ravel": lambda x: x.reshape(-1) / x.shape[0],
    "broadcast": lambda x: vnp.zeros((2, *x.shape)) + x,
    "slices": lambda x: (x[1:, ::2], x[::-1, -1], x[0]),
    "concatenate": lambda x: vnp.concatenate([x, x[:1], vnp.pad(x, ((1, 0), (0, 0)))]),
    "gather": lambda x: x[vnp.array([0, 1, 1])],
    "scatter": lambda x: x.at[0].set(1.0).at[:, 0].add(x[:, 1]),
    "arange": lambda x: x * vnp.arange(x.shape[1]),
    "cumsum": lambda x: vnp.cumsum(x, 0),
    "sort": lambda x: (vnp.sort(x, 0), vnp.argmax(x, 1), lax.top_k(x, 1)[0]),
    "softmax": verax.nn.softmax,
    "scan": running,
    "fori": counting,
    "cond": lambda x: lax.cond(x.sum() > 0, lambda: x, lambda: -vnp.ones(x.shape)),
    "jit": lambda x: verax.jit(lambda y: y + vnp.ones(y.shape))(x) * 2,
    "vmap": verax.vmap(lambda row: row / row.shape[0]),
    "grad": verax.grad(lambda x: (vnp.sin(x) ** 2).mean()),
    "random": lambda x: verax.random.normal(verax.random.key(0), x.shape) + x,
    "windows": lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 2), "SAME"),
    "roll": lambda x: vnp.roll(x, 1, 0),
    "rest": lambda x: x[: x.shape[0] - x.shape[0] % 3],
    "linspace": lambda x: vnp.linspace(x[0], x[1], x.shape[0]),
    "strides": lambda x: (x[-2:4:2], x[:4:2], x[1 : x.shape[0] : x.shape[0]]),
    "backwards": lambda x: (x[3 :: -x.shape[0]], x[: -x.shape[0] : -2], x[1:0:-2]),
    "write_strides": lambda x: (
        x.at[::-2].multiply(2.0),
        x.at[1 :: x.shape[0]].set(0.0),
        x.at[: -x.shape[0] : -1].add(1.0),
        x.at[:, -3 : x.shape[0]].set(x[:, -3 : x.shape[0]] + 1.0),
    ),
    "edges": lambda x: [
        vnp.pad(x, ((x.shape[0], 2), (1, 2 * x.shape[1])), mode=mode)
        for mode in ("edge", "wrap", "reflect", "symmetric", "maximum")
    ],
    "edge_statistics": lambda x: vnp.pad(x, 1, "mean", stat_length=x.shape[0] // 2 + 1),
    "triangles": lambda x: (
        vnp.tril_indices(x.shape[0], 1, x.shape[1]),
        vnp.triu_indices(x.shape[1], -1),
        vnp.tril_indices(x.shape[0], x.shape[1]),
    ),
    "factors": lambda x: (
        lax.linalg.lu(x),
        tuple(vnp.linalg.qr(x, "complete")),
        tuple(vnp.linalg.svd(x, full_matrices=False)),
        tuple(vnp.linalg.qr(x[:, None, :0])),
    ),
    "bincount": lambda x: vnp.bincount(x[0].astype(int), length=x.shape[0]),
    "nonzero": lambda x: vnp.nonzero(x > 0.5, size=x.shape[0]),
    "keys": lambda x: verax.random.key_data(
        verax.random.split(verax.random.key(0), x.shape[0])
    ),
    "gamma": lambda x: verax.random.gamma(verax.random.key(0), 2.0, x.shape),
    "to_size": lambda x: vnp.linspace(0, x.shape[0], 4),
    "top_k": lambda x: lax.top_k(x, x.shape[1]),
    "pad": lambda x: vnp.pad(x, ((x.shape[0], 1), (0, x.shape[1] - 1))),
    "repeat": lambda x: vnp.repeat(x, x.shape[1], 0),
    "along": lambda x: vnp.take_along_axis(x, vnp.argsort(x, 0), 0),
    "clipped": lambda x: x.at[vnp.arange(3), vnp.arange(3)].add(1.0, mode="clip"),
    "segments": lambda x: verax.ops.segment_sum(x, vnp.arange(x.shape[0]), x.shape[1]),
    "buckets": lambda x: verax.ops.segment_max(
        x, vnp.arange(x.shape[0]), 2, bucket_size=2
    ),
    "masked": lambda x: x.mean(0, where=x > 0.3),
    "quantile": lambda x: vnp.quantile(x, 0.5, axis=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", by_turns(sorted(PROGRAMS), 2, NIGHTLY))
@pytest.mark.usefixtures("little_effort")
def test_one_file_serves_all_sizes(name: str) -> None:
    function = PROGRAMS[name]
    exported = saved(function, X, shapes=("b, c",))
    for x in (X, X[:2, :3], X[:3]):
        verax.tree.map(
            lambda result, due: np.testing.assert_allclose(result, due, 1e-5, 1e-5),
            exported.call(x),
            function(vnp.asarray(x)),
        )


def test_modules_say_that_sizes_or_platforms_are_open() -> None:
    def sine(x: Any) -> Any:
        return lax.platform_dependent(x, cpu=vnp.sin, default=vnp.tan)

    mark = "jax.uses_shape_polymorphism = true"
    assert mark not in export(verax.jit(sine))(X).mlir_module()
    assert mark in saved(vnp.sin, X, shapes="n, m").mlir_module()
    both = export(verax.jit(sine), platforms=("cpu", "cuda"))(X)
    assert mark in both.mlir_module()
    np.testing.assert_allclose(both.call(X), np.sin(X), rtol=1e-6)


def test_sizes_of_several_arguments_agree() -> None:
    w = np.ones((6, 5), np.float32)
    exported = saved(layer, X, w, shapes=("b, c", "c, _"))
    np.testing.assert_allclose(exported.call(X, w), layer(X, w), 1e-6)
    with pytest.raises(ValueError, match=r"args\[1\].shape\[0\] \(= 3\).*'c' \(= 6\)"):
        exported.call(X, w[:3])
    with pytest.raises(ValueError, match="must be f32"):
        exported.call(X.astype(np.int32), w)


def test_linear_algebra_of_a_batch() -> None:
    x = np.eye(3, dtype=np.float32) + np.ones((4, 3, 3), np.float32)
    exported = saved(vnp.linalg.inv, x, shapes=("b, ...",))
    np.testing.assert_allclose(exported.call(x[:2]), np.linalg.inv(x[:2]), 1e-5, 1e-5)


def test_convolution_of_images_of_any_size() -> None:
    def conv(x: Any, kernel: Any) -> Any:
        return lax.conv_general_dilated(x, kernel, (2, 2), "SAME")

    x, kernel = vnp.ones((2, 3, 8, 8)), vnp.ones((4, 3, 3, 3))
    exported = saved(conv, x, kernel, shapes=("b, _, h, w", None))
    for images in (x, x[:1, :, :5, :7]):
        np.testing.assert_allclose(exported.call(images, kernel), conv(images, kernel))


def test_sizes_are_checked_when_called() -> None:
    exported = saved(lambda x: x, X, shapes=("3*b, ...",))
    with pytest.raises(ValueError, match="remainder 1 when computing the value of 'b'"):
        exported.call(X)
    exported = saved(lambda x: x, X[0], shapes=("a",), constraints=["a <= 4"])
    assert exported.call(X[0, :4]).shape == (4,)
    with pytest.raises(ValueError, match="'- a \\+ 4' to be greater or equal to 0"):
        exported.call(X[0])
    with pytest.raises(ValueError, match="Cannot solve for values"):
        saved(lambda x: x, X, shapes=("b*c, c*b",))


@pytest.mark.parametrize(
    ("x", "match"),
    [
        (
            X[0],
            r"Rank mismatch for args\[0\]: argument 0 of .* is f32\[6\], but must be",
        ),
        (X.astype(np.int32), r"Dtype mismatch for args\[0\]: .* is i32\[4,6\]"),
        (
            X.reshape(6, 4),
            r"Shape mismatch for args\[0\].shape\[1\] \(expected same constant\): ",
        ),
        (
            X[:2],
            "Expected value >= 1 for dimension variable 'b'. Using the following "
            r"polymorphic shapes specifications: args\[0\].shape = \(b \+ 2, 6\). "
            r"Obtained dimension variables: 'b' = 0 from specification 'b \+ 2' for "
            r"dimension args\[0\].shape\[0\] \(= 2\)",
        ),
    ],
)
def test_messages_name_the_sizes_that_do_not_fit(x: Any, match: str) -> None:
    exported = saved(lambda x: x, X, shapes=("b + 2, 6",))
    with pytest.raises(ValueError, match=match):
        exported.call(x)


def test_derivatives_of_exported_programs() -> None:
    specs = symbolic_args_specs((X,), ("b, c",))
    data = export(verax.jit(lambda x: (vnp.sin(x) ** 2).mean()))(*specs).serialize(1)
    exported = deserialize(data)
    due = verax.grad(lambda x: (vnp.sin(x) ** 2).mean())
    for x in (X, X[:2, :3]):
        np.testing.assert_allclose(verax.grad(exported.call)(x), due(x), 1e-5, 1e-6)


def test_derivatives_beside_integers() -> None:
    def scaled(n: Any, x: Any) -> Any:
        return x * n, x.shape[0], n

    n = np.arange(4, dtype=np.int32)
    specs = symbolic_args_specs((n, X[0, :4]), ("b", "b"))
    exported = deserialize(export(verax.jit(scaled))(*specs).serialize(1))
    due = verax.grad(lambda n, x: scaled(n, x)[0].sum(), 1)(n, X[0, :4])
    actual = verax.grad(lambda n, x: exported.call(n, x)[0].sum(), 1)(n, X[0, :4])
    np.testing.assert_allclose(actual, due)


def test_exported_program_in_another() -> None:
    inner = saved(lambda x: x.sum(0) / x.shape[0], X, shapes=("b, c",))

    def twice(x: Any) -> Any:
        return inner.call(x) + inner.call(x[1:])

    outer = saved(twice, X, shapes=("n, _",), constraints=["n >= 2"])
    np.testing.assert_allclose(outer.call(X), X.mean(0) + X[1:].mean(0), 1e-6)
    actual = verax.jit(inner.call)(X)
    np.testing.assert_allclose(actual, X.mean(0), 1e-6)


def test_module_says_what_it_needs() -> None:
    exported = saved(lambda x: x * 2, X, shapes=("b, 2*c",), constraints=["b >= 2"])
    text = exported.mlir_module()
    assert exported.uses_global_constants
    assert not exported.takes_platform
    assert exported.calling_convention_version == 1
    assert "tensor<?x?xf32>" in text
    assert "get_dimension_size" in text
    assert text.count("@shape_assertion") == 4
    assert str(exported.in_avals[0]) == "f32[b,2*c]"
    assert str(exported.out_avals[0]) == "f32[b,2*c]"


def test_a_program_of_symbolic_sizes_is_not_compiled() -> None:
    (shape,) = symbolic_args_specs((X,), ("b, ...",))
    lowered = verax.jit(vnp.sin).lower(shape)
    with pytest.raises(ValueError, match=r"symbolic shape f32\[b,6\].*verax.export"):
        lowered.compile()


def test_a_reshape_that_not_all_sizes_allow_is_inconclusive() -> None:
    def halves(*constraints: str) -> Any:
        (n,) = verax.export.symbolic_shape("n", constraints=constraints)
        struct = verax.ShapeDtypeStruct((n,), np.float32)
        return verax.eval_shape(lambda x: x.reshape(2, -1), struct)

    error = verax.errors.InconclusiveDimensionOperation
    with pytest.raises(error, match=r"say so: .*constraints=\['mod\(n, 2\) == 0'\]"):
        halves()
    assert str(halves("mod(n, 2) == 0").shape) == "(2, floordiv(n, 2))"
    (n,) = verax.export.symbolic_shape("n")
    odd = verax.ShapeDtypeStruct((2 * n + 1,), np.float32)
    with pytest.raises(TypeError, match="is not a multiple of 2"):
        verax.eval_shape(lambda x: x.reshape(2, -1), odd)


def test_a_shape_as_a_value() -> None:
    f = verax.jit(lambda x: verax.lax.shape_as_value(x.shape))
    sizes = verax.export.symbolic_shape("a, 3")
    exported = verax.export.export(f)(verax.ShapeDtypeStruct(sizes, np.float32))
    result = exported.call(np.ones((2, 3), np.float32))
    assert result.tolist() == [2, 3]
    assert result.dtype == np.int32


def test_constraints_name_sizes_of_arguments() -> None:
    # Of n >= 10, which follows, no call could be checked.
    (n,) = verax.export.symbolic_shape("n", constraints=["m >= 10", "n >= m"])
    struct = verax.ShapeDtypeStruct((n,), np.float32)
    with pytest.raises(ValueError, match=r"dimension variable 'm' .*'m >= 10'"):
        verax.export.export(verax.jit(lambda x: x[:5]))(struct)
