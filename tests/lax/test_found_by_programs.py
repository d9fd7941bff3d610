"""What random programs have found, each as the smallest program that shows it."""

import re
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, verify
from verax.custom_batching import custom_vmap
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32, int32
from verax.ir.jaxpr import scalar_literal
from verax.ir.reports.check import check_jaxpr
from verax.ops.calls.call import inlined
from verax.ops.control.while_ import while_p
from verax.ops.control.while_params import WhileParams
from verax.ops.elementwise.arith import add
from verax.ops.elementwise.compare import lt
from verax.rules.rows.builder import program
from verax.rules.rows.infer import infer
from verax.verify.checking.functions import ENGINE

INTEGER = ShapedArray((), int32)


@custom_vmap
def counted(n: Any, x: Any) -> Any:
    return n + 1, x * x


@counted.def_vmap
def counted_rule(size: int, batched: Any, n: Any, x: Any) -> Any:
    return (n + 1, x * x), tuple(batched)


def test_a_loop_counts_with_a_result_beside_one_that_has_a_tangent() -> None:
    def f(x: Any) -> Any:
        count = lax.while_loop(lambda n: n < 3, lambda n: counted(n, x)[0], 0)
        return count * x

    assert verax.grad(f)(2.0) == 3.0


def test_a_rule_without_results_that_are_used_keeps_to_them() -> None:
    def f(x: Any) -> Any:
        def body(n: Any) -> Any:
            counted(n, x)
            return n + 1

        return lax.while_loop(lambda n: n < 3, body, 0) * x

    assert verax.jit(verax.grad(f))(2.0) == 3.0


def test_integers_beside_tangents_have_none_in_the_batched_rule() -> None:
    def f(n: Any, x: Any) -> Any:
        return verax.jvp(lambda y: counted(n, y), (x,), (1.0,))[0]

    ns, xs = vnp.arange(3), vnp.arange(3.0)
    values = verax.jit(verax.vmap(f))(ns, xs)
    np.testing.assert_array_equal(values[0], [1, 2, 3])
    np.testing.assert_array_equal(values[1], [0.0, 1.0, 4.0])


def test_a_loop_starts_with_zeros_for_keys_of_four_words() -> None:
    def f(seeds: Any) -> Any:
        def body(carry: Any, seed: Any) -> Any:
            return carry, verax.random.key(seed, impl="unsafe_rbg")

        return lax.scan(body, 0.0, seeds)[1]

    keys = verax.jit(f)(vnp.arange(2))
    one = verax.random.key(1, impl="unsafe_rbg")
    data = verax.random.key_data
    np.testing.assert_array_equal(data(keys)[1], data(one))


def test_a_weak_predicate_stays_well_typed_at_two_levels() -> None:
    weak, carry = ShapedArray((), int32, True), ShapedArray((2,), np.dtype("float32"))

    def number(value: int) -> object:
        return scalar_literal(np.int32(value), weak)

    body = program([weak, carry], lambda n, x: [add(n, number(1)), x])
    cond = program([weak, carry], lambda n, x: [lt(n, number(3))])
    params = WhileParams(body, 0, cond, 0)
    jaxpr = program([weak, carry], lambda n, x: while_p.bind(params, n, x))
    once, _ = ENGINE.batch(jaxpr, 2, (0, 0))
    twice, _ = ENGINE.batch(once, 2, (0, None))
    check_jaxpr(once, infer)
    check_jaxpr(twice, infer)


def test_the_tangent_of_a_weak_operand_has_the_type_of_the_result() -> None:
    x, scalar = ShapedArray((2,), float32), ShapedArray((), float32, True)
    jaxpr = program([x, scalar], lambda x, b: [vnp.sum(x + b)])
    pushed, _ = ENGINE.jvp(jaxpr, (False, True))
    forward, tangent, _ = ENGINE.linearize(jaxpr, (False, True))
    backward, _ = ENGINE.transpose(tangent, (True,), (True,))
    for made in (pushed, forward, tangent, backward):
        check_jaxpr(made, infer)
    assert pushed.out_avals == (jaxpr.out_avals[0],) * 2
    assert backward.out_avals == (scalar,)


def test_flags_of_loops_are_hidden_from_xla() -> None:
    # Seed 40555 of the nightly search: XLA saw that no lane would begin, dropped every
    # carry, and aborted on the loop without any.
    def count(n: verax.Array) -> verax.Array:
        return verax.lax.while_loop(lambda n: n < 3, lambda n: n + 1, n)

    lanes = vnp.arange(5)
    text = verax.jit(verax.vmap(count)).lower(lanes).as_text()
    (hidden,) = [line for line in text.splitlines() if "optimization_barrier" in line]
    name = hidden.split()[0]
    assert re.search(rf"stablehlo.while\(%\w+ = {name}, ", text)
    assert verax.jit(verax.vmap(count))(lanes).tolist() == [3, 3, 3, 3, 4]
    # Counters stay visible: XLA counts steps by them.
    assert "optimization_barrier" not in verax.jit(count).lower(1).as_text()


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("inside", [False, True])
def test_bodies_keep_their_types_whatever_the_weakness_of_operands(
    inside: bool, outside: bool
) -> None:
    given, own = (ShapedArray((), float32, weak) for weak in (outside, inside))
    body = program([INTEGER, own], lambda n, x: [add(x, x), n])
    assert body.out_avals[0].weak_type == inside
    whole = program([given, INTEGER], lambda x, n: inlined(body, [n, x]))
    check_jaxpr(whole, infer)
    assert whole.out_avals == body.out_avals
    (actual, _) = ENGINE.evaluate(
        whole, [np.array(1.5, np.float32), np.array(2, np.int32)]
    )
    assert float(actual) == 3.0


UNREAD = """
{ lambda ; a:i32[] b:f64[] c:f64[]. let
    d:i32[] e:f64[] f:f64[] = while[
      body_jaxpr={ lambda ; a:i32[] b:f64[] c:f64[]. let
          d:f64[] = custom_jvp_call[
            name=f
            captured=1
            jaxpr={ lambda ; a:f64[] b:f64[]. let c:f64[] = neg a in (c,) }
            rule=TracedJvp(
              jaxpr={ lambda ; a:f64[] b:f64[] c:f64[]. let d:f64[] = neg a in (d,) }
              nonzero=(True,)
              out_nonzero=(False,)
            )
          ] b c
          e:i32[] = add a 1:i32[]
        in (e, d, c) }
      body_nconsts=0
      cond_jaxpr={ lambda ; a:i32[] b:f64[] c:f64[]. let
          d:bool[] = lt a 3:i32[] in (d,) }
      cond_nconsts=0
    ] a b c
  in (d, e, f) }
"""


def test_a_loop_whose_rule_does_not_read_a_tangent_is_linearized() -> None:
    """The call has the tangent as an operand, but no result depends on it."""
    values = [np.zeros((1,), "int32"), np.full((1,), 2.0), np.full((1,), 3.0)]
    case = verify.read_case(UNREAD, values, seed=0, single=True)
    forward, _, _ = ENGINE.linearize(case.jaxpr, (False, True, True))
    outs = ENGINE.evaluate(forward, case.values)
    assert [float(x) for x in outs[:3]] == [3.0, -2.0, 3.0]


def test_a_batching_rule_with_an_array_in_a_choice_for_each_element() -> None:
    f = custom_vmap(lambda x: x)

    @f.def_vmap
    def rule(size: int, batched: Any, x: Any) -> Any:
        return x.at[:, np.array([2, 1])].add(1.0), True

    def g(flag: Any, x: Any) -> Any:
        return lax.cond(flag, f, lambda x: 2 * x, x)

    flags, x = np.array([True, False]), np.ones((2, 3), np.float32)
    for h in (verax.vmap(g), verax.jit(verax.vmap(g))):
        assert h(flags, x).tolist() == [[1, 2, 2], [2, 2, 2]]


def test_nothing_is_sorted_along_and_nothing_beside() -> None:
    empty = vnp.zeros((3, 0))
    _, tangent = verax.jvp(lambda x: lax.top_k(x, 0)[0], (empty,), (empty,))
    assert tangent.shape == (3, 0)
    x = vnp.zeros((1, 0, 0))
    _, tangent = verax.jvp(lambda x: lax.sort(x, dimension=1), (x,), (x,))
    assert tangent.shape == (1, 0, 0)
