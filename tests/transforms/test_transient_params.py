"""Rules whose params hold closures or arrays: errors, and what is kept."""

import gc
import weakref

import pytest

import verax
import verax.numpy as jnp
from verax import lax
from verax.ops.windows.reduce_window import FoldWindowParams
from verax.rules.values.memo import TransientKey, asked, memo, pure, recall
from verax.rules.values.state import current_context
from verax.transforms.engine.templates import jvp_template


class Kept:
    """A key that keeps results, as params do."""

    def __init__(self) -> None:
        self.transient = True
        self.kept: dict[object, object] = {}


@memo(8)
def doubled(context: object, holder: object, x: float) -> float:
    """A memo that `holder` may keep."""
    return x * 2


@pure(8)
def listed(holder: object, x: float) -> list[float]:
    """A memo that is computed again for each transient holder."""
    return [x]


def test_what_a_transient_holder_leads_to_is_kept_with_it() -> None:
    holder = Kept()
    assert recall(doubled, holder, current_context(), holder, 3.0) == 6.0
    assert list(holder.kept.values()) == [6.0]


def test_what_is_asked_of_a_transient_holder_is_computed_again() -> None:
    holder = Kept()
    one, two = asked(listed, holder, holder, 1.0), asked(listed, holder, holder, 1.0)
    assert one == two == [1.0]
    assert one is not two
    assert not holder.kept


def test_what_holds_nothing_is_kept_by_the_memo() -> None:
    holder = Kept()
    holder.transient = False
    assert asked(listed, holder, 1, 2.0) is recall(listed, holder, 1, 2.0)
    assert not holder.kept


def test_a_memo_refuses_a_transient_key() -> None:
    with pytest.raises(TransientKey, match="doubled"):
        doubled(current_context(), Kept(), 1.0)


def failing(message: str) -> object:
    """A function whose derivative rule fails, and whose params hold a closure."""
    held = jnp.ones(3)

    @verax.custom_jvp
    def f(x: verax.Array) -> verax.Array:
        return x * held[0]

    @f.defjvp
    def f_jvp(primals: object, tangents: object) -> object:
        raise RuntimeError(message)

    return f


@pytest.mark.parametrize("transform", [verax.grad, verax.jacfwd])
def test_errors_of_rules_are_not_chained_to_memos(transform: object) -> None:
    f = failing("the rule says no")
    with pytest.raises(RuntimeError, match="the rule says no") as told:
        transform(lambda x: f(x))(1.0)  # type: ignore[operator]  # grad and jacfwd
    error: BaseException | None = told.value
    while error is not None:
        assert not isinstance(error, TransientKey)
        error = error.__cause__ or error.__context__


def test_a_rule_that_is_missing_has_its_line_for_closures_too() -> None:
    held = jnp.ones(3)

    def loop(x: verax.Array) -> verax.Array:
        out = lax.while_loop(lambda c: c[0] < held[0], lambda c: c * held[1] + 1, x)
        assert isinstance(out, verax.Array)
        return out[0]

    with pytest.raises(verax.errors.MissingRule, match=r"test_transient_params\.py"):
        verax.grad(loop)(jnp.zeros(3))


def windows_of_a_closure() -> "weakref.ref[verax.Array]":
    """Fold windows by a function that reads an array, under several transformations."""
    held = jnp.ones(3)

    def f(x: verax.Array) -> verax.Array:
        def fold(a: verax.Array, b: verax.Array) -> verax.Array:
            return a + b * held[lax.convert_element_type(a, jnp.int32) % 3]

        out = lax.reduce_window(x, 0.0, fold, (2,), (1,), "VALID")
        assert isinstance(out, verax.Array)
        return out

    program = verax.make_jaxpr(f)(jnp.ones(5))
    (params,) = [
        e.params for e in program.jaxpr.eqns if isinstance(e.params, FoldWindowParams)
    ]
    assert params.transient
    x = jnp.ones(5)
    verax.vmap(f)(x[None])
    verax.jvp(f, (x,), (x,))
    return weakref.ref(held)


@pytest.mark.slow
@pytest.mark.on_host("compiled folds read no arrays")
@pytest.mark.usefixtures("few_objects")
def test_windows_that_fold_by_a_closure_let_it_go() -> None:
    gone = windows_of_a_closure()
    gc.collect()
    assert gone() is None


@pytest.mark.slow
def test_programs_with_numbers_of_their_own_do_not_pile_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("verax.rules.values.memo.PROGRAMS", 8)
    verax.clear_caches()
    for number in range(40):
        scale = number + 0.0625
        verax.make_jaxpr(verax.grad(verax.jit(lambda x: x * scale)))(1.0)  # noqa: B023
        assert jvp_template.cache_info().currsize < 20  # type: ignore[attr-defined]  # a memo
    assert jvp_template.cache_info().currsize  # type: ignore[attr-defined]  # a memo
