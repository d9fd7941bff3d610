"""Floor 6: the laws that a program keeps its type, its value and its identity.

One idea: whatever is done to a program that is not a mathematical transformation (run
it compiled, trace it again, print and parse it, drop what nothing needs) changes
nothing that can be seen::

    parse(print(jaxpr)) == jaxpr,    hash(trace(f)) == hash(trace(f))
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType

import numpy as np
from attrs import evolve

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    float0,
    is_bool,
    is_complex,
    is_float,
    is_integer,
    stored_dtype,
)
from verax.ir.forms.parser import parse_jaxpr
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ir.text.printer import print_jaxpr
from verax.ir.walk import interpret, used_consts, walk
from verax.ops.calls.call import CallParams, inline, jit_p
from verax.ops.elementwise.arith import div_p
from verax.ops.elementwise.remainder import rem_p
from verax.rules.rows.builder import program, write_here
from verax.rules.rows.row import MissingRule, NDArray, Sample
from verax.rules.values.array import Array
from verax.rules.values.state import STATE
from verax.transforms.engine.engine import StandardEngine, evaluate_eqn, literal_value
from verax.transforms.passes.cse import cse
from verax.transforms.passes.kernels import with_kernels
from verax.transforms.passes.outline import Limits, outline
from verax.verify.cases.case import (
    Case,
    LawBroken,
    Skipped,
    broken,
    constants_of,
    double_precision,
    holds_functions,
    is_double,
    primitives,
    reverse_only,
    traced,
    types_text,
)
from verax.verify.cases.tolerance import ULPS, difference, flushed, subnormals
from verax.verify.laws.agreement import Run, agree, random_axes, well_formed

type Runner = Callable[[Jaxpr, Sequence[NDArray]], Sequence[NDArray]]
"""Runs a program in another way than the interpreter, such as compiled."""

COMPILED_ULPS = 4 * ULPS
"""XLA on CPU vectorises functions with polynomials of lower degree than libm's."""

OF_SUBNORMALS = MappingProxyType(
    {
        "atan2": "XLA takes a subnormal bfloat16 for zero and divides two of them",
        "cbrt": "XLA's cbrt of a subnormal has a wrong sign and size",
        "pow": "XLA takes all subnormal bases of a power for the same number",
    }
)


def category(dtype: np.dtype[np.generic]) -> str:
    """Boolean, integer, float or complex."""
    if is_bool(dtype):
        return "boolean"
    if is_integer(dtype):
        return "integer"
    if is_float(dtype):
        return "float"
    return "complex" if is_complex(dtype) else str(dtype)


def has_type(x: object, aval: ShapedArray) -> bool:
    """Whether a raw result of an evaluate rule may stand for the type.

    The width may differ, for rules compute small floats in larger ones; the category
    may not, since the conversion would hide a result that is rounded or cut off.
    """
    array = np.asarray(x)
    due = category(stored_dtype(aval.dtype))
    return array.shape == aval.shape and category(array.dtype) == due


def evaluate_is_typed(engine: StandardEngine, case: Case) -> None:
    """Every equation evaluates to its inferred types, and leaves its operands alone."""
    well_formed("typed", case, "the program", case.jaxpr)
    raw = partial(raw_results, engine, case)
    with np.errstate(all="ignore"):
        outs = interpret(case.jaxpr, case.values, raw, literal_value)
    for i, (x, aval) in enumerate(zip(outs, case.jaxpr.out_avals, strict=True)):
        if x.shape != aval.shape or x.dtype != stored_dtype(aval.dtype):
            raise broken(
                "typed",
                case,
                f"result {i} has another type",
                want=aval,
                got=f"{x.dtype}{list(x.shape)}",
            )


def raw_results(
    engine: StandardEngine, case: Case, eqn: Eqn, operands: list[NDArray]
) -> list[NDArray]:
    """The results of one equation as its rule gives them, each of a type that fits."""
    row = engine.rules[eqn.primitive]
    if row.evaluate is None:
        raise Skipped(f"{row.name} has no evaluate rule")
    values = row.evaluate(engine, eqn.params, operands)
    if len(values) != len(eqn.outvars):
        raise broken(
            "typed",
            case,
            f"{row.name} evaluates to {len(values)} results, not {len(eqn.outvars)}",
        )
    for i, (x, var) in enumerate(zip(values, eqn.outvars, strict=True)):
        if var.aval.dtype != float0 and not has_type(x, var.aval):
            raw = np.asarray(x)
            raise broken(
                "typed",
                case,
                f"result {i} of {row.name} has another type",
                got=f"{raw.dtype}{list(raw.shape)}",
                want=var.aval,
            )
    return [
        np.asarray(x).astype(stored_dtype(var.aval.dtype))
        for x, var in zip(values, eqn.outvars, strict=True)
    ]


def divides_by_itself(eqn: Eqn) -> bool:
    """Whether XLA takes an integer quotient or remainder for a constant."""
    return (
        eqn.primitive in (div_p, rem_p)
        and eqn.invars[0] == eqn.invars[1]
        and is_integer(eqn.invars[0].aval.dtype)
    )


def compiled_is_evaluate(run: Runner) -> Callable[[StandardEngine, Case], None]:
    """The law that `run` gives what the interpreter gives, in value and in type."""

    def law(engine: StandardEngine, case: Case) -> None:
        jaxpr = case.jaxpr
        if any(divides_by_itself(eqn) for _, eqn in walk(jaxpr)):
            raise Skipped("XLA folds x / x of integers to 1, also where x is 0")
        if any(subnormals(x) for x in case.values):
            for name in primitives(jaxpr).keys() & OF_SUBNORMALS:
                raise Skipped(OF_SUBNORMALS[name])
        got = [np.asarray(x) for x in run(jaxpr, case.values)]
        types = [ShapedArray(x.shape, x.dtype) for x in got]
        due = [ShapedArray(a.shape, stored_dtype(a.dtype)) for a in jaxpr.out_avals]
        if types != due:
            raise broken(
                "compiled",
                case,
                "the compiled program has other types",
                got=types_text(types),
                want=types_text(due),
            )
        agrees_with_a_reading(engine, case, got)

    return law


def agrees_with_a_reading(
    engine: StandardEngine, case: Case, got: Sequence[NDArray]
) -> None:
    """Raise unless `got` is what the interpreter gives for one of the `readings`.

    Raises:
        LawBroken: it is not; of the operands as they are.
    """
    jaxpr = case.jaxpr
    first, *others = readings(case.values)
    for values in (first, *others):
        if not unlike(got, engine.evaluate(jaxpr, values)):
            return
    if not unlike(got, without_subnormals(engine, jaxpr, case.values)):
        return

    def hold(values: tuple[NDArray, ...]) -> None:
        agree(
            "compiled",
            engine,
            case,
            "compiled differs from evaluate",
            got,
            engine.evaluate(jaxpr, values),
            Run(jaxpr, values, reference=True),
            COMPILED_ULPS,
        )

    for values in others:
        with suppress(LawBroken):
            hold(values)
            return
    hold(first)


def readings(values: Sequence[NDArray]) -> Iterator[tuple[NDArray, ...]]:
    """The operands, and what a compiled program may take them for.

    XLA on CPU reads subnormals as zeros. On the branch cut of a complex function, the
    sign of a zero says which side is meant, and not every expansion of XLA looks at it.
    """
    yield tuple(values)
    small = tuple([flushed(x) for x in values])
    if any(subnormals(x) for x in values):
        yield small
    if any(is_complex(x.dtype) for x in values):
        yield tuple([x + 0 if is_complex(x.dtype) else x for x in small])


def without_subnormals(
    engine: StandardEngine, jaxpr: Jaxpr, values: Sequence[NDArray]
) -> list[NDArray]:
    """The results where every equation takes subnormals for zeros and makes none."""

    def results(eqn: Eqn, operands: list[NDArray]) -> list[NDArray]:
        return [flushed(x) for x in evaluate_eqn(engine, eqn, operands)]

    with np.errstate(all="ignore"):
        return interpret(inline(jaxpr), map(flushed, values), results, literal_value)


def unlike(got: Sequence[NDArray], want: Sequence[NDArray]) -> bool:
    """Whether any results differ by more than compiled ones may."""
    return any(
        difference(x, y, ulps=COMPILED_ULPS) is not None
        for x, y in zip(got, want, strict=True)
    )


def retracing_is_equal(engine: StandardEngine, case: Case) -> None:
    """Making a program again makes an equal one, whatever ran before.

    An engine without any memory must derive the same programs as this one, and rules
    may not look at the configuration, for their templates are shared.
    """
    jaxpr = case.jaxpr
    if holds_functions(jaxpr):
        raise Skipped("the program holds Python functions, which compare by identity")
    known = derived(engine, case)
    fresh = derived(evolve(engine), case)
    with double_precision(is_double(jaxpr) or not STATE.enable_x64):
        configured = derived(evolve(engine), case)
    pairs = [(jaxpr, again(jaxpr))]
    pairs += zip(known, fresh, strict=True)
    pairs += zip(known, configured, strict=True)
    for one, other in pairs:
        if used_consts(one):
            continue  # array constants are compared by identity
        if "custom_vmap_call" in primitives(one):
            # Derived rules hold the engine, and these are different engines.
            same = print_jaxpr(one) == print_jaxpr(other)
        else:
            same = one == other and hash(one) == hash(other)
        if not same:
            raise broken(
                "retrace",
                case,
                "made twice, the programs differ",
                got=print_jaxpr(other),
                want=print_jaxpr(one),
            )


def again(jaxpr: Jaxpr) -> Jaxpr:
    """The same program, written again equation by equation."""
    return program(jaxpr.in_avals, partial(write_here, jaxpr), "a law")


def differentiable(engine: StandardEngine, jaxpr: Jaxpr) -> bool:
    """Whether every row of the program has a jvp rule."""
    return all(engine.rules[p].jvp is not None for p in primitives(jaxpr).values())


def batchable(engine: StandardEngine, jaxpr: Jaxpr) -> bool:
    """Whether every row of the program has a batch rule."""
    return all(engine.rules[p].batch is not None for p in primitives(jaxpr).values())


def text_is_program(engine: StandardEngine, case: Case) -> None:
    """A program and those derived from it print as text that parses back to them."""
    if holds_functions(case.jaxpr) or "custom_vmap_call" in primitives(case.jaxpr):
        raise Skipped("the program holds Python functions, which have no text")
    for jaxpr in [case.jaxpr, *derived(engine, case)]:
        for name in shared_names(jaxpr):
            what = (
                f"two primitives of a derived program are called {name!r}, which its "
                "text cannot tell apart: give yours a name of its own"
            )
            raise broken("text", case, what, after=jaxpr)
        text = print_jaxpr(jaxpr)
        back = parse_jaxpr(text, primitives(jaxpr), constants_of(jaxpr))
        if back != jaxpr:
            raise broken(
                "text",
                case,
                "the text parses to another program",
                got=print_jaxpr(back),
                want=text,
            )


def shared_names(jaxpr: Jaxpr) -> list[str]:
    """The names that several primitives of a program have."""
    used = Counter([p.name for p in {eqn.primitive for _, eqn in walk(jaxpr)}])
    return [name for name, count in used.items() if count > 1]


def derived(engine: StandardEngine, case: Case) -> list[Jaxpr]:
    """The derived programs, where the rows of the program have the rules."""
    jaxpr, out = case.jaxpr, []
    active = case.active
    if any(active) and differentiable(engine, jaxpr) and not reverse_only(jaxpr):
        forward, tangent, _ = engine.linearize(jaxpr, active)
        out += [engine.jvp(jaxpr, active)[0], forward, tangent]
    if jaxpr.invars and batchable(engine, jaxpr):
        axes = random_axes(case.random(), jaxpr.in_avals, False)
        out.append(engine.batch(jaxpr, 2, axes)[0])
    return out


def kernels_keep_values(engine: StandardEngine, case: Case) -> None:
    """Functions that are written out have the same values, wherever they are."""
    if any(subnormals(x) for x in case.values):
        raise Skipped("what kernels are for takes subnormals for zeros")
    made = with_kernels(case.jaxpr, everywhere=True)
    if made is case.jaxpr:
        raise Skipped("no kernel is for these types")
    well_formed("kernel", case, "the program with kernels", made)
    agree(
        "kernel",
        engine,
        case,
        "with its kernel, the program has other values",
        engine.evaluate(made, case.values),
        engine.evaluate(case.jaxpr, case.values),
        Run(case.jaxpr, case.values, reference=True),
        after=made,
    )


def dce_keeps_values(engine: StandardEngine, case: Case) -> None:
    """Dead-code elimination keeps what is used, to the bit, and drops the rest."""
    program = with_dead_code(case.jaxpr)
    random = case.random()
    used = tuple(random.random() < 0.5 for _ in program.outvars)
    slim, needed = engine.dce(program, used)
    well_formed("dce", case, "the program without dead code", slim)
    if len(needed) != len(program.invars) or sum(needed) != len(slim.invars):
        raise broken(
            "dce",
            case,
            f"inputs {needed} are kept, but the program has {len(slim.invars)}",
        )
    effectful = bool(program.effects)
    if not any(used) and not effectful and slim.eqns:
        raise broken(
            "dce",
            case,
            "nothing is used, and yet there are equations",
            got=print_jaxpr(slim),
        )
    values = case.values
    outs = engine.evaluate(program, values)
    want = [x for x, flag in zip(outs, used, strict=True) if flag]
    got = engine.evaluate(
        slim, [x for x, flag in zip(values, needed, strict=True) if flag]
    )
    agree(
        "dce",
        engine,
        case,
        f"dce for outputs {used}",
        got,
        want,
        None,
        0.0,
        after=slim,
    )


def with_dead_code(jaxpr: Jaxpr) -> Jaxpr:
    """The program twice in a row, with the outputs of both."""

    def twice(*xs: Array) -> Sequence[Array]:
        first = write_here(jaxpr, *xs)
        return [*write_here(jaxpr, *xs), *first]

    return program(jaxpr.in_avals, twice, "a law")


def same_values(
    law: str, engine: StandardEngine, case: Case, program: Jaxpr, after: Jaxpr
) -> None:
    """Raise if `after`, made of `program` by what the law names, has other values."""
    got = engine.evaluate(after, case.values)
    want = engine.evaluate(program, case.values)
    what = f"{law} changes values"
    agree(law, engine, case, what, got, want, None, 0.0, after=after)


def outline_keeps_values(engine: StandardEngine, case: Case) -> None:
    """Writing runs of equations once keeps values, and the second of two programs."""
    program = with_dead_code(case.jaxpr)
    shorter = outline(program, Limits(1, 1))
    well_formed("outline", case, "the program with calls", shorter)
    same_values("outline", engine, case, program, shorter)


def cse_keeps_values(engine: StandardEngine, case: Case) -> None:
    """Joining equal equations keeps values, and makes of a program done twice one."""
    program = with_dead_code(case.jaxpr)
    joined = cse(program)
    well_formed("cse", case, "the program without equal equations", joined)
    if len(joined.eqns) > len(case.jaxpr.eqns) and not program.effects:
        raise broken("cse", case, "equal equations remain", got=print_jaxpr(joined))
    same_values("cse", engine, case, program, joined)


def inline_undoes_call(engine: StandardEngine, case: Case) -> None:
    """A call means its program: evaluated, and inlined, to the equation."""
    jaxpr = case.jaxpr
    outside = as_call(jaxpr)
    well_formed("inline", case, "the call of the program", outside)
    got, want = [engine.evaluate(j, case.values) for j in (outside, jaxpr)]
    agree("inline", engine, case, "the call differs", got, want, None, 0.0)
    flat = inline(outside)
    if flat != jaxpr and not any(e.primitive is jit_p for e in jaxpr.eqns):
        raise broken(
            "inline",
            case,
            "inlining a call gives a different program",
            got=print_jaxpr(flat),
            want=print_jaxpr(jaxpr),
        )


def as_call(jaxpr: Jaxpr) -> Jaxpr:
    """The program that calls `jaxpr` by one equation."""
    return traced(jit_p, Sample(CallParams("f", jaxpr), jaxpr.in_avals))


def missing_rules_say_so(engine: StandardEngine, case: Case) -> None:
    """Where a row has no rule, the transformation says which primitive and column."""
    if case.row is None:
        raise Skipped("this law is about rows")
    row, jaxpr = engine.rules[case.row], case.jaxpr
    active = case.active
    tried = 0
    if row.jvp is None and any(active):
        expect_missing(case, row.name, "jvp", lambda: engine.jvp(jaxpr, active))
        tried += 1
    if row.batch is None and jaxpr.invars:
        axes = random_axes(case.random(), jaxpr.in_avals, False)
        expect_missing(case, row.name, "batch", lambda: engine.batch(jaxpr, 2, axes))
        tried += 1
    if row.evaluate is None:
        expect_missing(
            case, row.name, "evaluate", lambda: engine.evaluate(jaxpr, case.values)
        )
        tried += 1
    if not tried:
        raise Skipped("no rule is missing")


def expect_missing(
    case: Case, name: str, column: str, attempt: Callable[[], object]
) -> None:
    """Raise unless the attempt fails with an error that names row and column."""
    try:
        attempt()
    except MissingRule as error:
        if name in str(error) and column in str(error):
            return
        raise broken(
            "missing",
            case,
            f"the error does not name {name} and {column}",
            got=str(error),
        ) from error
    raise broken("missing", case, f"{name} has no {column} rule, and nothing says so")
