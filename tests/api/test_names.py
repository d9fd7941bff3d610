"""Names in `verax` that look at values or wrap functions, and helpers of verax.lax."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, tree_util


def test_typeof() -> None:
    assert str(verax.typeof(1)) == "~i32[]"
    assert verax.typeof(np.ones(3)).dtype == "float32"
    with pytest.raises(TypeError, match="no array"):
        verax.typeof("x")


def test_named_call_and_scope_change_nothing() -> None:
    def double(x: Any) -> Any:
        with verax.named_scope("inner"):
            return x * 2

    named = verax.named_call(double, name="twice")
    assert named.__name__ == "twice"
    assert verax.make_jaxpr(named)(1.0) == verax.make_jaxpr(double)(1.0)
    with pytest.raises(TypeError, match="function"):
        verax.named_call(3)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match="string"), verax.named_scope(3):  # type: ignore[arg-type]  # what is tested
        pass


def test_known_values_are_computed_inside_a_trace() -> None:
    def fun(x: Any) -> Any:
        with verax.ensure_compile_time_eval():
            table = vnp.cumsum(vnp.arange(4))
            assert int(table[-1]) == 6
        return x + table

    eqns = verax.make_jaxpr(fun)(1).jaxpr.eqns
    assert [eqn.primitive.name for eqn in eqns] == ["add"]
    assert verax.jit(fun)(1).tolist() == [1, 2, 4, 7]


def test_live_arrays() -> None:
    x = vnp.ones(3) + 1
    assert any(found is x for found in verax.live_arrays())
    x.delete()  # type: ignore[attr-defined]  # of arrays with values
    assert all(found is not x for found in verax.live_arrays())


def test_clear_caches() -> None:
    traces: list[int] = []

    @verax.jit
    def fun(x: Any) -> Any:
        traces.append(1)
        return x + 1

    assert float(fun(1.0)) == float(fun(1.0)) == 2
    assert len(traces) == 1
    verax.clear_caches()
    assert float(fun(1.0)) == 2
    assert len(traces) == 2


def test_tree_helpers() -> None:
    children, _ = tree_util.flatten_one_level_with_keys({"a": 1, "b": [2]})
    assert list(children) == [
        (tree_util.DictKey("a"), 1),
        (tree_util.DictKey("b"), [2]),
    ]
    assert tree_util.is_tree_node(dict)
    assert not tree_util.is_tree_node(int)
    with pytest.raises(ValueError, match="leaf"):
        tree_util.flatten_one_level_with_keys(3)


def test_lax_joins_and_splits() -> None:
    x = vnp.arange(6).reshape(2, 3)
    assert lax.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert lax.dtype(1.0) == lax.dtype(np.float64) == lax.dtype(float) == "float32"
    assert lax.stack([x, x], -1).shape == (2, 3, 2)
    assert [part.tolist() for part in lax.unstack(x, 1)] == [[0, 3], [1, 4], [2, 5]]
    assert lax.tile(x, (2, 1)).tolist() == np.tile(np.asarray(x), (2, 1)).tolist()
    assert [p.tolist() for p in lax.split(x, (1, 2), 1)] == [
        [[0], [3]],
        [[1, 2], [4, 5]],
    ]
    assert lax.broadcast_like(x[0], x).tolist() == [[0, 1, 2]] * 2
    wrong: list[tuple[Any, str]] = [
        (lambda: lax.stack([]), "one shape"),
        (lambda: lax.stack([x, x[0]]), "one shape"),
        (lambda: lax.split(x, (1, 1), 1), "add up"),
        (lambda: lax.tile(x, (2,)), "repetitions"),
        (lambda: lax.broadcast_shapes((2,), (3,)), "shape mismatch"),
    ]
    for function, text in wrong:
        with pytest.raises(ValueError, match=text):
            function()


def test_lax_index_take() -> None:
    x = vnp.arange(6).reshape(2, 3)
    rows, columns = vnp.array([0, 1]), vnp.array([2, -3])
    assert lax.index_take(x, (rows, columns), (0, 1)).tolist() == [2, 3]
    assert lax.index_take(x, (vnp.array([-1, 5]),), (1,)).tolist() == [[2, 5], [2, 5]]


def test_lax_polynomial() -> None:
    assert float(lax.polynomial(3.0, [1.0, 5.0, 2.0])) == 34
    x = vnp.arange(4.0)
    assert lax.polynomial(x, [1.0, np.float32(2), x]).tolist() == [1, 4, 13, 34]
    assert lax.polynomial(x, []).tolist() == [0, 0, 0, 0]
    assert lax.polynomial(x, [7.0]).tolist() == [7, 7, 7, 7]


def test_processes_and_devices() -> None:
    assert verax.process_index() in verax.process_indices()
    assert verax.process_count() == 1
    assert verax.local_devices(0) == verax.local_devices(backend="cpu")
    with pytest.raises(ValueError, match="no process 5"):
        verax.local_devices(5)
    with pytest.raises(RuntimeError, match="Unknown backend"):
        verax.live_arrays("bogus")


def test_the_environment_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    text = verax.print_environment_info(return_string=True)
    assert text is not None
    for word in ("verax", "jaxlib", "numpy", "python", "cpu"):
        assert word in text
    assert verax.print_environment_info() is None
    assert capsys.readouterr().out.strip() == text


def test_errors_have_names_of_both_libraries() -> None:
    def branch(x: Any) -> Any:
        return x if x > 0 else -x

    for name in ("AbstractValueError", "TracerBoolConversionError"):
        with pytest.raises(getattr(verax.errors, name)):
            verax.jit(branch)(1.0)
    assert verax.errors.UnexpectedTracerError is verax.LeakedTracer


def test_programs_are_functions_again() -> None:
    table = np.arange(3.0, dtype=np.float32)
    closed = verax.make_jaxpr(lambda x: (x * table, x + 1))(vnp.ones(3))

    def again(x: Any) -> Any:
        return verax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0]

    x = vnp.array([1.0, 2.0, 3.0])
    assert again(x).tolist() == verax.jit(again)(x).tolist() == [0, 2, 6]
    assert verax.grad(lambda x: again(x).sum())(x).tolist() == [0, 1, 2]
    assert verax.core.jaxpr_as_fun(closed)(x)[1].tolist() == [2, 3, 4]
    assert isinstance(verax.eval_shape(again, x), verax.ShapeDtypeStruct)
    with pytest.raises(TypeError, match="operand 1"):
        again(vnp.ones(4))
    with pytest.raises(TypeError, match="1 inputs"):
        verax.core.eval_jaxpr(closed.jaxpr, closed.consts)


def test_make_jaxpr_with_named_axes() -> None:
    closed = verax.make_jaxpr(
        lambda x: lax.psum(x, "i") + lax.axis_size("j"), axis_env=[("i", 4), ("j", 2)]
    )(1.0)
    assert closed.eqns[0].primitive.name == "psum"
    assert closed.eqns[1].invars[1].value == 2


def test_copies_to_the_host_may_start_early() -> None:
    tree = {"x": verax.jit(lambda: vnp.ones(2))(), "n": 3}
    assert verax.copy_to_host_async(tree) is tree
