"""What a soak does: small pieces of mixed work, each checked against NumPy.

One idea: a piece of work is a function of a random generator that raises if any result
is wrong, so that a soak is a loop that draws pieces::

    for _ in range(100):
        WORK[rng.integers(len(WORK))](rng)
"""

import gc
import pickle
import threading
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import verax
import verax.numpy as vnp
from verax import lax

type Rng = np.random.Generator
type Work = Callable[[Rng], None]


def draw(rng: Rng) -> np.ndarray:
    """A vector of a length between 0 and 40: often a shape that is new."""
    return rng.normal(size=rng.integers(41)).astype(np.float32)


def check(result: Any, expected: Any) -> None:
    """Raise AssertionError unless the two agree."""
    np.testing.assert_allclose(np.asarray(result), expected, rtol=2e-4, atol=2e-4)


@verax.jit
def affine(x: Any, scale: Any) -> Any:
    """A function that lives as long as the process: its cache meets every shape."""
    return vnp.sin(x) * scale + 1


def jit_of_many_shapes(rng: Rng) -> None:
    x = draw(rng)
    check(affine(x, 2.0), np.sin(x) * 2 + 1)
    check(affine(vnp.asarray(x), np.float32(3)), np.sin(x) * 3 + 1)


def functions_that_are_new(rng: Rng) -> None:
    x, shift = draw(rng), float(rng.normal())
    check(verax.jit(lambda x: vnp.cos(x) + shift)(x), np.cos(x) + np.float32(shift))


def programs_that_are_new(rng: Rng) -> None:
    """Programs of some equations that nobody holds afterwards."""
    scales = rng.uniform(0.5, 1, size=8).astype(np.float32)

    def chain(x: Any) -> Any:
        for scale in scales.tolist():
            x = vnp.sin(x) * scale
        return x.sum()

    start = np.zeros(3, np.float32)
    check(verax.jit(verax.grad(chain))(start), np.full(3, np.prod(scales)))


def rules_that_are_new(rng: Rng) -> None:
    """Functions with rules, each with numbers of its own, made in a loop."""
    scales = rng.uniform(0.5, 1, size=8).astype(np.float32).tolist()

    def chain(x: Any) -> Any:
        for scale in scales:
            f: Any = verax.custom_jvp(lambda x: x * scale)  # noqa: B023
            f.defjvp(lambda p, t: (p[0] * scale, t[0] * scale))  # noqa: B023
            g: Any = verax.custom_vjp(lambda x: f(x) * scale)  # noqa: B023
            g.defvjp(lambda x: (g(x), None), lambda _, ct: (ct * scale,))  # noqa: B023
            x = verax.jit(lambda x: g(x) + scale)(x)  # noqa: B023
        return x

    check(verax.grad(chain)(1.0), np.prod(scales))


def captures(rng: Rng) -> None:
    """Experiments that close over a megabyte each."""
    data = rng.normal(size=1 << 18).astype(np.float32)
    array, total = vnp.asarray(data), np.float32(data.sum(dtype=np.float64))
    f = verax.custom_jvp(lambda x: (x * array).sum())
    f.defjvp(lambda p, t: (f(*p), (t[0] * array).sum()))
    uses = (
        lambda x: (x * array).sum(),
        lambda x: lax.cond(x > 0, lambda y: (y * array).sum(), lambda y: y, x),
        verax.checkpoint(lambda x: (x * array).sum()),
        f,
    )
    use = uses[rng.integers(len(uses))]
    actual = verax.jit(verax.grad(use))(1.0)
    np.testing.assert_allclose(actual, total, rtol=1e-2, atol=1e-1)


def derivatives(rng: Rng) -> None:
    x = draw(rng)
    check(verax.grad(lambda x: (x**3).sum())(x), 3 * x**2)
    check(verax.vmap(verax.grad(vnp.sin))(x), np.cos(x))
    check(verax.jit(verax.jacfwd(lambda x: x * x))(x), np.diag(2 * x))


def eager_operations(rng: Rng) -> None:
    x = draw(rng)
    y = vnp.asarray(x)
    check((y * 2 + y[::-1]).sum(), (x * 2 + x[::-1]).sum())
    check(y.at[: len(x) // 2].set(0), np.where(np.arange(len(x)) < len(x) // 2, 0, x))
    check(vnp.concatenate([y, y]).reshape(2, -1).T, np.stack([x, x]).T)


def donations(rng: Rng) -> None:
    x = draw(rng)
    given: Any = verax.jit(lambda x: x * 1)(x)
    check(verax.jit(lambda x: x + 1, donate_argnums=0)(given), x + 1)
    if not given.is_deleted():
        raise AssertionError("a donated array is still there")


def host_values(rng: Rng) -> None:
    """Many calls at once, whose values of the host are read while the next are made."""
    x = draw(rng)
    numbers = [float(v) for v in rng.integers(100, size=12)]
    running = [(v, affine(np.full_like(x, v), v)) for v in numbers]
    running[0][1].delete()
    for v, actual in running[1:]:
        check(actual, np.full_like(x, np.sin(np.float32(v)) * v + 1))


def errors(rng: Rng) -> None:
    def bad(x: Any) -> Any:
        raise KeyError("on purpose")

    for function in (verax.jit(bad), verax.grad(bad), verax.vmap(bad)):
        try:
            function(np.ones(3, np.float32))
        except KeyError:
            continue
        raise AssertionError("an error was swallowed")
    try:
        affine(object(), 1.0)
    except TypeError:
        return
    raise AssertionError("what is no array was taken")


def host_double(x: np.ndarray) -> np.ndarray:
    return np.asarray(x) * 2


@verax.jit
def called_back(x: Any) -> Any:
    kind = verax.ShapeDtypeStruct(x.shape, x.dtype)
    return verax.pure_callback(host_double, kind, x) + 1


def callbacks(rng: Rng) -> None:
    x = rng.normal(size=rng.integers(1, 4)).astype(np.float32)
    check(called_back(x), 2 * x + 1)


def loops(rng: Rng) -> None:
    x = draw(rng)
    check(lax.scan(lambda c, x: (c + x, c), np.float32(0), x)[0], x.sum())
    check(lax.fori_loop(0, 5, lambda i, c: c + i, np.float32(1)), 11)


def exchanges(rng: Rng) -> None:
    x = draw(rng)
    y: Any = affine(x, 0.0)
    lent = np.from_dlpack(y)
    check(pickle.loads(pickle.dumps(y)), np.ones(len(x)))
    y.delete()
    check(lent, np.ones(len(x)))
    check(vnp.from_dlpack(x) + 1, x + 1)


def threads(rng: Rng) -> None:
    seeds = rng.integers(1 << 30, size=4)
    wrong: list[Exception] = []

    def run(seed: int) -> None:
        own = np.random.default_rng(seed)
        try:
            for work in (jit_of_many_shapes, eager_operations, derivatives):
                work(own)
        except Exception as error:
            wrong.append(error)

    running = [threading.Thread(target=run, args=(int(seed),)) for seed in seeds]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if wrong:
        raise wrong[0]


def clearing(rng: Rng) -> None:
    if rng.random() < 0.2:
        verax.clear_caches()
        gc.collect()


WORK: Final[tuple[Work, ...]] = (
    *(jit_of_many_shapes, functions_that_are_new, captures, derivatives),
    *(programs_that_are_new, rules_that_are_new, eager_operations),
    *(donations, host_values, errors, callbacks, loops, exchanges, threads, clearing),
)
