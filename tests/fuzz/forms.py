"""Functions with rules of the user's own, as source text.

One idea: a form makes a function `{g}` of a vector from a number `{s}`, what the number
was made into, `{k}`, and an array around it, `{a}`; where `{s}` is read, and when, is
for who writes the program::

    FORMS["jvp"].text.format(g="g", s="s", k="k", a="a")

Derivatives are often not those of the function, so that a rule that is not used, or
that reads another number, is seen.
"""

from types import MappingProxyType
from typing import Final, NamedTuple

PRELUDE: Final = """\
class Box:
    def __init__(self, s=0.0):
        self.s = s

    def times(self, z):
        return z * self.s


def is_zero(t):
    return isinstance(t, jax.custom_derivatives.SymbolicZero)


def dense(t):
    return jnp.zeros(t.shape, t.dtype) if is_zero(t) else t


"""


class Form(NamedTuple):
    """How a function with rules is made.

    `forward` ones have derivatives forward; `late` ones read objects that change when
    their rules are traced, as docs/differences.md says; `bound` ones read their numbers
    where they are made.
    """

    text: str
    forward: bool = False
    late: bool = False
    bound: bool = False


FORMS: Final = MappingProxyType(
    {
        "jvp": Form(
            """\
{g} = jax.custom_jvp(lambda z: jnp.sin(z * {s}))
{g}.defjvp(lambda p, t: (jnp.sin(p[0] * {s}), t[0] * jnp.cos(p[0] * {s}) * {k}))""",
            forward=True,
        ),
        "jvps": Form(
            """\
{g} = jax.custom_jvp(lambda z: jnp.sin(z * {s}))
{g}.defjvps(lambda t, out, z: t * out * {k} + {s} * t)""",
            forward=True,
        ),
        "jvps of several": Form(
            """\
{g}_2 = jax.custom_jvp(lambda z, y, n: jnp.sin(z * {s}) * y + n)
{g}_2.defjvps(
    lambda t, out, z, y, n: t * out * {k}, None, lambda t, out, z, y, n: t * {s}
)
{g} = lambda z: {g}_2(z, z * {k}, {a})""",
            forward=True,
        ),
        "jvp with symbolic zeros": Form(
            """\
{g}_2 = jax.custom_jvp(lambda z, y: jnp.sin(z * {s}) * y)
{g}_2.defjvp(
    lambda p, t: (
        {g}_2(*p),
        dense(t[0]) * jnp.cos(p[0]) * {k} + (0 if is_zero(t[1]) else t[1] * {s}),
    ),
    symbolic_zeros=True,
)
{g} = lambda z: {g}_2(z, {a})""",
            forward=True,
            late=True,
        ),
        "jvp with held arguments": Form(
            """\
{g}_2 = jax.custom_jvp(lambda h, z, n: jnp.tanh(h(z)) * n, nondiff_argnums=(0, 2))
{g}_2.defjvp(
    lambda h, n, p, t: ({g}_2(h, p[0], n), t[0] * {k} * jnp.cos(h(p[0])) * n)
)
{g} = lambda z: {g}_2(lambda y: y * {s}, z, {s})""",
            forward=True,
        ),
        "jvp over an array": Form(
            """\
{g} = jax.custom_jvp(lambda z: jnp.sin(z * {s}) * {a})
{g}.defjvp(lambda p, t: ({g}(p[0]), t[0] * jnp.cos(p[0] * {a}) * {k}))""",
            forward=True,
        ),
        "jvp of jits": Form(
            """\
{g} = jax.custom_jvp(jax.jit(lambda z: jnp.sin(z * {s})))
{g}.defjvp(jax.jit(lambda p, t: (jnp.sin(p[0] * {s}), t[0] * jnp.cos(p[0]) * {k})))""",
            forward=True,
            bound=True,
        ),
        "jvp of partials": Form(
            """\
{g} = jax.custom_jvp(partial(lambda s, z: jnp.sin(z * s), {s}))
{g}.defjvp(
    partial(lambda k, p, t, s: (jnp.sin(p[0] * s), t[0] * k), {k}, s={s})
)""",
            forward=True,
            bound=True,
        ),
        "jvp of a method": Form(
            """\
class {g}_2:
    def __init__(self, s, k):
        self.s, self.k = s, k

    @partial(jax.custom_jvp, nondiff_argnums=(0,))
    def f(self, z):
        return jnp.sin(z * self.s)

    @f.defjvp
    def rule(self, p, t):
        return self.f(p[0]), t[0] * jnp.cos(p[0] * self.s) * self.k
{g} = {g}_2({s}, {k}).f""",
            forward=True,
            bound=True,
        ),
        "jvp with a branch": Form(
            """\
{g} = jax.custom_jvp(lambda z: z * {s})
{g}.defjvp(
    lambda p, t: (
        {g}(p[0]),
        lax.cond(jnp.sum(p[0]) > {s}, lambda y: y * {k}, lambda y: y * {s}, t[0]),
    )
)""",
            forward=True,
        ),
        "vmap": Form(
            """\
{g} = jax.custom_batching.custom_vmap(lambda z: jnp.sin(z * {s}) * {k})
{g}.def_vmap(lambda size, batched, z: (jnp.sin(z * {s}) * {k}, batched[0]))""",
            forward=True,
            late=True,
        ),
        "vmap inside jvp": Form(
            """\
{g}_2 = jax.custom_batching.custom_vmap(lambda z, n: jnp.sin(z * {s}) * n)
{g}_2.def_vmap(lambda size, batched, z, n: (jnp.sin(z * {s}) * n, True))
{g} = jax.custom_jvp(lambda z: {g}_2(z, {k}))
{g}.defjvp(lambda p, t: ({g}_2(p[0], {k}), {g}_2(p[0], {s}) * t[0] * {k}))""",
            forward=True,
            late=True,
        ),
        "vmap inside vjp": Form(
            """\
{g}_2 = jax.custom_batching.custom_vmap(lambda z: jnp.tanh(z * {s}))
{g}_2.def_vmap(lambda size, batched, z: (jnp.tanh(z * {s}), batched[0]))
{g} = jax.custom_vjp({g}_2)
{g}.defvjp(
    lambda z: ({g}_2(z), z), lambda r, ct: (ct * {k} * {g}_2(r),)
)""",
            late=True,
        ),
        "sequential vmap": Form(
            """\
{g}_2 = jax.custom_batching.sequential_vmap(lambda z: jnp.tanh(z * {s}) * {k})
{g} = jax.custom_jvp({g}_2)
{g}.defjvp(lambda p, t: ({g}_2(p[0]), t[0] * {k}))""",
            forward=True,
            late=True,
        ),
        "vjp": Form(
            """\
{g} = jax.custom_vjp(lambda z: jnp.tanh(z * {s}) * {k})
{g}.defvjp(
    lambda z: (jnp.tanh(z * {s}) * {k}, z), lambda r, ct: (ct * {k} * jnp.cos(r * {s}),)
)"""
        ),
        "vjp with symbolic zeros": Form(
            """\
{g}_2 = jax.custom_vjp(lambda z, y: (jnp.tanh(z * {s}) * y, z * {k}))
{g}_2.defvjp(
    lambda z, y: ({g}_2(z.value, y.value), (z.value, y.value)),
    lambda r, ct: (dense(ct[0]) * {k} * jnp.cos(r[0] * {s}), r[1] * dense(ct[1])),
    symbolic_zeros=True,
)
{g} = lambda z: {g}_2(z, {a} * z)[0]""",
            late=True,
        ),
        "vjp with held arguments": Form(
            """\
{g}_2 = jax.custom_vjp(lambda h, z, n: jnp.tanh(h(z)) * n, nondiff_argnums=(0, 2))
{g}_2.defvjp(
    lambda h, z, n: ({g}_2(h, z, n), z),
    lambda h, n, r, ct: (ct * {k} * jnp.cos(h(r)) * n,),
)
{g} = lambda z: {g}_2(lambda y: y * {s}, z, {s})"""
        ),
        "vjp over an array": Form(
            """\
{g} = jax.custom_vjp(lambda z: jnp.sin(z * {s}) * {a})
{g}.defvjp(
    lambda z: (jnp.sin(z * {s}) * {a}, (z * {k},)),
    lambda r, ct: (ct * jnp.cos(r[0] * {a}) * {s},),
)"""
        ),
        "vjp of trees": Form(
            """\
{g}_2 = jax.custom_vjp(lambda d: (jnp.sin(d["z"]) * {s}, d["n"] * {k}))
{g}_2.defvjp(
    lambda d: ({g}_2(d), d["z"]),
    lambda z, ct: ({{"z": ct[0] * jnp.cos(z) * {k}, "n": None}},),
)
{g} = lambda z: sum({g}_2({{"z": z, "n": z * 0.5}}))"""
        ),
        "vjp with loops and branches": Form(
            """\
{g} = jax.custom_vjp(
    lambda z: lax.fori_loop(0, 2, lambda i, c: jnp.sin(c * {s}) + i, z)
)
{g}.defvjp(
    lambda z: lax.scan(lambda c, _: (jnp.sin(c * {s}) + _, c), z, jnp.arange(2.0)),
    lambda r, ct: (
        lax.cond(jnp.sum(r) > {k}, lambda y: y * {s}, lambda y: y * {k}, ct),
    ),
)"""
        ),
        "vjp around jvp": Form(
            """\
{g}_2 = jax.custom_jvp(lambda z: z * {s})
{g}_2.defjvp(lambda p, t: (p[0] * {s}, t[0] * {k}))
{g} = jax.custom_vjp(lambda z: {g}_2(z))
{g}.defvjp(
    lambda z: jax.vjp({g}_2, z),
    lambda pull, ct: (pull(ct * {s})[0] * {k},),
)"""
        ),
        "custom_gradient": Form(
            """\
{g} = jax.custom_gradient(
    lambda z: (jnp.sin(z) * {s}, lambda ct: ct * {k} * jnp.cos(z))
)"""
        ),
        "closure_convert": Form(
            """\
{g}_2 = jax.custom_vjp(lambda h, z, *c: h(z, *c), nondiff_argnums=(0,))
{g}_2.defvjp(
    lambda h, z, *c: (h(z, *c), (z, c)),
    lambda h, r, ct: (ct * {k} * jnp.cos(r[0]), *[jnp.zeros_like(c) for c in r[1]]),
)
{g}_3 = lambda z: jnp.sin(z * {s}) * {a}
{g} = lambda z: (lambda h, c: {g}_2(h, z, *c))(*jax.closure_convert({g}_3, z))"""
        ),
        "linear_call": Form(
            """\
{g} = lambda z: jax.custom_derivatives.linear_call(
    lambda r, y: y * r * {s}, lambda r, ct: ct * r * {k}, {k}, z
)"""
        ),
        "linear solve": Form(
            """\
{g} = lambda z: lax.custom_linear_solve(
    lambda y: y / {s},
    z,
    solve=lambda _, b: b * {s},
    transpose_solve=lambda _, b: b * {k},
)""",
            forward=True,
        ),
        "root": Form(
            """\
{g} = lambda z: lax.custom_root(
    lambda y: y - jnp.sin(z * {s}),
    z,
    lambda f, y: y - f(y),
    lambda h, y: y * {k},
)""",
            forward=True,
        ),
        "checkpointed function": Form(
            """\
{g} = jax.checkpoint(lambda z: jnp.sin(jnp.sin(z * {s}) * {k}))""",
            forward=True,
        ),
    }
)
