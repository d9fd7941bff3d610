"""Random nested programs as source text, which verax and jax run alike.

One idea: a program is a function of a vector, drawn from a seed: loops, choices, rules
of its own, derivatives and maps within each other, which read values around them::

    print(source(7, late=True).text)

Rules are made in Python loops. Where they are `late`, they read the loop's variables
from around them; otherwise a function that is called for each makes them.
"""

from textwrap import indent
from typing import Final, NamedTuple

from tests.fuzz.control import DEEP
from tests.fuzz.forms import FORMS, PRELUDE
from tests.fuzz.writer import Kind, Place, Writer

DEPTH: Final = 2
"""How deep control flow and transformations stand within each other."""
READS: Final = ("cell", "object", "list", "default", "shared object")
"""Where a rule finds the number of its loop; a shared object changes between calls."""
ARRAYS: Final = (
    "jnp.linspace(0.5, {n}, 3)",
    "np.linspace(0.5, {n}, 3, dtype=np.float32)",
    "lax.stop_gradient({x}) + {n}",
    "np.float32({n})",
    "{n}",
)
"""What else a rule may close over."""


class Program(NamedTuple):
    """The text of a function `f`, and the kinds of things in it."""

    text: str
    used: tuple[str, ...]


def step(w: Writer, place: Place) -> str:
    """Something without rules."""
    x, other = place.x, w.pick(*place.around, place.x)
    return w.pick(
        f"{x} = jnp.sin({x} * {w.number()}) + {w.number()} * {other}",
        f"{x} = jnp.tanh({x}) * {other} + {w.number()}",
        f"{x} = jnp.where({x} > {other}, {x} * {w.number()}, {other})",
        f"{x} = {x}[::-1] * {w.number()} - jnp.sum({other}) / 8",
        f"{x} = jnp.cos(jnp.outer({x}, {other} + {x})) @ {x} / 4",
    )


def rules(w: Writer, place: Place) -> str:
    """A loop that makes a function with rules for each number."""
    names = [n for n, form in FORMS.items() if form.forward or not place.forward]
    return rules_of(w, place, w.pick(*names), w.pick(*READS))


def rules_of(w: Writer, place: Place, name: str, read: str) -> str:
    """A loop that makes functions of a form, which read its numbers."""
    form = FORMS[name]
    if form.late and read not in ("cell", "default"):
        read = "cell"
    if form.bound and read == "shared object":
        read = "object"
    w.used |= {name: None, f"rules that read a {read}": None}
    x = place.x
    g, s, k, a = w.name("g"), w.name("s"), w.name("k"), w.name("a")
    number, holds = READERS[read]
    what, box = number.format(s=s), holds.format(s=s)
    array = w.pick(*ARRAYS).format(n=w.number(), x=x)
    made = form.text.format(g=g, s=what, k=k, a=a)
    numbers = ", ".join(w.number() for _ in range(w.random.randint(2, 3)))
    factor = f"{k} = {what} + {w.number()}"
    body = f"{factor}\n{made}"
    if read == "default":
        body = (
            f"def m{g}({s}={s}):\n{indent(body, '    ')}\n    return {g}\n{g} = m{g}()"
        )
    lines = [f"{a} = {array}"]
    if w.late:
        target = what if box else s
        lines += [box.replace(f"({s})", "()").replace(f"[{s}]", "[0]")] if box else []
        if read == "shared object":
            lines, body = [*lines, made], factor
        lines += [f"for {target} in ({numbers}):", indent(body, "    ")]
        return "\n".join([*lines, f"    {x} = {g}({x})"])
    make = f"make_{g}"
    whole = "\n".join(filter(None, [box, body, f"return {g}"]))
    lines += [f"def {make}({s}):", indent(whole, "    "), f"for {s} in ({numbers}):"]
    return "\n".join([*lines, f"    {x} = {make}({s})({x})"])


READERS: Final = {
    "cell": ("{s}", ""),
    "default": ("{s}", ""),
    "object": ("box_{s}.s", "box_{s} = Box({s})"),
    "shared object": ("box_{s}.s", "box_{s} = Box({s})"),
    "list": ("kept_{s}[0]", "kept_{s} = [{s}]"),
}
"""How a rule says where its number is, and what holds it."""
FLAT: Final[tuple[Kind, ...]] = (step, rules, rules)
KINDS: Final = (
    *[kind.__name__ for kind in DEEP],
    *[f"rules that read a {r}" for r in READS],
)
"""The names of what programs are made of, besides `FORMS`."""


def source(seed: int, late: bool) -> Program:
    """The program of a seed, as a function `f` of a vector of three."""
    writer = Writer(seed, late, FLAT, DEEP)
    return whole(writer, writer.block(Place("x", (), DEPTH)))


def flat_source(seed: int, late: bool) -> Program:
    """A program without control flow: steps, and functions with rules, in loops."""
    writer = Writer(seed, late, FLAT, ())
    place = Place("x", ("a",), 0)
    kinds = (rules, step, rules)
    return whole(writer, "\n".join([writer.use(kind, place) for kind in kinds]))


def whole(writer: Writer, body: str) -> Program:
    """A function around statements."""
    text = f"a = x * 0.5\n{body}\nreturn jnp.sum(x * a)\n"
    return Program(f"{PRELUDE}def f(x):\n{indent(text, '    ')}", tuple(writer.used))
