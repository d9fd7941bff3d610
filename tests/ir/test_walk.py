"""Walking, mapping, substituting, constants, effects and differences."""

import numpy as np
import pytest
from attrs import evolve

from tests.ir.test_printer import nest
from tests.ir.toy import (
    INDEX,
    SCALAR,
    VECTOR,
    Axes,
    Branches,
    Call,
    add_p,
    apply,
    branches,
    cond_p,
    constant,
    everything,
    example,
    inputs,
    jit_p,
    mul_p,
    number,
    program,
    scaled,
    sin_p,
    typing,
)
from verax.ir.atoms import Literal, array_literal, variable
from verax.ir.effects import Effect
from verax.ir.jaxpr import NO_PARAMS, ClosedJaxpr, Eqn, Jaxpr, Source
from verax.ir.reports.check import check_jaxpr
from verax.ir.reports.differences import diff
from verax.ir.walk import (
    beside,
    close,
    count_eqns,
    defined_variables,
    equation_at,
    free_variables,
    hoist,
    interpret,
    into_operands,
    map_eqns,
    map_jaxprs,
    map_subjaxprs,
    read,
    read_as,
    substitute,
    unused_variables,
    used_consts,
    walk,
)

ONES = np.ones(8, np.float32)
STEPS = np.arange(8, dtype=np.float32)


def test_walk_enters_nested_jaxprs_in_order() -> None:
    jaxpr = branches()
    actual = [(path, eqn.primitive.name) for path, eqn in walk(jaxpr)]
    assert actual == [
        ((0,), "jit"),
        ((0, 0, 0), "cond"),
        ((0, 0, 0, 0, 0), "mul"),
        ((0, 0, 0, 1, 0), "mul"),
        ((1,), "say"),
    ]
    assert all(equation_at(jaxpr, path) is eqn for path, eqn in walk(jaxpr))


def test_counting_shares_what_is_shared() -> None:
    assert count_eqns(branches()) == 5
    jaxpr = example()
    for _ in range(60):
        call = apply(jit_p, Call("f", jaxpr), *inputs(VECTOR, VECTOR))
        again = evolve(call, outvars=(variable(3, VECTOR),))
        jaxpr = program(jaxpr.invars, [call, again], call.outvars)
    assert count_eqns(jaxpr) == 3 * 2**60 + 2 * (2**60 - 1)


def test_free_and_unused_variables() -> None:
    jaxpr = example()
    assert defined_variables(jaxpr)[:2] == jaxpr.invars
    assert free_variables(jaxpr) == ()
    assert list(map(repr, unused_variables(jaxpr))) == ["a:f32[8]", "e:f32[]"]
    loose = program((), [apply(sin_p, NO_PARAMS, variable(4, SCALAR))], ())
    assert free_variables(loose) == (variable(4, SCALAR),)


def test_substitute_replaces_uses_only() -> None:
    a, b = inputs(VECTOR, VECTOR)
    changed = substitute(example(), {b: a, variable(3, VECTOR): number(0.0)})
    assert changed.eqns[0].invars == (a,)
    assert changed.eqns[2].invars == (number(0.0),)
    assert changed.outvars == (number(0.0),)
    assert changed.invars == (a, b)


def test_mapping_keeps_what_does_not_change() -> None:
    jaxpr = branches()
    assert map_eqns(jaxpr, lambda eqn: eqn) is jaxpr
    assert map_jaxprs(jaxpr, lambda inner: inner) is jaxpr
    assert map_subjaxprs(NO_PARAMS, lambda inner: inner) is NO_PARAMS
    params = everything()
    assert map_subjaxprs(params, lambda inner: example()) is params


def test_mapping_reaches_jaxprs_in_tuples() -> None:
    params = Branches((scaled(number(1.0)), scaled(number(2.0))))
    changed = map_subjaxprs(params, lambda inner: example())
    assert changed == Branches((example(), example()))

    def sines(jaxpr: Jaxpr) -> Jaxpr:
        return map_eqns(jaxpr, lambda e: sine(e) if e.primitive is mul_p else e)

    def sine(eqn: Eqn) -> Eqn:
        return evolve(eqn, primitive=sin_p, invars=eqn.invars[:1])

    names = [e.primitive.name for _, e in walk(map_jaxprs(branches(), sines))]
    assert names == ["jit", "cond", "sin", "sin", "say"]


def test_close_and_hoist_are_inverse() -> None:
    x, y = inputs(VECTOR, VECTOR)
    z, w = variable(2, VECTOR), variable(3, VECTOR)
    eqns = [
        apply(mul_p, NO_PARAMS, y, constant(STEPS)),
        apply(add_p, NO_PARAMS, z, constant(ONES)),
    ]
    jaxpr = program((x, y), eqns, (w, constant(STEPS)))
    closed = hoist(jaxpr)
    assert [c is k for c, k in zip(closed.consts, (STEPS, ONES), strict=True)]
    check_jaxpr(closed.jaxpr, typing)
    assert str(closed) == (
        "{ lambda a:f32[8] b:f32[8]; c:f32[8] d:f32[8]. let\n"
        "    e:f32[8] = mul d a\n"
        "    f:f32[8] = scatter-add e b\n"
        "  in (f, a) }"
    )
    assert close(closed) == jaxpr
    assert hoist(close(closed)) == closed
    with pytest.raises(ValueError, match="call close before"):
        hoist(closed.jaxpr)


def hoistable(eqn: Eqn, literals: tuple[Literal, ...]) -> Eqn | None:
    positions = {jit_p: 0, cond_p: 1}
    if eqn.primitive not in positions:
        return None
    return into_operands(eqn, literals, positions[eqn.primitive])


def test_hoist_brings_out_the_constants_of_nested_jaxprs() -> None:
    jaxpr = branches(constant(STEPS), constant(ONES), constant(STEPS))
    closed = hoist(jaxpr, hoistable)
    check_jaxpr(closed.jaxpr, typing)
    assert len(closed.consts) == 2
    assert closed.consts[0] is STEPS
    assert closed.consts[1] is ONES
    assert "const" not in str(closed)
    kept = hoist(jaxpr)
    assert kept.consts == ()
    assert kept.jaxpr == jaxpr
    assert hoist(jaxpr, lambda eqn, literals: None).jaxpr == jaxpr


def test_used_consts_are_unique_by_object_with_size_and_line() -> None:
    jaxpr = branches(constant(STEPS), constant(ONES), constant(STEPS))
    uses = used_consts(jaxpr)
    assert [use.literal.value is c for use, c in zip(uses, (STEPS, ONES), strict=True)]
    assert [use.size for use in uses] == [32, 32]
    assert used_consts(jaxpr) is uses
    place = Source(hoistable.__code__, 0)
    plain = scaled(constant(ONES))
    here = program(
        plain.invars, [evolve(plain.eqns[0], source=place)], (constant(STEPS),)
    )
    assert [use.source.line for use in used_consts(here)] == [place.line, 0]
    assert used_consts(example()) == ()


def test_equal_scalars_are_equal_and_arrays_are_compared_by_identity() -> None:
    assert scaled(number(np.nan)) == scaled(number(np.nan))
    assert scaled(number(0.0)) != scaled(number(-0.0))
    assert scaled(constant(ONES)) == scaled(constant(ONES))
    assert scaled(constant(ONES)) != scaled(constant(ONES.copy()))
    assert ClosedJaxpr(example(), (ONES,)) == ClosedJaxpr(example(), (ONES,))


def test_effects_come_from_nested_jaxprs() -> None:
    assert branches().effects == frozenset((Effect("says"),))
    assert example().effects == frozenset()
    index, x = inputs(INDEX, VECTOR)
    call = apply(jit_p, Call("f", branches()), index, x)
    assert program((index, x), [call], ()).effects == frozenset((Effect("says"),))
    assert nest(30).effects == frozenset()


def test_diff_says_what_differs_first() -> None:
    assert diff(example(), example()) == ""
    left, right = scaled(number(2.0)), scaled(number(3.0))
    assert diff(left, right).splitlines() == [
        "equation 0: mul: the operands are a:f32[8] 2.0:f32[] and a:f32[8] 3.0:f32[]",
        "--- left",
        "+++ right",
        "@@ -1 +1 @@",
        "-{ lambda ; a:f32[8]. let b:f32[8] = mul a 2.0:f32[] in (b,) }",
        "+{ lambda ; a:f32[8]. let b:f32[8] = mul a 3.0:f32[] in (b,) }",
    ]


@pytest.mark.parametrize(
    ("right", "words"),
    [
        (scaled(number(1.0)), "invars: a:f32[8] b:f32[8] and a:f32[8]"),
        (substitute(example(), {variable(3, VECTOR): number(0.0)}), "equation 2: "),
        (program(example().invars, [], ()), "the numbers of equations are 3 and 0"),
        (
            program(example().invars, example().eqns, ()),
            "outputs: d:f32[8] and none",
        ),
        (
            map_eqns(example(), lambda e: evolve(e, primitive=add_p)),
            "equation 0: the primitives are sin and scatter-add",
        ),
        (
            map_eqns(
                example(),
                lambda e: evolve(e, params=Axes(())) if e.params != NO_PARAMS else e,
            ),
            "equation 2: reduce_sum: axes: (0,) and ()",
        ),
    ],
)
def test_first_difference(right: Jaxpr, words: str) -> None:
    assert diff(example(), right).startswith(words)


def test_difference_inside_of_a_branch() -> None:
    left = branches(number(1.0), array_literal(ONES, VECTOR))
    right = branches(number(1.0), array_literal(STEPS, VECTOR))
    assert diff(left, right).startswith(
        "equation 0: jit: jaxpr: equation 0: cond: branches: jaxpr 1: equation 0: mul"
    )


def test_interpret_computes_each_equation_on_values_of_its_operands() -> None:
    jaxpr = example()
    seen: list[tuple[str, list[str]]] = []

    def results(eqn: Eqn, operands: list[str]) -> list[str]:
        seen.append((eqn.primitive.name, operands))
        return [f"{eqn.primitive.name}{i}" for i, _ in enumerate(eqn.outvars)]

    names = [f"x{i}" for i, _ in enumerate(jaxpr.invars)]
    outs = interpret(jaxpr, names, results, repr)
    assert [name for name, _ in seen] == [e.primitive.name for e in jaxpr.eqns]
    assert [len(operands) for _, operands in seen] == [
        len(e.invars) for e in jaxpr.eqns
    ]
    assert len(outs) == len(jaxpr.outvars)


def test_literals_stand_for_themselves_and_have_nothing_beside_them() -> None:
    (x,), one = inputs(SCALAR), number(1.0)
    assert read([x, one], ["first"]) == ["first", one]
    assert read([x, one], {0: "first"}) == ["first", one]
    assert read_as([x, one], ["first"], lambda a: str(a.value)) == ["first", "1.0"]
    assert beside([x, one], ["tangent"]) == ["tangent", None]
