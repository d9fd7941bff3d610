"""How training in bfloat16 by one line compares with float32.

The idea: four programs are trained, or sampled, twice from the same numbers: as they
are, and as `narrow` makes them. What is held against each other are the curves, and the
casts that are written against the values that there are to round.

    python -m tests.benchmarks.narrow        # prints the table of docs/narrowing.md
    python -m tests.benchmarks.narrow gpt cnn --steps 300 --elementwise narrow
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from attrs import frozen

import verax
import verax.numpy as vnp
from tests.benchmarks.memory_programs import block, convolved, normed
from verax import lax, nn, random
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Var
from verax.ir.walk import close, hoist
from verax.ops.calls.call import inline
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.hoisting import as_operands
from verax.rewrites import narrow, narrow_report
from verax.transforms.narrowing.plan import Narrowing
from verax.transforms.passes.cse import cse
from verax.transforms.public import dce, opened

STEPS: Final = 300
WINDOW: Final = 10
HEADS: Final = (
    "program",
    "curve",
    "end",
    "casts",
    "in StableHLO",
    "values read",
    "flops narrow",
    "bytes",
)
CAST: Final = re.compile(r"stablehlo\.convert.*xf32>\) -> tensor<[^>]*bf16>")

type Batch = tuple[Any, ...]


@frozen
class Workload:
    """A loss of parameters and a batch, where it starts, and its batches."""

    loss: Callable[..., Any]
    params: Any
    batch: Callable[[Any], Batch]
    rate: float = 1e-3


def initial(key: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Weights whose products keep the size of what comes in."""
    keys = random.split(key, len(shapes))
    return {
        name: random.normal(k, shape) / np.sqrt(prod(shape[:-1]))
        for (name, shape), k in zip(shapes.items(), keys, strict=True)
    }


def gpt(
    width: int = 64, length: int = 32, words: int = 32, blocks: int = 2
) -> Workload:
    """A transformer that learns a chain of words, after each of which come four."""
    key = random.key(0)
    follow = random.randint(random.key(7), (words, 4), 0, words)
    shapes = {
        "qkv": (width, 3 * width),
        "out": (width, width),
        "up": (width, 4 * width),
        "down": (4 * width, width),
    }
    ones = {"first": vnp.ones(width), "second": vnp.ones(width)}
    layers = [initial(k, shapes) | ones for k in random.split(key, 2)]
    ends = initial(key, {"words": (words, width), "read": (width, words)})

    def loss(params: Any, text: Any) -> Any:
        layers, ends = params
        x = ends["words"][text[:, :-1]]
        for p in layers:
            x = block(p, x)
        scores = nn.log_softmax(normed(x) @ ends["read"])
        right = vnp.take_along_axis(scores, text[:, 1:, None], -1)
        return -vnp.mean(right)

    def batch(key: Any) -> Batch:
        first, rest = random.split(key)
        choice = random.randint(rest, (length, 16), 0, 4)
        start = random.randint(first, (16,), 0, words)
        _, text = lax.scan(lambda w, c: (follow[w, c], w), start, choice)
        return (text.T,)

    return Workload(loss, (layers, ends), batch, 3e-3)


def cnn(channels: int = 16, size: int = 16) -> Workload:
    """A residual network that tells from noisy pictures which wave they show."""
    shapes = {
        "in": (3, 3, 1, channels),
        "a": (3, 3, channels, channels),
        "b": (3, 3, channels, channels),
        "out": (channels, 8),
    }

    def loss(p: Any, x: Any, label: Any) -> Any:
        x = nn.relu(convolved(x, p["in"]))
        x = x + convolved(nn.relu(convolved(x, p["a"])), p["b"])
        scores = nn.log_softmax(vnp.mean(nn.relu(x), (1, 2)) @ p["out"])
        return -vnp.mean(vnp.take_along_axis(scores, label[:, None], -1))

    def batch(key: Any) -> Batch:
        a, b = random.split(key)
        label = random.randint(a, (32,), 0, 8)
        place = vnp.arange(size) * 2 * np.pi / size
        wave = vnp.sin(place * (1 + label[:, None] % 4))
        across, down = wave[:, :, None], wave[:, None, :]
        clean = vnp.where(label[:, None, None] < 4, across, down)
        return (clean + 2.5 * random.normal(b, (32, size, size)))[..., None], label

    return Workload(loss, initial(random.key(1), shapes), batch)


def vae(size: int = 64, hidden: int = 128, code: int = 8) -> Workload:
    """A variational autoencoder of sums of waves."""
    shapes = {
        "a": (size, hidden),
        "mean": (hidden, code),
        "spread": (hidden, code),
        "b": (code, hidden),
        "out": (hidden, size),
    }

    def loss(p: Any, x: Any, noise: Any) -> Any:
        h = vnp.tanh(x @ p["a"])
        mean, spread = h @ p["mean"], h @ p["spread"] - 1
        z = mean + vnp.exp(spread) * noise
        y = vnp.tanh(z @ p["b"]) @ p["out"]
        kl = vnp.sum(vnp.exp(2 * spread) + mean**2 - 1 - 2 * spread, -1) / 2
        return vnp.mean(vnp.sum((x - y) ** 2, -1) / 2 + kl)

    def batch(key: Any) -> Batch:
        a, b, c = random.split(key, 3)
        t = vnp.linspace(0, 2 * np.pi, size)
        waves = vnp.stack([vnp.sin((i + 1) * t) for i in range(4)])
        return (
            random.normal(a, (64, 4)) @ waves + 0.1 * random.normal(b, (64, size)),
            random.normal(c, (64, code)),
        )

    return Workload(loss, initial(random.key(2), shapes), batch)


WORKLOADS: Final[Mapping[str, Callable[[], Workload]]] = MappingProxyType(
    {"gpt": gpt, "cnn": cnn, "vae": vae}
)


# -----------------------------------------------------------------------------
# Training, and the curves.


def trained(work: Workload, gradient: Callable[..., Any], steps: int) -> np.ndarray:
    """The losses of Adam's steps."""

    def adam(state: Any, batch: Batch) -> tuple[Any, Any]:
        params, first, second, count = state
        value, grads = gradient(params, *batch)
        count = count + 1
        first = tree(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = tree(lambda v, g: 0.99 * v + 0.01 * g * g, second, grads)

        def moved(p: Any, m: Any, v: Any) -> Any:
            m, v = m / (1 - 0.9**count), v / (1 - 0.99**count)
            return p - work.rate * m / (vnp.sqrt(v) + 1e-8)

        return (tree(moved, params, first, second), first, second, count), value

    tree = verax.tree.map
    zeros = tree(vnp.zeros_like, work.params)
    state = work.params, zeros, zeros, vnp.float32(0)
    step, batch = verax.jit(adam), verax.jit(work.batch)
    losses = []
    for key in random.split(random.key(3), steps):
        state, value = step(state, batch(key))
        losses.append(float(value))
    return np.array(losses)


def apart(curve: np.ndarray, exact: np.ndarray) -> tuple[float, float]:
    """The largest share by which means of some steps differ, and that of the last."""
    kernel = np.ones(WINDOW) / WINDOW
    a, b = np.convolve(curve, kernel, "valid"), np.convolve(exact, kernel, "valid")
    shares = np.abs(a - b) / np.abs(b)
    return float(shares.max()), float(shares[-1])


def chain() -> Callable[..., Any]:
    """A Hamiltonian chain for a logistic regression: from keys to potentials."""
    x = random.normal(random.key(4), (512, 32))
    truth = random.normal(random.key(5), (32, 4)) / 4
    label = random.categorical(random.key(6), x @ truth)

    def potential(w: Any) -> Any:
        scores = nn.log_softmax(x @ w)
        right = vnp.take_along_axis(scores, label[:, None], -1)
        return -vnp.sum(right) + vnp.sum(w**2) / 2

    force = verax.grad(potential)

    def sample(w: Any, key: Any) -> tuple[Any, Any]:
        kick, toss = random.split(key)
        p = random.normal(kick, w.shape)

        def leap(state: Any, _: None) -> tuple[Any, None]:
            w, p = state
            p = p - 0.01 * force(w)
            w = w + 0.02 * p
            return (w, p - 0.01 * force(w)), None

        (moved, q), _ = lax.scan(leap, (w, p), None, length=8)
        before = potential(w) + vnp.sum(p**2) / 2
        after = potential(moved) + vnp.sum(q**2) / 2
        take = vnp.log(random.uniform(toss)) < before - after
        w = vnp.where(take, moved, w)
        return w, potential(w)

    return lambda keys: lax.scan(sample, vnp.zeros((32, 4)), keys)[1]


def means(values: Any) -> np.ndarray:
    """The running means of the potentials along a chain."""
    return np.cumsum(values) / np.arange(1, len(values) + 1)


# -----------------------------------------------------------------------------
# The values that products read, each traced back through what moves it alone.

type Root = tuple[int, Atom]


def root(env: Mapping[Var, "Root"], atom: Atom) -> "Root":
    """The root of an atom: a constant is its own."""
    return env[atom] if isinstance(atom, Var) else (0, atom)


def values_read(jaxpr: Jaxpr) -> int:
    """The number of values that products read; those from outside a loop count once."""
    plan = Narrowing(verax.numpy.dtype(vnp.bfloat16))
    roots: set[Root] = set()
    flat = cse(inline(close(hoist(jaxpr, as_operands))))
    add_roots(plan, flat, {v: (id(flat), v) for v in flat.invars}, roots)
    return len(roots)


def add_roots(
    plan: Narrowing, jaxpr: Jaxpr, env: dict[Var, Root], roots: set[Root]
) -> None:
    """Add the roots of the products of a program; `env` has those of its values."""
    for eqn in jaxpr.eqns:
        if plan.product(eqn) is not None:
            roots.update([root(env, a) for a in eqn.invars])
        if eqn.primitive is scan_p and isinstance(eqn.params, ScanParams):
            body = cse(inline(eqn.params.jaxpr))
            _, carry, _ = eqn.params.parts(range(len(eqn.invars)))
            inner = {
                v: (id(body), v) if i in carry else root(env, a)
                for i, (v, a) in enumerate(zip(body.invars, eqn.invars, strict=True))
            }
            add_roots(plan, body, inner, roots)
        source = moved_from(plan, eqn)
        for v in eqn.outvars:
            env[v] = (id(jaxpr), v) if source is None else env[source]


def moved_from(plan: Narrowing, eqn: Eqn) -> Var | None:
    """The value whose elements an equation moves, if that is one."""
    floats: list[Atom] = [a for a in eqn.invars if plan.narrows(a.aval)]
    made = [a for a in floats if isinstance(a, Var)]
    return made[0] if plan.moves(eqn) and len(made) == 1 else None


def row_of(name: str, steps: int, options: Mapping[str, Any]) -> tuple[str, ...]:
    """The row of the table for a program."""
    gradient: Callable[..., Any]
    arguments: Batch
    if name == "hmc":
        gradient, arguments = chain(), (random.split(random.key(8), steps),)
        curves = [
            means(verax.jit(f)(*arguments))
            for f in (narrow(gradient, **options), gradient)
        ]
    else:
        work = WORKLOADS[name]()
        gradient = verax.value_and_grad(work.loss)
        arguments = (work.params, *work.batch(random.key(3)))
        curves = [
            trained(work, f, steps) for f in (narrow(gradient, **options), gradient)
        ]
    report = narrow_report(gradient, **options)(*arguments)
    text = verax.jit(narrow(gradient, **options)).lower(*arguments).as_text()
    wide = opened(dce(verax.make_jaxpr(gradient)(*arguments)))
    return (
        name,
        *map(percent, apart(*curves)),
        str(report.casts),
        str(len(CAST.findall(text))),
        str(values_read(wide)),
        percent(report.share),
        percent(report.narrow_bytes / report.bytes - 1),
    )


def percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*WORKLOADS, "hmc"])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--elementwise", default="wide", choices=("wide", "narrow"))
    given = parser.parse_args(arguments)
    print("| " + " | ".join(HEADS) + " |")
    print("|" + "---|" * len(HEADS))
    for name in given.names:
        row = row_of(name, given.steps, {"elementwise": given.elementwise})
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
