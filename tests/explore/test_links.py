"""Links on programs of every kind: each row leads back to a line of the user's."""

import linecache
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, nn, random
from verax.api.tracing.apply import ENGINE
from verax.explorer.exploration import explore
from verax.explorer.rows.row import EQUATION
from verax.ops.table import ROWS
from verax.transforms.public import hoist
from verax.verify.cases.growing import Pool
from verax.verify.random_programs import composable, seed_case

V = np.linspace(0.1, 0.9, 4, dtype=np.float32)
M = np.eye(4, dtype=np.float32) * 3 + 0.1
IMAGE = np.ones((1, 1, 8, 8), np.float32)


@verax.custom_vjp
def doubled(x: Any) -> Any:
    return vnp.sin(x)


doubled.defvjp(
    lambda x: (vnp.sin(x), vnp.cos(x)), lambda cosine, ct: (2 * ct * cosine,)
)


@verax.custom_jvp
def rounded(x: Any) -> Any:
    return vnp.sin(x)


@rounded.defjvp
def rounded_jvp(primals: Any, tangents: Any) -> Any:
    return vnp.sin(primals[0]), vnp.cos(primals[0]) * tangents[0]


def nested(x: Any) -> Any:
    def inner(z: Any) -> Any:
        return vnp.sin(z) * 2

    return verax.jit(lambda y: verax.jit(inner)(y) + 1.0)(x).sum()


def blocks(x: Any) -> Any:
    for _ in range(40):
        x = vnp.tanh(x * 1.5 + 0.1) * vnp.cos(x)
    return x.sum()


def while_loop(x: Any) -> Any:
    def body(c: Any) -> Any:
        return vnp.sin(c[0]), c[1] + 1

    return lax.while_loop(lambda c: c[1] < 5, body, (x, 0))[0].sum()


def choice(x: Any) -> Any:
    return lax.cond(x[0] > 0, lambda x: vnp.sin(x).sum(), lambda x: x.sum() ** 2, x)


def switched(x: Any) -> Any:
    branches = [vnp.sum, lambda x: (x * x).sum(), lambda x: vnp.exp(x).sum()]
    return lax.switch(x[0].astype(int), branches, x)


def algebra(m: Any) -> Any:
    factors = vnp.linalg.svd(m)[1].sum() + vnp.linalg.cholesky(m @ m.T).sum()
    return vnp.linalg.slogdet(m)[1] + vnp.linalg.inv(m).sum() + factors


def convolved(k: Any) -> Any:
    return (nn.relu(lax.conv(IMAGE, k, (1, 1), "SAME")) ** 2).sum()


def attention(q: Any) -> Any:
    return nn.dot_product_attention(q, q, q).sum()


def descent(x: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        return c - 0.1 * verax.grad(lambda y: (y**2).sum())(c), None

    return lax.scan(step, x, None, length=3)[0]


def several(x: Any) -> Any:
    second = verax.hessian(lambda z: vnp.sin(z).sum())
    return verax.grad(nested)(x) + verax.grad(lambda y: second(y).sum())(x)


def drawn(key: Any) -> Any:
    first, second = random.split(key)
    return random.normal(first, (3,)) + random.uniform(second, (3,))


def rewritten(x: Any) -> Any:
    stable = verax.rewrites.apply(verax.rewrites.stable())
    return stable(lambda x: vnp.log(1.0 + x))(x)


def indexed(x: Any) -> Any:
    return x[np.array([0, 2, 2])].sum() + x.at[1].set(0.0).sum() + vnp.sort(x)[0]


def pulled_twice(x: Any) -> Any:
    pull = verax.vjp(nested, x)[1]
    return pull(1.0), pull(2.0)


def summed_doubled(x: Any) -> Any:
    return doubled(x).sum()


def summed_rounded(x: Any) -> Any:
    return rounded(x).sum()


def running_product(x: Any) -> Any:
    return lax.associative_scan(vnp.multiply, x).sum()


def spectrum(x: Any) -> Any:
    return vnp.abs(vnp.fft.fft(x)).sum()


def waves(x: Any) -> Any:
    return vnp.sin(x).prod()


def weighted(x: Any) -> Any:
    return vnp.sin(x) * x.sum()


def slopes(x: Any) -> Any:
    return verax.grad(nested)(x).sum()


PROGRAMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "custom vjp": (verax.grad(summed_doubled), V),
    "vmap of a custom vjp": (verax.vmap(verax.grad(doubled)), V),
    "custom jvp": (verax.grad(summed_rounded), V),
    "nested calls": (verax.vmap(verax.grad(nested)), np.stack([V, V])),
    "blocks": (verax.grad(blocks), np.ones(2000, np.float32)),
    "while": (lambda x: verax.jvp(while_loop, (x,), (x,)), V),
    "while of a batch": (verax.vmap(while_loop), np.stack([V, V])),
    "cond": (verax.grad(choice), V),
    "cond of a batch": (verax.vmap(verax.grad(choice)), np.stack([V, -V])),
    "switch": (verax.vmap(verax.grad(switched)), np.stack([V, V])),
    "associative scan": (verax.grad(running_product), V),
    "linear algebra": (verax.grad(algebra), M),
    "conjugate gradients": (
        lambda m: verax.scipy.sparse.linalg.cg(lambda v: m @ v, vnp.ones(4))[0],
        M,
    ),
    "fft": (verax.grad(spectrum), V),
    "conv": (verax.grad(convolved), np.ones((2, 1, 3, 3), np.float32)),
    "random": (drawn, random.key(0)),
    "hessian": (verax.hessian(waves), V),
    "jacobian": (verax.jit(verax.jacrev(weighted)), V),
    "second derivative": (verax.grad(slopes), V),
    "linearize": (lambda x: verax.linearize(nested, x)[1](x), V),
    "two pullbacks": (pulled_twice, V),
    "linear transpose": (lambda x: verax.linear_transpose(lambda y: y * 3.0, x)(x), V),
    "checkpoint": (verax.grad(verax.checkpoint(nested)), V),
    "gradient in a loop": (descent, V),
    "several": (several, V),
    "rewrite rules": (rewritten, V),
    "indexing": (verax.grad(indexed), V),
    "attention": (verax.grad(attention), np.ones((1, 4, 2, 8), np.float32)),
}


FILLING = ("broadcast_in_dim", "stablehlo.constant")
"""What may come from no equation: zeros for what one branch keeps and another lacks."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_row_leads_back_to_a_line(name: str) -> None:
    fun, arg = PROGRAMS[name]
    stages = explore(fun, compile=False)(arg).content.stages
    known: list[bool] = []
    for number, stage in enumerate(stages):
        equations = [row for row in stage.rows if row.kind == EQUATION]
        assert equations
        for row in equations:
            assert row.op
            derived = row.source.origin or stage.kind == "stablehlo"
            assert row.origins or not derived, (stage.name, row)
        if not number:
            assert {row.source.file for row in equations} == {__file__}
        before = known
        known = [
            row.kind == EQUATION
            and (
                any([before[i] for i in row.origins])
                if row.origins
                else row.source.file == __file__ or row.op in FILLING
            )
            for row in stage.rows
        ]
        assert all([known[i] for i, r in enumerate(stage.rows) if r.kind == EQUATION])


SMALL = Pool(composable(ROWS, "batch", "lower"))


@pytest.mark.parametrize("seed", range(8))
def test_programs_of_all_primitives(seed: int) -> None:
    case = seed_case(SMALL, seed)
    jaxpr = case.jaxpr
    batched, _ = ENGINE.batch(jaxpr, 3, (0,) * len(jaxpr.invars))
    for program in (jaxpr, batched):
        actual = explore(hoist(program), compile=False)().content.stages
        names = [row.op for row in actual[0].rows if row.kind == EQUATION]
        assert len(names) >= len(program.eqns)
        for before, stage in pairwise(actual):
            for row in stage.rows:
                if row.kind == EQUATION and row.op not in FILLING:
                    assert row.origins, (stage.name, row)
            size = len(before.rows)
            assert all([i < size for row in stage.rows for i in row.origins])


def test_products_in_loops_lead_to_their_lines() -> None:
    def step(h: Any, x: Any) -> tuple[Any, Any]:
        h = vnp.tanh(M @ h + M @ x)
        return h, h

    def run(xs: Any) -> Any:
        return lax.scan(step, xs[0], xs)[1].sum()

    stages = explore(verax.grad(run))(np.stack([V] * 7)).content.stages
    dots = [row for row in stages[-1].rows if row.op == "dot"]
    assert len(dots) == 3
    for row in dots:
        (origin,) = row.origins
        assert stages[-2].rows[origin].op == "stablehlo.dot_general"
        assert "M @ h + M @ x" in linecache.getline(__file__, row.source.line)
    assert len({row.origins[0] for row in dots}) == 3
