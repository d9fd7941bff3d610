"""Operations that compilers know by name: their meaning, and what is told of them."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import export, lax
from verax.errors import UnexpectedTracerError
from verax.experimental import checkify

X = np.linspace(-1, 2, 4, dtype=np.float32)


def scaled(x: Any, /, *, factor: float, table: Any = None) -> Any:
    y = vnp.tanh(x * factor)
    return y if table is None else y + table


operation = lax.composite(scaled, "my.scaled", version=2)


def module(f: Any, *args: Any) -> str:
    text: str = verax.jit(f).lower(*args).as_text()
    return text


def test_a_compiler_sees_the_operation_and_what_it_means() -> None:
    text = module(lambda x: operation(x, factor=2.0), X)
    assert (
        'stablehlo.composite "my.scaled" %arg0 {composite_attributes = '
        "{factor = 2.000000e+00 : f64}, decomposition = @my.scaled, version = 2 : i32} "
        ": (tensor<4xf32>) -> tensor<4xf32>"
    ) in text
    assert "func.func private @my.scaled(%arg0: tensor<4xf32>)" in text


def test_attributes_of_each_kind() -> None:
    told = lax.composite(lambda x, **_: x, "my.told")
    attributes = {
        "flag": True,
        "kind": 'a "name"',
        "none": None,
        "dtype": np.dtype("bfloat16"),
        "pair": (1, [2.5, "x"]),
        "small": np.float32(0.5),
        "table": np.array([[1, 2]], np.int8),
        "empty": (),
    }
    text = module(lambda x: told(x, **attributes), X)
    assert (
        "composite_attributes = {dtype = bf16, empty = [], flag = true, "
        'kind = "a \\22name\\22", pair = [1, [2.500000e+00, "x"]], '
        "small = 5.000000e-01 : f32, table = dense<[[1, 2]]> : tensor<1x2xi8>}"
    ) in text


def test_it_means_its_decomposition() -> None:
    table = np.arange(4, dtype=np.float32)

    def ours(x: Any) -> Any:
        return operation(x, factor=2.0, table=table)

    def plain(x: Any) -> Any:
        return scaled(x, factor=2.0, table=table)

    for change in (
        lambda f: f,
        verax.jit,
        lambda f: verax.grad(lambda x: f(x).sum()),
        lambda f: verax.jit(verax.grad(lambda x: f(x).sum())),
        lambda f: verax.jacfwd(f),
        lambda f: verax.hessian(lambda x: f(x).sum()),
        lambda f: lambda x: verax.vmap(f)(vnp.stack([x, 2 * x])),
        lambda f: verax.grad(lambda x: verax.checkpoint(f)(x).sum()),
        lambda f: lambda x: lax.scan(lambda c, _: (f(c), c), x, None, length=3),
    ):
        for ours_leaf, plain_leaf in zip(
            verax.tree.leaves(change(ours)(X)),
            verax.tree.leaves(change(plain)(X)),
            strict=True,
        ):
            np.testing.assert_allclose(ours_leaf, plain_leaf, rtol=1e-6, atol=1e-7)


def test_what_is_made_of_it_is_no_operation_of_that_name() -> None:
    def f(x: Any) -> Any:
        return operation(x, factor=2.0)

    for g, args in (
        (verax.vmap(f), (X[None],)),
        (lambda x: verax.jvp(f, (x,), (x,)), (X,)),
        (verax.grad(lambda x: f(x).sum()), (X,)),
    ):
        assert "stablehlo.composite" not in module(g, *args)


def test_trees_and_no_arguments() -> None:
    swap = lax.composite(lambda p, q: {"q": p["a"], "p": (q, p["b"])}, "my.swap")
    out = verax.jit(swap)({"a": 1.0, "b": X}, 2)
    assert (float(out["q"]), int(out["p"][0])) == (1, 2)
    np.testing.assert_array_equal(out["p"][1], X)
    one = lax.composite(lambda: vnp.float32(1), "my.one")
    assert float(one()) == float(verax.jit(one)()) == 1
    assert 'stablehlo.composite "my.one"' in module(one)


def test_arrays_that_it_closes_over_become_operands() -> None:
    held = vnp.arange(4.0)
    shifted = lax.composite(lambda x: x + held, "my.shifted")
    np.testing.assert_array_equal(verax.jit(shifted)(X), X + held)
    np.testing.assert_array_equal(shifted(X), X + held)

    def inner(x: Any) -> Any:
        return lax.composite(lambda y: y + x, "my.caught")(x)

    with pytest.raises(
        UnexpectedTracerError, match="in the decomposition for the comp"
    ):
        verax.jit(inner)(X)


def test_exported_and_checked() -> None:
    f = verax.jit(lambda x: operation(x, factor=2.0))
    again = export.deserialize(export.export(f)(X).serialize())
    assert "stablehlo.composite" in again.mlir_module()
    np.testing.assert_allclose(again.call(X), np.tanh(2 * X), rtol=1e-6)

    def root(x: Any) -> Any:
        checkify.check((x >= 0).all(), "negative: {}", x.min())
        return vnp.sqrt(x)

    checked = checkify.checkify(verax.jit(lax.composite(root, "my.root")))
    error, _ = checked(X)
    assert "negative: -1" in str(error.get())
    assert checked(abs(X))[0].get() is None


def test_effects_inside_run_once(capsys: pytest.CaptureFixture[str]) -> None:
    def told(x: Any) -> Any:
        verax.debug.print("x is {}", x, ordered=True)
        return x + 1

    f = verax.jit(lax.composite(told, "my.told"))
    assert float(f(1.0)) == 2
    verax.effects_barrier()
    assert capsys.readouterr().out == "x is 1.0\n"


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: lax.composite(3, "f"), TypeError, "3"),  # type: ignore[arg-type]
        (lambda: lax.composite(scaled, 3), TypeError, "name must be a string"),  # type: ignore[arg-type]
        (lambda: lax.composite(scaled, ""), ValueError, "takes a name and a version"),
        (
            lambda: verax.jit(lambda x: operation(x, factor=x))(X),
            UnexpectedTracerError,
            "use numpy arrays instead",
        ),
        (
            lambda: operation(X, factor=1.0, table=object()),
            TypeError,
            "attribute table of my.scaled must be a number",
        ),
        (
            lambda: operation(X, factor=np.array(["a"])),
            TypeError,
            "is not a dtype of arrays",
        ),
    ],
)
def test_wrong_calls(make: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        make()
