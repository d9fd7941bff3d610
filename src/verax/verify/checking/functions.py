"""Floor 6: a user's function as a subject: its program, its arguments, its own laws.

One idea: a Python function is traced once at the types of its example arguments and
once in double precision; the programs are held to every law of programs, and the
function itself to what only a function can break::

    subject = function_of(loss, (weights, batch), {})
    FUNCTION_LAWS(subject)          # eager, purity, vmap of f, vjp of f
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
from attrs import evolve, frozen
from hypothesis import strategies as st

from verax.api.autodiff.jvp_vjp import vjp
from verax.api.jit import jit
from verax.api.tracing.apply import as_typed_array
from verax.api.tracing.structs import ShapeDtypeStruct, struct_avals
from verax.api.tracing.trace import trace
from verax.api.tracing.wrapping import describe_arguments, function_name
from verax.api.trees.pytrees import broadcast_prefix
from verax.api.vmap import vmap
from verax.backend import pytrees
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.eager.interpreter import as_array
from verax.backend.programs.program import Program
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    ExtendedDType,
    NumpyDType,
    is_complex,
    is_inexact,
    numpy_dtype,
    real_dtype,
    stored_dtype,
)
from verax.ir.jaxpr import Jaxpr
from verax.ir.memos import Recent
from verax.ir.records import ReprMixin
from verax.ir.text.printer import print_jaxpr
from verax.ir.walk import used_consts
from verax.ops.core import CORE
from verax.rules.programs.derived import standard
from verax.rules.rows.leaks import leaked
from verax.rules.rows.row import REALS, Domain, NDArray
from verax.rules.values.array import Array
from verax.rules.values.conversions import check_callable
from verax.rules.values.memo import kept_with, memo
from verax.rules.values.state import Context, current_context
from verax.transforms.engine.engine import StandardEngine, literal_value
from verax.verify.cases.case import (
    Case,
    Skipped,
    array_text,
    broken,
    double_precision,
    holds_functions,
    import_lines,
)
from verax.verify.cases.tolerance import wide_aval
from verax.verify.checking.report import held
from verax.verify.laws import Law, compiled
from verax.verify.laws.agreement import Run, agree, has_types
from verax.verify.laws.derivatives import directions, filled, tangent_types
from verax.verify.laws.invariance import Runner
from verax.verify.strategies import SEEDS, Strategy, stack

NEAR = 8
"""Values are drawn within this many 64ths of the examples, up or down."""


@frozen(eq=False, repr=False)
class Function(ReprMixin):
    """A function, the types of its arguments, and values near which it makes sense.

    `examples` has None for a leaf of which only the type is known; `domains` has the
    interval that the user gave, or None.
    """

    fun: Callable[..., object]
    tree: PyTreeDef
    avals: tuple[ShapedArray, ...]
    examples: tuple[NDArray | None, ...]
    domains: tuple[Domain | None, ...]

    transient: ClassVar[bool] = True

    @cached_property
    def kept(self) -> dict[object, object]:
        """The results that memos keep with the function."""
        return {}

    @property
    def name(self) -> str:
        return function_name(self.fun)

    def traced(self, avals: Sequence[ShapedArray]) -> Jaxpr:
        """The program of the function at these types of its leaves."""
        describe = describe_arguments(self.fun, self.tree)
        out = trace(self.fun, self.tree, avals, "verify", describe=describe)
        if out.captured:
            raise leaked(out.captured[0])
        return out.jaxpr

    def jaxpr(self, wide: bool) -> Jaxpr:
        """The program at the given types, or in double precision."""
        return kept_with(self, program, current_context(), self, wide)

    def leaves(self, values: Sequence[NDArray]) -> list[Array]:
        """The leaves of a call as arrays of the right types, weakness included."""
        return [
            as_typed_array(x, aval) for x, aval in zip(values, self.avals, strict=True)
        ]

    def call(self, fun: Callable[..., object], leaves: Sequence[object]) -> list[Array]:
        """The output leaves of `fun` on argument leaves."""
        args, kwargs = self.tree.unflatten(list(leaves))
        return list(pytrees.flatten(fun(*args, **kwargs))[0])

    def snippet(self, law: str, case: Case) -> list[str]:
        """A program that tries a law of functions on the values of the case."""
        leaves = [Text(array_text(x)) for x in case.values]
        args, kwargs = self.tree.unflatten(leaves)
        name = self.name if self.name.isidentifier() else "f"
        return [
            "import ml_dtypes",
            "import numpy as np",
            "from numpy import inf, nan",
            "from verax import verify",
            *import_lines({name: self.fun}),
            f"report = verify.check_function({name}, *{args!r}, kwargs={kwargs!r},",
            f"    laws=[{law!r}], cases=1)",
            "report.raise_if_broken()",
        ]


@memo(64)
def program(context: Context, function: Function, wide: bool) -> Jaxpr:
    if not wide:
        return function.traced(function.avals)
    with double_precision():
        return function.traced([wide_aval(aval) for aval in function.avals])


@frozen
class Text:
    """A leaf of a printed argument: its repr is the Python text that makes it."""

    text: str

    def __repr__(self) -> str:
        return self.text


def function_of(
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    domains: object = None,
) -> Function:
    """The subject of a function and example arguments.

    Raises:
        TypeError: an argument is not an array, scalar, `ShapeDtypeStruct` or tree of
            them.
        ValueError: `domains` is not a prefix of the arguments.
    """
    check_callable("check_function", fun)
    leaves, tree = pytrees.flatten((tuple(args), dict(kwargs)))
    avals = tuple(struct_avals(leaves))
    given: list[Domain | None] = [None] * len(leaves)
    if domains is not None:
        positional = broadcast_prefix(domains, tuple(args), is_domain)
        given[: len(positional)] = positional
    examples = [
        example(x, aval) if domain is None else None
        for x, aval, domain in zip(leaves, avals, given, strict=True)
    ]
    return Function(fun, tree, avals, tuple(examples), tuple(given))


def is_domain(x: object) -> bool:
    return x is None or isinstance(x, Domain)


def example(x: object, aval: ShapedArray) -> NDArray | None:
    """The value of a leaf, if it has one."""
    if isinstance(x, ShapeDtypeStruct):
        return None
    if isinstance(x, ConcreteArray):
        return np.asarray(x.stored())
    return np.asarray(x).astype(stored_dtype(aval.dtype))


def function_cases(function: Function, law: Law) -> Strategy[Case]:
    """Cases of the function's program, as the law wants them."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Case:
        jaxpr = function.jaxpr(law.wide)
        stacks = [
            draw(values_of(function, i, aval, law))
            for i, aval in enumerate(jaxpr.in_avals)
        ]
        smooth = [d is None or d.smooth for d in function.domains]
        case = Case(jaxpr, tuple(stacks), draw(SEEDS), tuple(smooth))
        return own(function, law.name, case) if holds_functions(jaxpr) else case

    return drawn()


def values_of(
    function: Function, place: int, aval: ShapedArray, law: Law
) -> Strategy[NDArray]:
    """Values of one leaf: in its domain, or near its example."""
    known = function.examples[place]
    if known is None:
        domain = function.domains[place] or REALS
        return stack(aval, domain, law.depth, place, law.wide, law.tied)
    count = law.depth * known.size
    steps = st.lists(st.integers(-NEAR, NEAR), min_size=1, max_size=16)
    dtype = stored_dtype(aval.dtype)
    if not is_inexact(aval.dtype) or isinstance(aval.dtype, ExtendedDType):
        same = np.broadcast_to(known.astype(dtype), (law.depth, *known.shape))
        return st.just(np.array(same))
    return steps.map(lambda turns: near(known, dtype, law.depth, turns, count))


def near(
    known: NDArray, dtype: NumpyDType, depth: int, turns: Sequence[int], count: int
) -> NDArray:
    """`depth` arrays around `known`, each element scaled by (1 + turn / 64).

    Zeros stay zeros, and all turns zero give the example itself.
    """
    full = np.broadcast_to(known.astype(dtype), (depth, *known.shape))
    scale = 1 + np.array(turns)[np.arange(count) % len(turns)].reshape(full.shape) / 64
    part = numpy_dtype(real_dtype(dtype)) if is_complex(dtype) else dtype
    with np.errstate(all="ignore"):
        return np.asarray(full * scale.astype(part)).astype(dtype)


def function_laws(function: Function) -> tuple[Law, ...]:
    """The laws that a function can break although its program keeps all of its own."""
    return (
        Law("eager", lambda engine, case: eager_is_compiled(function, engine, case)),
        Law("purity", lambda engine, case: traces_agree(function, case), cost=4),
        Law(
            "vmap of f",
            lambda engine, case: mapped_is_loop(function, engine, case),
            depth=2,
            cost=4,
        ),
        Law("vjp of f", lambda engine, case: pulled_is_dual(function, engine, case)),
    )


def eager_is_compiled(function: Function, engine: StandardEngine, case: Case) -> None:
    """Called at once, under jit, and as its program: equal values, types, structure."""
    case = own(function, "eager", case)
    jaxpr, leaves = case.jaxpr, function.leaves(case.values)
    want = engine.evaluate(jaxpr, case.values)
    for what, fun in (("eager", function.fun), ("jit", jit(function.fun))):
        outs = [as_leaf(x) for x in function.call(fun, leaves)]
        has_types("eager", case, f"{what} f", [x.aval for x in outs], jaxpr.out_avals)
        got = [np.asarray(x.stored()) for x in outs]
        text = f"{what} differs from the traced program"
        agree("eager", engine, case, text, got, want, Run(jaxpr, case.values), 64.0)


def as_leaf(x: object) -> ConcreteArray:
    """An output of an eager call as an array."""
    if isinstance(x, ConcreteArray):
        return x
    (aval,) = struct_avals([x])
    return as_typed_array(x, aval)


def own(function: Function, law: str, case: Case) -> Case:
    """The case with a snippet that calls the function, not only its program."""
    return evolve(case, snippet=lambda case: function.snippet(law, case))


def traces_agree(function: Function, case: Case) -> None:
    """The function traced again, and after other work, is the same program."""
    first = function.traced(function.avals)
    second = function.traced(function.avals)
    for other in (first, second):
        if described(other) != described(case.jaxpr):
            raise broken(
                "purity",
                own(function, "purity", case),
                "traced twice, the function gives two different programs: it reads or "
                "changes something besides its arguments",
                got=print_jaxpr(other),
                want=print_jaxpr(case.jaxpr),
                after=other,
            )


def described(jaxpr: Jaxpr) -> tuple[str, tuple[bytes, ...]]:
    """A program as text, and the bytes of its constants."""
    consts = [literal_value(const.literal) for const in used_consts(jaxpr)]
    return print_jaxpr(jaxpr), tuple([x.tobytes() for x in consts])


def mapped_is_loop(function: Function, engine: StandardEngine, case: Case) -> None:
    """`vmap(f)` on stacked arguments is the stack of the calls."""
    case = own(function, "vmap of f", case)
    if not case.stacks:
        raise Skipped("there is no argument to map over")
    size = case.depth
    stacked = [
        as_typed_array(x[:size], aval.with_shape((size, *aval.shape)))
        for x, aval in zip(case.stacks, function.avals, strict=True)
    ]
    result = function.call(vmap(function.fun), stacked)
    outs = [np.asarray(as_leaf(x).stored()) for x in result]
    for i in range(size):
        want = engine.evaluate(case.jaxpr, case.at(i))
        got = [x[i] for x in outs]
        run = Run(case.jaxpr, case.at(i))
        agree(
            "vmap of f", engine, case, f"element {i} of vmap(f)", got, want, run, 64.0
        )


def pulled_is_dual(function: Function, engine: StandardEngine, case: Case) -> None:
    """`vjp(f)` gives the cotangents that the transposed program gives."""
    case = own(function, "vjp of f", case)
    args, kwargs = function.tree.unflatten(function.leaves(case.values))
    active = case.active
    outputs = case.jaxpr.out_avals
    if kwargs or not any(active) or not all(is_inexact(a.dtype) for a in outputs):
        raise Skipped("vjp is for inexact outputs of positional arguments")
    forward, tangent, mask = engine.linearize(case.jaxpr, active)
    cts = directions(case, [aval.tangent() for aval in outputs], 9)
    outs, pull = vjp(function.fun, *args)
    tree = pytrees.flatten(outs)[1]
    typed = [as_typed_array(x, a.tangent()) for x, a in zip(cts, outputs, strict=True)]
    leaves = pytrees.flatten(pull(tree.unflatten(typed)))[0]
    got = [
        np.asarray(as_leaf(x).stored())
        for x, flag in zip(leaves, active, strict=True)
        if flag
    ]
    saved = engine.evaluate(forward, case.values)[len(outputs) :]
    linear = (False,) * len(saved) + (True,) * sum(active)
    back, live = engine.transpose(tangent, linear, (True,) * sum(mask))
    given = [ct for ct, flag in zip(cts, mask, strict=True) if flag]
    run = Run(back, (*saved, *given))
    types = tangent_types(case.jaxpr.in_avals, active)
    want = filled(types, live, engine.evaluate(back, run.args))
    if all(live):
        agree("vjp of f", engine, case, "the cotangents of vjp", got, want, run, 256.0)
        return
    agree("vjp of f", engine, case, "the cotangents of vjp", got, want, None, 256.0)


# -----------------------------------------------------------------------------
# The standard table under its engine, and programs run compiled.
#
# The laws take an engine and a way to run, so this is all that ties them to
# the library's own rows and to its backend::
#
#     check_row(PRIMITIVES["sin"], ENGINE, laws=(*EVERY, COMPILED))


FEW = 64
"""Programs that are kept: one is tried with many values."""
ENGINE = StandardEngine(standard, CORE)


def runner(engine: StandardEngine) -> Runner:
    """A runner of compiled programs under the rules of `engine`; it stops in time."""
    programs = Recent[Jaxpr, Program](FEW)

    def run(jaxpr: Jaxpr, args: Sequence[NDArray]) -> Sequence[NDArray]:
        program = programs.find(jaxpr) or programs.add(jaxpr, held(engine, jaxpr))
        typed = [as_array(x, v.aval) for x, v in zip(args, jaxpr.invars, strict=True)]
        return [x.stored() for x in program.run(typed)]

    return run


COMPILED = compiled(runner(ENGINE))
