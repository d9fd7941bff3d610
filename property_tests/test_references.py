"""Programs with references mean what Python does with mutable arrays.

One idea: a program is a tree of statements; NumPy runs it on arrays that it changes,
verax on references, at once, compiled, discharged, and by the evaluator with mutable
cells. All of them leave the same numbers behind.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import NIGHTLY, by_turns
from verax import lax
from verax.ir.forms.parser import parse_closed
from verax.ir.jaxpr import Jaxpr
from verax.ir.walk import close as close_program, hoist
from verax.rules.rows.references import Cell
from verax.transforms.engine.engine import STANDARD

SIZE, COUNT = 3, 3
DEEP = ("scan", "cond", "while", "jit", "own", "check")
"""Statements with blocks inside."""
REVERSE = ("scan", "cond", "jit", "own", "check")
"""Those with a reverse mode: of these, loops have a number of steps that is known."""
RULES = ("jvp", "vjp", "vmap")
"""Calls of functions with rules of the user's own."""
type Block = list[tuple[Any, ...]]


def drawn(random: Random, depth: int, kinds: Sequence[str] = DEEP) -> Block:
    """Some statements; those with blocks inside get rarer with the depth."""
    return [statement(random, depth, kinds) for _ in range(random.randrange(1, 4))]


def statement(random: Random, depth: int, kinds: Sequence[str]) -> tuple[Any, ...]:
    flat = ["set", "add", "part", "all"]
    deep = kinds if depth else []
    kind = random.choice([*flat, *deep, *deep])
    i, j = random.randrange(COUNT), random.randrange(COUNT)
    if kind in flat:
        return kind, i, j, random.randrange(SIZE), random.randrange(SIZE)
    blocks = [drawn(random, depth - 1, kinds) for _ in range(2)]
    return kind, i, j, random.randrange(4), random.random() < 0.5, blocks


def on_arrays(block: Block, refs: list[Any], x: Any) -> Any:
    """What a block does to NumPy's arrays, and the value that it leaves."""
    for kind, i, j, *rest in block:
        if kind == "set":
            refs[i][rest[0]] = np.float32(0.5) * refs[j][rest[1]] + x
        elif kind == "add":
            np.add.at(refs[i], [rest[0], rest[1]], np.float32(0.25) * x)
        elif kind == "part":
            refs[i][1:] = refs[j][:-1].copy()
        elif kind == "all":
            refs[i][...] = refs[j] - np.float32(0.125) * x
        else:
            x = structured_on_arrays((kind, i, j, *rest), refs, x)
    return np.float32(x)


def structured_on_arrays(statement: tuple[Any, ...], refs: Any, x: Any) -> Any:
    """A statement with blocks inside."""
    kind, i, j, n, flag, blocks = statement
    first, second = blocks
    if kind == "scan":
        for k in reversed(range(n)) if flag else range(n):
            x = on_arrays(first, refs, x + np.float32(k))
            x = np.float32(0.5) * x
        return x
    if kind == "cond":
        return on_arrays(first if refs[i][0] > refs[j][0] else second, refs, x)
    if kind == "while":
        steps = 0
        while steps < n and refs[i][0] < 50:
            x, steps = on_arrays(first, refs, x), steps + 1
        return x
    if kind == "own":
        own = [refs[i].copy(), *refs[1:]]
        x = on_arrays(first, own, x)
        return np.float32(x + own[0][0])
    return on_arrays(first, refs, x)


def on_references(block: Block, refs: list[Any], x: Any) -> Any:
    """The same on references."""
    for kind, i, j, *rest in block:
        if kind == "set":
            refs[i][rest[0]] = 0.5 * refs[j][rest[1]] + x
        elif kind == "add":
            refs[i].addupdate(0.25 * x, np.array([rest[0], rest[1]]))
        elif kind == "part":
            refs[i].at[1:][...] = refs[j][:-1]
        elif kind == "all":
            refs[i].swap(refs[j][...] - 0.125 * x)
        else:
            x = structured_on_references((kind, i, j, *rest), refs, x)
    return x


def structured_on_references(statement: tuple[Any, ...], refs: Any, x: Any) -> Any:
    """A statement with blocks inside."""
    kind, i, j, n, flag, blocks = statement
    first, second = blocks

    def step(c: Any, k: Any) -> tuple[Any, None]:
        return 0.5 * on_references(first, refs, c + k), None

    def advance(carry: Any) -> Any:
        value, steps = carry
        return on_references(first, refs, value), steps + 1

    if kind == "scan":
        return lax.scan(step, x, vnp.arange(n, dtype="float32"), reverse=flag)[0]
    if kind == "cond":
        return lax.cond(
            refs[i][0] > refs[j][0],
            lambda y: on_references(first, refs, y),
            lambda y: on_references(second, refs, y),
            x,
        )
    if kind == "while":
        return lax.while_loop(
            lambda c: (c[1] < n) & (refs[i][0] < 50), advance, (x, 0)
        )[0]
    if kind in RULED:
        return RULED[kind](lambda rs, y: on_references(first, rs, y), refs, x)
    if kind == "own":
        own = [verax.new_ref(refs[i][...]), *refs[1:]]
        return on_references(first, own, x) + verax.freeze(own[0])[0]
    call = verax.checkpoint if kind == "check" else verax.jit
    if flag:  # references as arguments
        return call(lambda rs, y: on_references(first, rs, y))(refs, x)
    return call(lambda y: on_references(first, refs, y))(x)


def with_jvp(f: Any, refs: Any, x: Any) -> Any:
    """A call of `f` with a forward-mode rule that says 3, whatever is true."""
    g = verax.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (g(*primals), 3 * tangents[1]))
    return g(refs, x)


def with_vjp(f: Any, refs: Any, x: Any) -> Any:
    """The same with reverse-mode rules."""
    g = verax.custom_vjp(f)
    g.defvjp(lambda rs, y: (g(rs, y), None), lambda _, ct: (None, 3 * ct))
    return g(refs, x)


def with_vmap(f: Any, refs: Any, x: Any) -> Any:
    """A call of `f` with a batching rule."""
    g = verax.custom_batching.custom_vmap(f)

    @g.def_vmap
    def rule(size: int, batched: Any, rs: Any, y: Any) -> tuple[Any, bool]:
        axes = verax.tree.map(lambda flag: 0 if flag else None, tuple(batched))
        return verax.vmap(f, in_axes=axes, axis_size=size)(rs, y), True

    return g(refs, x)


def spelled(f: Any, refs: Any, x: Any) -> Any:
    """What the rules above say: references keep their derivatives, 3 for the value."""

    def constant(new: Any, old: Any, slope: float) -> Any:
        return lax.stop_gradient(new) + slope * (old - lax.stop_gradient(old))

    own = [verax.new_ref(lax.stop_gradient(ref[...])) for ref in refs]
    y = f(own, lax.stop_gradient(x))
    for ref, new in zip(refs, own, strict=True):
        ref[...] = constant(verax.freeze(new), ref[...], 1.0)
    return constant(y, x, 3.0)


RULED = {"jvp": with_jvp, "vjp": with_vjp, "vmap": with_vmap, "spelled": spelled}


def start(random: Random) -> list[np.ndarray]:
    return [
        np.array([random.uniform(-2, 2) for _ in range(SIZE)], np.float32)
        for _ in range(COUNT)
    ]


def program_of(block: Block) -> Jaxpr:
    refs = [verax.new_ref(vnp.zeros(SIZE)) for _ in range(COUNT)]
    closed = verax.make_jaxpr(lambda rs, x: on_references(block, rs, x))(
        refs, vnp.float32(0)
    )
    return close_program(closed)


def close(result: Any, expected: Any) -> None:
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("seed", by_turns(range(24), 2, NIGHTLY))
def test_programs_do_what_numpy_does_to_arrays(seed: int) -> None:
    random = Random(seed)
    block = drawn(random, 2, (*DEEP, *(RULES if seed % 3 == 0 else ())))
    arrays, x = start(random), np.float32(0.75)
    expected = [a.copy() for a in arrays]
    result = on_arrays(block, expected, x)

    def run(rs: list[Any], x: Any) -> Any:
        return on_references(block, rs, x)

    for change in (lambda f: f, verax.jit):
        refs = [verax.new_ref(a) for a in arrays]
        close(change(run)(refs, vnp.float32(x)), result)
        for ref, due in zip(refs, expected, strict=True):
            close(ref[...], due)
    jaxpr = program_of(block)
    verax.transforms.check(jaxpr)
    free = hoist(jaxpr)
    if seed % 3:  # rules of the user's own are values, which no text holds
        assert parse_closed(str(free), consts=free.consts).jaxpr == free.jaxpr
    cells = [Cell(a.copy()) for a in arrays]
    args: list[Any] = [*cells, x]
    (actual,) = STANDARD.evaluate(jaxpr, args)
    close(actual, result)
    pure = close_program(verax.ref.discharge(jaxpr))
    verax.transforms.check(pure)
    assert not pure.effects
    outs = STANDARD.evaluate(pure, [*arrays, np.asarray(x)])
    for got, cell, due in zip(outs[1:], cells, expected, strict=True):
        close(cell.value, due)
        close(got, due)


@pytest.mark.parametrize("seed", by_turns(range(24, 40), 2, NIGHTLY))
def test_transformations_commute_with_discharge(seed: int) -> None:
    random = Random(seed)
    block = drawn(random, 2)
    arrays, x = start(random), vnp.float32(0.5)
    pure = verax.ref.discharge(program_of(block))

    def discharged(arrays: Any, x: Any) -> Any:
        return verax.core.eval_jaxpr(pure, (), *arrays, x)

    def whole(arrays: Any, x: Any) -> Any:
        refs = [verax.new_ref(a) for a in arrays]
        out = on_references(block, refs, x)
        return [out, *[verax.freeze(r) for r in refs]]

    def total(f: Any) -> Any:
        # A loop whose number of steps is not known has no reverse mode.
        return lambda arrays, x: verax.jvp(f, (arrays, x), (arrays, x))

    for change in (total, verax.jit, lambda f: verax.vmap(f, in_axes=(None, 0))):
        arg = vnp.arange(3.0) if change not in (total, verax.jit) else x
        actual, due = change(whole)(arrays, arg), change(discharged)(arrays, arg)
        verax.tree.map(close, list(actual), list(due))


@pytest.mark.parametrize("seed", by_turns(range(40, 58), 2, NIGHTLY))
def test_vmap_of_references_is_a_loop(seed: int) -> None:
    random = Random(seed)
    block = drawn(random, 2, DEEP if seed < 52 else (*RULES, *DEEP[:2]))
    lanes = [start(random) for _ in range(3)]
    axes = [random.randrange(2) for _ in range(COUNT)]
    xs = np.arange(3, dtype=np.float32)
    refs = [
        verax.new_ref(np.stack([lane[k] for lane in lanes], axes[k]))
        for k in range(COUNT)
    ]
    outs = verax.vmap(lambda rs, x: on_references(block, rs, x), in_axes=(axes, 0))(
        refs, vnp.asarray(xs)
    )
    for n, lane in enumerate(lanes):
        close(outs[n], on_arrays(block, lane, xs[n]))
        for k in range(COUNT):
            close(vnp.moveaxis(refs[k][...], axes[k], 0)[n], lane[k])


def final(block: Block) -> Any:
    """A block as a function of what references hold before, to all that it leaves."""

    def run(arrays: Any, x: Any) -> Any:
        refs = [verax.new_ref(a) for a in arrays]
        out = on_references(block, refs, x)
        return [out, *[verax.freeze(ref) for ref in refs]]

    return run


def inner(xs: Any, ys: Any) -> float:
    """The inner product of two lists of arrays."""
    return sum([float(np.vdot(x, y)) for x, y in zip(xs, ys, strict=True)])


@pytest.mark.parametrize("seed", by_turns(range(60, 74), 2, NIGHTLY))
def test_reverse_mode_is_the_transpose_of_forward_mode(seed: int) -> None:
    random = Random(seed)
    kinds = (*REVERSE, *("jvp", "vmap") * (seed % 2))
    run = final(drawn(random, 2, kinds))
    primals, tangents = (start(random), vnp.float32(0.5)), (start(random), 1.0)
    _, pushed = verax.jvp(run, primals, tangents)
    cotangents = [vnp.float32(0.25), *start(random)]
    due = inner(pushed, cotangents)
    pull = verax.vjp(run, *primals)[1]
    compiled = verax.jit(lambda p, c: verax.vjp(run, *p)[1](c))
    several = verax.vmap(lambda p, c: verax.vjp(run, *p)[1](c), in_axes=(None, 0))
    batch = verax.tree.map(lambda c: vnp.stack([c, 2 * c]), cotangents)
    for (arrays, x), by in (
        (pull(cotangents), 1),
        (compiled(primals, cotangents), 1),
        (verax.tree.map(lambda x: x[1], several(primals, batch)), 2),
    ):
        actual = inner(arrays, tangents[0]) + float(x)
        np.testing.assert_allclose(actual, by * due, rtol=2e-3, atol=2e-3)


def renamed(block: Block, rule: str) -> Block:
    """The block with other rules."""
    return [
        (
            rule if kind in RULES else kind,
            *rest[:-1],
            [renamed(b, rule) for b in rest[-1]],
        )
        if isinstance(rest[-1], list)
        else (kind, *rest)
        for kind, *rest in block
    ]


@pytest.mark.parametrize("seed", by_turns(range(84, 92), 2, NIGHTLY))
def test_rules_are_asked_and_references_keep_their_derivatives(seed: int) -> None:
    random = Random(seed)
    block = drawn(random, 2, ("jvp", "jvp", *REVERSE))
    primals = (start(random), vnp.float32(0.5))
    cotangents = [vnp.float32(0.25), *start(random)]
    due = verax.vjp(final(renamed(block, "spelled")), *primals)
    for rule in ("jvp", "vjp"):
        run = final(renamed(block, rule))
        several = verax.vmap(run, in_axes=(None, 0))(primals[0], vnp.arange(3.0))
        for n in range(3):
            one = run(primals[0], vnp.float32(n))
            verax.tree.map(lambda s, o, n=n: close(s[n], o), several, one)
        for change in (lambda f: f, verax.jit):
            actual, pull = verax.vjp(change(run), *primals)
            verax.tree.map(close, actual, due[0])
            verax.tree.map(close, pull(cotangents), due[1](cotangents))
