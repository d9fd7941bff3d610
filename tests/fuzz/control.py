"""Control flow and transformations in generated programs, as source text.

One idea: each kind takes functions of a vector, drawn from the seed, and writes
statements that make something else of `x` with them::

    DEEP[0](writer, Place("x", (), 2))
"""

from typing import Final

from tests.fuzz.writer import Kind, Place, Writer


def alone(place: Place, forward: bool | None = None) -> Place:
    """A place whose functions do not read the vector."""
    return place._replace(x="", forward=place.forward if forward is None else forward)


def still(place: Place) -> Place:
    """A place whose functions read nothing that moves, and have derivatives forward."""
    return Place("", (), place.depth, True)


def scan(w: Writer, place: Place) -> str:
    t, x = w.name("t"), place.x
    text, f = w.function(place, t)
    count, more = w.random.randint(1, 3), w.pick("", ", reverse=True", ", unroll=2")
    return (
        f"{text}\n{x}, _ = lax.scan(lambda c, t: ({f}(c, t) * t, c), {x}, "
        f"jnp.linspace(0.5, 1.0, {count}){more})"
    )


def scan_of_trees(w: Writer, place: Place) -> str:
    x, n, ys = place.x, w.name("n"), w.name("ys")
    text, f = w.function(place, n)
    return (
        f"{text}\n"
        f"({x}, _), {ys} = lax.scan(\n"
        f"    lambda c, t: (({f}(*c), c[1] + t['n']), {{'y': c[0] * t['n']}}),\n"
        f"    ({x}, 1.0), {{'n': jnp.linspace(0.25, 1.0, 2)}}\n)\n"
        f"{x} = {x} + {ys}['y'].sum(0)"
    )


def fori(w: Writer, place: Place) -> str:
    text, f = w.function(place)
    count, x = w.random.randint(1, 3), place.x
    return f"{text}\n{x} = lax.fori_loop(0, {count}, lambda i, c: {f}(c) + i, {x})"


def fori_of_tracers(w: Writer, place: Place) -> str:
    """What moves may not reach the loop: it has no derivative in reverse."""
    text, f = w.function(still(place))
    x, y, n = place.x, w.name("y"), w.name("n")
    return (
        f"{text}\n"
        f"{n} = jnp.clip(jnp.sum(lax.stop_gradient({x})), 0, 3).astype(int)\n"
        f"{y} = lax.fori_loop(0, {n}, lambda i, c: {f}(c) + i, lax.stop_gradient({x}))"
        f"\n{x} = {x} * {w.number()} + jnp.tanh({y})"
    )


def while_loop(w: Writer, place: Place) -> str:
    """As `fori_of_tracers`."""
    text, f = w.function(still(place))
    x, y = place.x, w.name("y")
    return (
        f"{text}\n_, {y} = lax.while_loop(lambda c: c[0] < 3, "
        f"lambda c: (c[0] + 1, {f}(c[1])), (0, lax.stop_gradient({x})))\n"
        f"{x} = {x} * {w.number()} + jnp.tanh({y})"
    )


def cond(w: Writer, place: Place) -> str:
    one, f = w.function(alone(place))
    two, g = w.function(place)
    x = place.x
    test = f"jnp.sum({x}) > {w.number()}"
    return f"{one}\n{two}\n{x} = lax.cond({test}, {f}, {g}, {x})"


def switch(w: Writer, place: Place) -> str:
    one, f = w.function(alone(place))
    two, g = w.function(alone(place))
    x = place.x
    index = f"jnp.clip(jnp.sum({x}), 0, 2).astype(int)"
    return f"{one}\n{two}\n{x} = lax.switch({index}, [{f}, {g}, jnp.sin], {x})"


def associative_scan(w: Writer, place: Place) -> str:
    text, f = w.function(alone(place))
    x, more = place.x, w.pick("", ", reverse=True")
    return (
        f"{text}\n{x} = lax.associative_scan("
        f"lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), "
        f"(jnp.tanh({x}), {f}({x})){more})[1]"
    )


def mapped_loop(w: Writer, place: Place) -> str:
    text, f = w.function(place)
    x = place.x
    size = w.pick("", ", batch_size=2")
    rows = f"jnp.stack([{x}, {x} * {w.number()}, {x} + 1])"
    return f"{text}\n{x} = lax.map({f}, {rows}{size}).mean(0)"


def checkpoint(w: Writer, place: Place) -> str:
    text, f = w.function(place)
    x = place.x
    policy = w.pick(
        *("", ", policy=jax.checkpoint_policies.everything_saveable"),
        ", policy=jax.checkpoint_policies.nothing_saveable",
        ", policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable",
        ", prevent_cse=False",
    )
    return f"{text}\n{x} = jax.checkpoint({f}{policy})({x})"


def checkpoint_of_names(w: Writer, place: Place) -> str:
    text, f = w.function(place)
    one, two, x = w.name("n"), w.name("n"), place.x
    policy = w.pick(
        f"save_only_these_names('{one}')",
        f"save_anything_except_these_names('{one}')",
        f"save_any_names_but_these('{two}')",
    )
    return (
        f"{text}\n{x} = jax.checkpoint(\n"
        f"    lambda z: jnp.sin(checkpoint_name({f}(checkpoint_name(z * {w.number()}, "
        f"'{one}')), '{two}')),\n"
        f"    policy=jax.checkpoint_policies.{policy},\n)({x})"
    )


def jitted(w: Writer, place: Place) -> str:
    text, f = w.function(place)
    x = place.x
    inner = w.pick(f, f"jax.jit({f}, inline=True)", f"lambda z: jax.jit({f})(z * 0.5)")
    return f"{text}\n{x} = jax.jit({inner})({x})"


def mapped(w: Writer, place: Place) -> str:
    text, f = w.function(place)
    x = place.x
    rows = f"jnp.stack([{x}, {x} * {w.number()}])"
    axes = w.pick("", ", out_axes=1", ", axis_name='rows'")
    total = ".sum(1)" if "out" in axes else ".sum(0)"
    return f"{text}\n{x} = jax.vmap({f}{axes})({rows}){total} / 2"


def mapped_in_part(w: Writer, place: Place) -> str:
    t, x = w.name("t"), place.x
    text, f = w.function(place, t)
    axes = w.pick("(None, 0)", "(0, None)", "(1, 0)")
    rows = f"jnp.stack([{x}, {x} * {w.number()}])"
    if axes == "(None, 0)":
        given = f"{x}, jnp.arange(2.0)"
    elif axes == "(0, None)":
        given = f"{rows}, {w.number()}"
    else:
        given = f"{rows}.T, jnp.arange(2.0)"
    return f"{text}\n{x} = jax.vmap({f}, in_axes={axes})({given}).mean(0)"


def gradient(w: Writer, place: Place) -> str:
    text, f = w.function(place)
    x = place.x
    slope = w.pick(
        f"jax.grad(lambda z: jnp.sum({f}(z)))({x})",
        f"jax.vjp({f}, {x})[1](jnp.ones(3))[0]",
        f"jax.jit(jax.grad(lambda z: jnp.sum({f}(z))))({x})",
        f"jax.jacrev({f})({x}).sum(0)",
        f"jax.value_and_grad(lambda z: (jnp.sum({f}(z)), z), has_aux=True)({x})[1]",
    )
    return f"{text}\n{x} = {x} + jnp.tanh({slope})"


def tangent(w: Writer, place: Place) -> str:
    text, f = w.function(place._replace(forward=True))
    x = place.x
    moved = w.pick(
        f"jax.jvp({f}, ({x},), (jnp.ones(3),))[1]",
        f"jax.linearize({f}, {x})[1](jnp.ones(3))",
        f"jax.jacfwd({f})({x}).sum(1)",
        f"jax.jit(lambda z: jax.jvp({f}, (z,), (z,))[1])({x})",
    )
    return f"{text}\n{x} = jnp.tanh({moved}) + {x}"


def reference(w: Writer, place: Place) -> str:
    """A reference that a loop writes; the function itself does not read it."""
    text, f = w.function(place)
    r, x, n = w.name("r"), place.x, w.random.randint(1, 3)
    body = w.pick(
        f"for _ in range({n}):\n    {r}[...] = {f}({r}[...])",
        f"lax.fori_loop(0, {n}, lambda i, c: ({r}.set({f}({r}[...])), c)[1], 0)",
        f"lax.scan(lambda c, t: (c, {r}.addupdate({f}({r}[...]) * t)), 0., "
        f"jnp.linspace(0.5, 1.0, {n}))",
        f"jax.jit(lambda s: s.set({f}(s[...])))({r})",
    )
    end = w.pick(f"{r}[...]", f"jax.freeze({r})", f"{r}[::-1]")
    return f"{text}\n{r} = jax.new_ref({x})\n{body}\n{x} = {end}"


DEEP: Final[tuple[Kind, ...]] = (
    *(scan, scan_of_trees, fori, fori_of_tracers, while_loop, cond, switch),
    *(associative_scan, mapped_loop, checkpoint, checkpoint_of_names, jitted),
    *(mapped, mapped_in_part, gradient, tangent, reference),
)
