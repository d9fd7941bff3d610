"""Outlining: blocks become functions, and mean what they meant."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.benchmarks import deep
from tests.benchmarks.namespace import load
from tests.transforms.passes.values import assert_same_values
from verax import ir, transforms
from verax.api.config.config import override
from verax.ir.jaxpr import ClosedJaxpr
from verax.transforms.passes.outline import EVERYTHING, PAYING, joined, outline

SIZE, BLOCKS = 8, 6
FEW = 4
"""So many blocks are functions, too, where they are compiled."""


def weights(seed: int = 0) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    make = [(SIZE, SIZE), (SIZE,), (SIZE, SIZE), (SIZE,)]
    return [
        {
            name: rng.standard_normal(shape).astype(np.float32) / 3
            for name, shape in zip("abcd", make, strict=True)
        }
        for _ in range(BLOCKS)
    ]


def block(p: Any, x: Any) -> Any:
    mean = vnp.mean(x, -1, keepdims=True)
    scale = vnp.sqrt(vnp.var(x, -1, keepdims=True) + 1e-5)
    hidden = verax.nn.gelu((x - mean) / scale @ p["a"] + p["b"])
    return x + verax.nn.softmax(hidden @ p["c"] + p["d"])


def loss(ps: Any, x: Any, block: Callable[..., Any] = block) -> Any:
    for p in ps:
        x = block(p, x)
    return vnp.sum(x**2)


X = np.random.default_rng(1).standard_normal((4, SIZE)).astype(np.float32)


def jitted(ps: Any, x: Any) -> Any:
    return loss(ps, x, verax.jit(block))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "forward": loss,
    "gradient": verax.value_and_grad(loss),
    "jitted block": verax.grad(jitted),
    "vmap": lambda ps, x: verax.vmap(lambda row: loss(ps, row))(x),
    "hessian product": lambda ps, x: verax.jvp(
        lambda x: verax.grad(loss, 1)(ps, x), (x,), (x,)
    )[1],
}


def program(f: Callable[..., Any], *args: Any) -> ClosedJaxpr:
    return transforms.dce(verax.make_jaxpr(f)(*args))


def blocks_of(closed: ClosedJaxpr) -> list[ir.Eqn]:
    return [e for _, e in ir.walk(ir.close(closed)) if kept(e)]


def kept(eqn: ir.Eqn) -> bool:
    return "inlineable" in repr(getattr(eqn.params, "metadata", None))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_the_program(name: str) -> None:
    args = weights(), X
    closed = program(FUNCTIONS[name], *args)
    short = transforms.outline(closed)
    transforms.check(short)
    assert blocks_of(short)
    assert len(short.eqns) <= len(closed.eqns)
    leaves = verax.tree.leaves(args)
    want, got = (transforms.evaluate(p, *leaves) for p in (closed, short))
    for x, y in zip(want, got, strict=True):
        np.testing.assert_array_equal(x, y)


def shortened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """What XLA gets for a CPU."""
    return transforms.hoist(outline(ir.close(closed), PAYING))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_of_what_compilers_get(name: str) -> None:
    args = weights(), X
    closed = program(FUNCTIONS[name], *args)
    short = shortened(closed)
    transforms.check(short)
    leaves = verax.tree.leaves(args)
    want, got = (transforms.evaluate(p, *leaves) for p in (closed, short))
    for x, y in zip(want, got, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.slow
@pytest.mark.usefixtures("little_effort")
def test_the_first_and_the_last_block_are_calls_too() -> None:
    """The first passes no cotangent on, and no norm of another follows the last."""
    build, arrays = deep.NETWORKS["transformer"]
    args = verax.device_put(arrays(FEW, True))
    gradient = verax.value_and_grad(build(load("verax")))
    actual = [e for e in blocks_of(shortened(program(gradient, *args)))]
    assert len(actual) == 2 * FEW
    assert len({e.params for e in actual}) == 2
    want = verax.jit(gradient, calls="inline")(*args)
    got = verax.jit(gradient)(*args)
    for x, y in zip(verax.tree.leaves(want), verax.tree.leaves(got), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)


def test_a_block_is_written_once() -> None:
    short = transforms.outline(program(loss, weights(), X))
    actual = blocks_of(short)
    assert len(actual) == BLOCKS
    assert len({e.params for e in actual}) == 1
    # The rest is the sum of squares.
    assert len(short.eqns) == BLOCKS + 2


def test_the_backward_pass_saves_little() -> None:
    """What is cheap is computed again: a block passes on what XLA would have kept."""
    short = transforms.outline(program(FUNCTIONS["gradient"], weights(), X))
    forward = blocks_of(short)[0]
    kinds = {
        e.primitive.name
        for e in forward.params.jaxpr.eqns  # type: ignore[attr-defined]
        for v in e.outvars
        if v in forward.params.jaxpr.outvars  # type: ignore[attr-defined]
    }
    assert not kinds & {"broadcast_in_dim", "neg", "one_minus_square", "integer_pow"}


def attention(p: Any, x: Any) -> Any:
    """Two halves that begin alike, as those of a transformer do."""

    def norm(x: Any) -> Any:
        mean = vnp.mean(x, -1, keepdims=True)
        return (x - mean) / vnp.sqrt(vnp.var(x, -1, keepdims=True) + 1e-5)

    hidden = norm(x)
    weights = verax.nn.softmax(hidden @ p["a"] @ hidden.T)
    x = x + weights @ hidden @ p["c"] + p["b"]
    return x + verax.nn.gelu(norm(x) @ p["a"]) @ p["c"] + p["d"]


def test_all_passes_of_a_second_derivative_are_found() -> None:
    args = weights(), X
    gradient = verax.grad(lambda ps: loss(ps, args[1], attention))

    def product(ps: Any) -> Any:
        return verax.jvp(gradient, (ps,), (ps,))[1]

    closed = program(product, args[0])
    short = transforms.outline(closed)
    assert len({e.params for e in blocks_of(short)}) == 2
    assert len(short.eqns) < len(closed.eqns) / 3


def test_nothing_repeats() -> None:
    closed = verax.make_jaxpr(lambda x: vnp.sin(vnp.exp(x)))(X)
    assert transforms.outline(closed) == closed
    assert transforms.outline(closed, least=1, saved=1) == closed


@pytest.mark.parametrize("limits", [{"least": 0}, {"saved": 0}])
def test_limits_are_positive(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        transforms.outline(verax.make_jaxpr(vnp.sin)(1.0), **limits)


def tiny(f: Callable[..., Any], *args: Any) -> ClosedJaxpr:
    closed = program(f, *args)
    short = transforms.outline(closed, least=2, saved=2)
    assert_same_values(closed, short, *args)
    return short


def test_symbolic_sizes() -> None:
    (size,) = verax.export.symbolic_shape("n")
    x = verax.ShapeDtypeStruct((size, SIZE), np.float32)
    gradient = FUNCTIONS["gradient"]
    short = transforms.outline(transforms.dce(verax.make_jaxpr(gradient)(weights(), x)))
    transforms.check(short)
    assert blocks_of(short)


def test_literals_that_differ_are_operands() -> None:
    def f(x: Any) -> Any:
        return vnp.exp(vnp.sin(x) * 2.0) + vnp.exp(vnp.sin(x + 1) * 3.0)

    (first, _) = actual = blocks_of(tiny(f, np.float32(1)))
    assert [str(e.invars[-1]) for e in actual] == ["2.0:f32[]", "3.0:f32[]"]
    assert [v.aval.weak_type for v in first.params.jaxpr.invars] == [False, False]  # type: ignore[attr-defined]


def test_array_constants_are_shared_or_passed() -> None:
    a, b = np.arange(3.0, dtype=np.float32), np.ones(3, np.float32)

    def same(x: Any) -> Any:
        return vnp.exp(vnp.sin(x) * a) + vnp.exp(vnp.sin(x + 1) * a)

    def other(x: Any) -> Any:
        return vnp.exp(vnp.sin(x) * a) + vnp.exp(vnp.sin(x + 1) * b)

    for f in (same, other):
        tiny(f, np.arange(3.0, dtype=np.float32))
        want = f(np.arange(3.0, dtype=np.float32))
        got = verax.jit(f, calls="keep")(np.arange(3.0, dtype=np.float32))
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_bodies_of_loops_and_branches() -> None:
    def step(x: Any, _: Any) -> Any:
        for _ in range(3):
            x = vnp.sin(vnp.exp(vnp.cos(x)))
        return x, x

    def f(x: Any) -> Any:
        x = verax.lax.scan(step, x, None, 4)[0]
        return verax.lax.cond(x > 0, lambda x: step(x, x)[0], lambda x: x, x)

    assert len(blocks_of(tiny(f, np.float32(1)))) == 6


def test_effects_stay_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        for i in range(3):
            x = vnp.sin(vnp.exp(x))
            verax.debug.print("{} {}", i, x, ordered=True)
        return x

    short = transforms.outline(verax.make_jaxpr(f)(1.0), least=2, saved=2)
    transforms.check(short)
    assert [e.primitive.name for e in short.eqns] == ["jit", "debug_callback"] * 3
    verax.jit(f, calls="keep")(1.0).block_until_ready()
    verax.effects_barrier()
    assert [line[0] for line in capsys.readouterr().out.splitlines()] == list("012")


def text(f: Callable[..., Any], *args: Any, **options: Any) -> str:
    return verax.jit(f, **options).lower(*args).as_text()


def test_what_compiled_programs_keep() -> None:
    args = weights(), X
    gradient = FUNCTIONS["gradient"]
    assert text(gradient, *args).count("inlineable") >= 2 * (BLOCKS - 2)
    assert "inlineable" not in text(gradient, *args, calls="inline")
    assert "inlineable" in text(FUNCTIONS["jitted block"], *args)
    verax.config.update("calls", "inline")
    try:
        assert "inlineable" not in text(gradient, *args)
    finally:
        verax.config.update("calls", "auto")


def test_chains_without_a_stream_are_left_to_xla() -> None:
    def chain(ps: Any, x: Any) -> Any:
        for _ in range(8):
            for p in ps:
                x = vnp.tanh(x @ p["a"] + p["b"])
        return x

    args = weights(), X
    assert "inlineable" not in text(chain, *args)
    assert "inlineable" in text(chain, *args, calls="keep")

    def logistic(x: Any) -> Any:
        for _ in range(60):
            x = 3.7 * x * (1 - x) + x
        return x

    # One loop over the elements, for XLA.
    assert "inlineable" not in text(logistic, X)
    assert "inlineable" in text(logistic, X, calls="keep")


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_results_are_those_of_inlined_calls(name: str) -> None:
    args = weights()[:FEW], X
    with override("compile_effort", "fast"):
        want = verax.jit(FUNCTIONS[name], calls="inline")(*args)
    for calls in ("auto", "keep"):
        got = verax.jit(FUNCTIONS[name], calls=calls)(*args)
        for x, y in zip(verax.tree.leaves(want), verax.tree.leaves(got), strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("little_effort")
def test_donated_arguments_become_results() -> None:
    def step(ps: Any, x: Any) -> Any:
        grads = verax.grad(loss)(ps, x)
        return verax.tree.map(lambda p, g: p - 0.1 * g, ps, grads)

    given = verax.device_put(weights()[:FEW])
    want = verax.jit(step, calls="inline")(weights()[:FEW], X)
    got = verax.jit(step, donate_argnums=0)(given, X)
    assert all(x.is_deleted() for x in verax.tree.leaves(given))
    for x, y in zip(verax.tree.leaves(want), verax.tree.leaves(got), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)


def test_callbacks_in_a_block() -> None:
    def called(p: Any, x: Any) -> Any:
        like = verax.ShapeDtypeStruct(x.shape, x.dtype)
        return block(p, x) + verax.pure_callback(lambda x: np.sin(x), like, x)

    args = weights(), X
    want = loss(*args, called)
    got = verax.jit(lambda ps, x: loss(ps, x, called), calls="keep")(*args)
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("little_effort")
def test_memory_stays() -> None:
    args = weights()[:FEW], X

    def temporaries(calls: Any) -> int:
        compiled = verax.jit(FUNCTIONS["gradient"], calls=calls).lower(*args).compile()
        return int(compiled.memory_analysis().temp_size_in_bytes)

    assert temporaries("auto") < 2 * temporaries("inline")


@pytest.mark.slow
@pytest.mark.usefixtures("little_effort")
def test_no_more_memory_than_inlined() -> None:
    """What gain and bias make of a norm is computed again, and so are deviations."""
    build, arrays = deep.NETWORKS["transformer"]
    gradient, args = verax.value_and_grad(build(load("verax"))), arrays(FEW, True)
    actual = blocks_of(shortened(program(gradient, *args)))
    forward = actual[0].params.jaxpr  # type: ignore[attr-defined]
    made = {v: e.primitive.name for e in forward.eqns for v in e.outvars}
    # Both norms pass the centred and the normed array, and a sum of squares.
    sizes: dict[str, list[int]] = {}
    for v in forward.outvars:
        sizes.setdefault(made[v], []).append(v.aval.size)
    assert sizes["add"] == [4 * 32 * 16]
    assert "sqrt" not in sizes
    assert sizes["reduce_sum"] == [4 * 4 * 32, 4 * 32, 4 * 32]
    # What takes long is passed, though it could be computed of something no larger.
    backward = actual[-1].params.jaxpr  # type: ignore[attr-defined]
    assert not {e.primitive.name for e in backward.eqns} & {"tanh", "exp"}

    def temporaries(calls: Any) -> int:
        compiled = verax.jit(gradient, calls=calls).lower(*args).compile()
        return int(compiled.memory_analysis().temp_size_in_bytes)

    assert temporaries("auto") <= temporaries("inline")


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="calls must be one of"):
        verax.jit(vnp.sin, calls="all")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="calls"):
        verax.config.update("calls", "all")


def test_products_that_are_equal_are_computed_once() -> None:
    """As two half steps of a leapfrog have the gradient at one place."""

    def energy(q: Any, x: Any) -> Any:
        return vnp.sum(vnp.log(1 + vnp.exp(x @ q))) + vnp.sum(q * q)

    def steps(q: Any, p: Any, x: Any) -> Any:
        for _ in range(8):
            p = p - 0.1 * verax.grad(energy)(q, x)
            q = q + 0.2 * p
            p = p - 0.1 * verax.grad(energy)(q, x)
        return q, p

    args = np.ones(3, "f4"), np.ones(3, "f4"), np.ones((5, 3), "f4")
    closed = program(steps, *args)
    short = shortened(closed)
    count = sum(len(dots(e)) for e in short.jaxpr.eqns)
    assert len([e for e in closed.jaxpr.eqns if dots(e)]) == 32
    assert count <= 18
    assert_same_values(closed, short, *args)


def test_a_barrier_keeps_products_apart() -> None:
    """As that of a checkpoint does, which computes again in order to keep less."""

    def products(x: Any) -> Any:
        out = []
        for _ in range(8):
            y = verax.lax.optimization_barrier(x)
            for _ in range(4):
                y = vnp.tanh(y @ y) * 0.5 + vnp.exp(-y * y) + vnp.cos(y) - 1
            out.append(y)
        return out

    closed = program(products, X[:, :4])
    assert len(closed.jaxpr.eqns) > EVERYTHING.saved + EVERYTHING.least
    kept = joined(closed.jaxpr.eqns, closed.jaxpr.outvars)
    assert len(kept) == len(closed.jaxpr.eqns)


def dots(eqn: Any) -> list[Any]:
    """The products in an equation and in what it holds."""
    inner = [e for j in eqn.params.subjaxprs() for e in j.eqns]
    return [e for e in (eqn, *inner) if e.primitive.name == "dot_general"]
