"""The transformations on closed jaxprs: fold, dce, cse, inline, and what they keep."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import ir, lax, transforms

TABLE = np.arange(3, dtype=np.float32)


def names(program: ir.ClosedJaxpr) -> list[str]:
    return [eqn.primitive.name for _, eqn in ir.walk(program.jaxpr)]


def agree(program: ir.ClosedJaxpr, changed: ir.ClosedJaxpr, *args: Any) -> None:
    """Both are well formed and give the same bits."""
    transforms.check(changed)
    assert changed.in_avals == program.in_avals
    assert changed.out_avals == program.out_avals
    expected = transforms.evaluate(program, *args)
    for a, b in zip(expected, transforms.evaluate(changed, *args), strict=True):
        assert a.tobytes() == b.tobytes()


def test_fold_computes_what_depends_on_no_input() -> None:
    def f(x: Any) -> Any:
        grid = vnp.arange(4.0) * 2 + 1
        key = verax.random.split(verax.random.key(0), 2)
        return x * grid.sum(), grid, verax.random.key_data(key), vnp.exp(-0.0)

    program = verax.make_jaxpr(f)(2.0)
    folded = transforms.fold(program)
    assert names(folded) == ["mul"]
    agree(program, folded, 2.0)
    assert transforms.fold(program) == folded
    assert transforms.fold(folded) == folded


def test_fold_works_inside_and_leaves_loops() -> None:
    def f(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return c * (lax.exp(0.0) + 1), None

        return lax.scan(body, x, None, length=3)[0] + lax.fori_loop(
            0, 9, lambda i, v: v + i, 0.0
        )

    program = verax.make_jaxpr(f)(2.0)
    folded = transforms.fold(program)
    assert "exp" not in names(folded)
    assert len(names(folded)) < len(names(program))
    agree(program, folded, 2.0)


def test_fold_stops_at_the_limit() -> None:
    program = verax.make_jaxpr(lambda x: x + vnp.ones(100) * TABLE.sum())(1.0)
    assert len(transforms.fold(program, limit=99).eqns) == len(program.eqns)
    assert len(transforms.fold(program, limit=100).eqns) == 1
    large = np.ones(1000, np.float32)
    summed = verax.make_jaxpr(lambda x: x + vnp.sum(large))(1.0)
    assert len(transforms.fold(summed, limit=999).eqns) == 2


def test_fold_keeps_barriers() -> None:
    program = verax.make_jaxpr(lambda x: x + lax.optimization_barrier(1.0))(1.0)
    assert names(transforms.fold(program)) == ["optimization_barrier", "add"]


@pytest.mark.parametrize("name", ["dce", "cse", "fold", "inline", "outline", "hoist"])
def test_each_keeps_values_with_constants_in_bodies(name: str) -> None:
    def f(x: Any) -> Any:
        inner = verax.jit(lambda v: vnp.sin(v) + TABLE)
        unused = vnp.cos(x)
        rows = lax.map(lambda r: inner(x) * r, TABLE)
        return rows + vnp.sin(x) * vnp.sin(x), unused * 0 + TABLE

    program = verax.make_jaxpr(f)(0.3)
    changed = getattr(transforms, name)(program)
    agree(program, changed, 0.3)
    assert getattr(transforms, name)(changed) == changed


def test_dce_of_some_outputs() -> None:
    program = verax.make_jaxpr(lambda x, y: (x + 1, y * 2))(1, 2)
    assert names(transforms.dce(program, [False, True])) == ["mul"]
    slim = transforms.dce(program, [False, True], keep_inputs=False)
    assert len(slim.in_avals) == 1
    with pytest.raises(ValueError, match="used must have 2 entries, not 1"):
        transforms.dce(program, [True])


def test_plain_jaxprs_are_taken_and_others_refused() -> None:
    program = verax.make_jaxpr(lambda x: x + TABLE)(1.0)
    with pytest.raises(ValueError, match="pass the ClosedJaxpr"):
        transforms.dce(program.jaxpr)
    with pytest.raises(TypeError, match="make_jaxpr"):
        transforms.dce(vnp.sin)  # type: ignore[arg-type]  # the subject
    assert transforms.cse(ir.close(program)) == program


def test_derivatives_of_programs() -> None:
    program = verax.make_jaxpr(lambda x, y: x * y)(2.0, 3.0)
    pushed, nonzero = transforms.jvp(program)
    assert nonzero == (True,)
    assert [float(x) for x in transforms.evaluate(pushed, 2.0, 3.0, 1.0, 0.0)] == [6, 3]
    pulled, live = transforms.transpose(program, [True, False])
    assert live == (True,)
    assert float(transforms.evaluate(pulled, 3.0, 5.0)[0]) == 15
    batched, axes = transforms.vmap(program, 4, [0, None])
    assert (axes, batched.out_avals[0].shape) == ((0,), (4,))


def test_evaluate_says_what_does_not_fit() -> None:
    program = verax.make_jaxpr(lambda x: x * 2)(1.0)
    for args in ((), (1.0, 2.0), (np.ones(3, np.float32),)):
        with pytest.raises(TypeError, match=r"argument"):
            transforms.evaluate(program, *args)
