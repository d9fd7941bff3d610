"""Rematerialisation: values, what is kept under each policy, memory."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import ad_checkpoint, checkpoint_policies as policies
from verax.ad_checkpoint import checkpoint_name
from verax.ir.walk import walk


def close(x: Any, y: Any) -> None:
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), 1e-5, 1e-5)


XS = np.linspace(0, 1, 4, dtype=np.float32)


def chain(x: Any) -> Any:
    return vnp.sin(vnp.sin(vnp.cos(x)))


def test_derivatives_are_those_of_the_function() -> None:
    kept = verax.checkpoint(chain)
    close(kept(1.0), chain(1.0))
    close(verax.grad(kept)(1.0), verax.grad(chain)(1.0))
    close(verax.jvp(kept, (1.0,), (1.0,))[1], verax.grad(chain)(1.0))
    close(verax.jit(verax.grad(kept))(1.0), verax.grad(chain)(1.0))
    close(verax.grad(verax.grad(kept))(1.0), verax.grad(verax.grad(chain))(1.0))
    close(verax.vmap(verax.grad(kept))(XS), verax.vmap(verax.grad(chain))(XS))
    close(
        verax.grad(lambda x: verax.vmap(kept)(x).sum())(XS),
        verax.vmap(verax.grad(chain))(XS),
    )
    nested = verax.remat(lambda x: kept(kept(x)))
    close(verax.grad(nested)(1.0), verax.grad(lambda x: chain(chain(x)))(1.0))


def residuals(fun: Any, *args: Any) -> Counter[tuple[int, ...]]:
    """The shapes of what the pullback of `fun` holds."""
    _, pull = verax.vjp(fun, *args)
    return Counter(x.shape for x in pull.residuals)


def layer(w: Any, x: Any) -> Any:
    hidden = checkpoint_name(vnp.tanh(w @ x), "hidden")
    return vnp.sin(vnp.sin(checkpoint_name(vnp.exp(hidden), "grown"))).sum()


W = np.ones((5, 4), np.float32) * 0.1


@pytest.mark.parametrize(
    ("policy", "inner"),
    [
        (None, 0),
        (policies.nothing_saveable, 0),
        (policies.dots_saveable, 1),
        (policies.checkpoint_dots_with_no_batch_dims, 1),
        (policies.save_only_these_names("hidden"), 1),
        (policies.save_only_these_names("hidden", "grown"), 2),
        (policies.save_any_names_but_these("hidden"), 1),
        (policies.save_anything_except_these_names("hidden"), 4),
    ],
    ids=["none", "nothing", "dots", "plain dots", "one", "two", "but", "except"],
)
def test_what_is_kept(policy: Any, inner: int) -> None:
    kept = verax.checkpoint(layer, policy=policy)
    actual = residuals(kept, W, XS)
    assert actual[(5, 4)] == 1
    assert actual[(4,)] == 1
    assert actual[(5,)] == inner
    for ours, plain in zip(
        verax.grad(kept, (0, 1))(W, XS), verax.grad(layer, (0, 1))(W, XS), strict=True
    ):
        close(ours, plain)


def test_policies_joined_and_of_the_users_own() -> None:
    both = policies.save_from_both_policies(
        policies.dots_saveable, policies.save_only_these_names("grown")
    )
    assert residuals(verax.checkpoint(layer, policy=both), W, XS)[(5,)] == 2
    seen: set[str] = set()

    def own(primitive: Any, *avals: Any, **params: Any) -> bool:
        seen.add(primitive.name)
        return bool(primitive.name == "exp" and avals[0].shape == (5,))

    called = verax.checkpoint(verax.jit(layer), policy=own)
    assert residuals(called, W, XS)[(5,)] == 1
    assert {"dot_general", "tanh", "exp", "name"} <= seen


def test_everything_saveable_computes_nothing_again() -> None:
    def count(fun: Any) -> int:
        jaxpr = verax.make_jaxpr(lambda x: verax.vjp(fun, x)[1](x))(1.0).jaxpr
        return sum(e.primitive.name in ("sin", "cos") for _, e in walk(jaxpr))

    plain = count(chain)
    everything = verax.checkpoint(chain, policy=policies.everything_saveable)
    assert count(everything) == plain
    assert count(verax.checkpoint(chain)) > plain


def test_static_arguments() -> None:
    def power(x: Any, n: int, name: str = "a") -> Any:
        assert name == "b"
        return x**n if n > 2 else x

    kept = verax.checkpoint(power, static_argnums=1, static_argnames="name")
    close(verax.grad(lambda x: kept(x, 3, name="b"))(2.0), 12)
    close(verax.jit(verax.grad(lambda x: kept(x, 1, name="b")))(2.0), 1)
    with pytest.raises(TypeError, match="takes a function"):
        verax.checkpoint(3)  # type: ignore[arg-type]  # the error is the point
    with pytest.raises(TypeError, match="takes a policy"):
        verax.checkpoint(chain, policy="dots")  # type: ignore[arg-type]  # as above


def test_what_is_closed_over_is_kept_from_outside() -> None:
    def outer(a: Any) -> Any:
        return verax.checkpoint(lambda x: vnp.sin(x * a))(a)

    close(verax.grad(outer)(2.0), 4 * np.cos(4))
    close(verax.jit(verax.grad(outer))(2.0), 4 * np.cos(4))


def test_barrier_only_where_cse_could_merge() -> None:
    def text(**options: Any) -> str:
        kept = verax.checkpoint(chain, **options)
        lowered: str = verax.jit(verax.grad(kept)).lower(1.0).as_text()
        return lowered

    assert "optimization_barrier" in text()
    assert "optimization_barrier" not in text(prevent_cse=False)
    assert "optimization_barrier" not in text(policy=policies.everything_saveable)


def test_barrier_where_one_argument_asks_for_it() -> None:
    def text(prevent_cse: Any) -> str:
        layer = verax.checkpoint(
            lambda tree, *, by=2.0: chain(tree["x"]) * tree["w"] * by,
            prevent_cse=prevent_cse,
        )
        loss = verax.grad(lambda x, w: layer({"x": x, "w": w}))
        lowered: str = verax.jit(loss).lower(1.0, 2.0).as_text()
        return lowered

    assert "optimization_barrier" in text(({"w": False, "x": True},))
    assert "optimization_barrier" in text((True,))
    assert "optimization_barrier" not in text([False])
    assert "optimization_barrier" not in text(({"w": False, "x": False},))
    with pytest.raises(ValueError, match="prevent_cse specification must be a tree"):
        text((True, False))
    with pytest.raises(TypeError, match="prevent_cse must be a bool"):
        text("yes")


@pytest.mark.slow
@pytest.mark.usefixtures("little_effort")
def test_many_layers_take_less_memory() -> None:
    layers, width = 16, 32
    ws = np.full((layers, width, width), 0.01, np.float32)
    x = np.ones((512, width), np.float32)

    def block(x: Any, w: Any) -> Any:
        return vnp.sin(vnp.sin(vnp.sin(x) @ w))

    def temporaries(block: Any) -> int:
        def loss(ws: Any, x: Any) -> Any:
            for i in range(layers):
                x = block(x, ws[i])
            return x.sum()

        compiled = verax.jit(verax.grad(loss)).lower(ws, x).compile()
        return int(compiled.memory_analysis().temporaries)

    assert temporaries(verax.checkpoint(block)) < 0.6 * temporaries(block)


def test_optimization_barrier() -> None:
    tree: Any = {"a": XS, "b": [2.0, 3]}
    out = verax.jit(verax.lax.optimization_barrier)(tree)
    close(out["a"], XS)
    assert int(out["b"][1]) == 3
    slope = verax.grad(lambda x: verax.lax.optimization_barrier((x, x * x))[1])(3.0)
    close(slope, 6)


def test_fwd_and_bwd() -> None:
    traced = [0]

    def fun(x: Any, n: Any, y: Any) -> Any:
        traced[0] += 1
        return {"out": vnp.sin(x) * y["a"] * n}, x + 1

    fwd, bwd = verax.fwd_and_bwd(fun, argnums=(0, -1), has_aux=True)
    for x in (1.0, 2.0):
        out, residuals, aux = fwd(x, 2, {"a": 3.0})
        close((out["out"], aux), (6 * np.sin(x), x + 1))
        x_ct, y_ct = bwd(residuals, {"out": 1.0})
        close(x_ct, 6 * np.cos(x))
        close(y_ct["a"], 2 * np.sin(x))
    assert traced[0] == 1
    with pytest.raises(ValueError, match="the cotangent has the structure"):
        bwd(fwd(1.0, 2, {"a": 3.0})[1], 1.0)
    plain, back = verax.fwd_and_bwd(lambda x: x * x, argnums=0, jitted=False)
    _, first = plain(3.0)
    _, second = plain(4.0)
    assert verax.tree.structure(first) == verax.tree.structure(second)
    close(back(second, 1.0)[0], 8)


def test_policies_answer_with_booleans_or_names() -> None:
    def sines(policy: Any) -> int:
        f = verax.checkpoint(lambda x: vnp.sin(vnp.sin(x)), policy=policy)
        jaxpr = verax.make_jaxpr(lambda x: verax.vjp(f, x)[1](1.0))(1.0)
        return str(jaxpr).count(" = sin ")

    for name, plain in (
        (ad_checkpoint.Recompute, False),
        (ad_checkpoint.Saveable, True),
    ):
        assert bool(name) is plain
        assert sines(lambda *_, name=name, **__: name) == sines(
            lambda *_, plain=plain, **__: plain
        )
    assert sines(lambda *_, **__: False) > sines(lambda *_, **__: True)
