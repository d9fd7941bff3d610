"""Arrays that a function closes over: literals inside, arguments of the executable."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp

LARGE = np.arange(4096, dtype=np.float32)


def constants(text: str) -> list[str]:
    """The lines of a module that hold constants."""
    return [line for line in text.splitlines() if "stablehlo.constant" in line]


def test_captured_arrays_are_no_constants_of_the_module() -> None:
    for captured in (LARGE, vnp.asarray(LARGE)):
        text = verax.jit(lambda x, c=captured: x + c).lower(1.0).as_text()
        assert constants(text) == []
        assert len(text) < 1000


def test_scalars_stay_inline() -> None:
    scale = np.float32(2.5)
    text = verax.jit(lambda x: x * scale).lower(vnp.ones(3)).as_text()
    (line,) = constants(text)
    assert "2.5" in line
    assert "tensor<f32>" in text or "dense<2.5" in line


def test_two_uses_share_one_argument() -> None:
    def fun(x: Any) -> Any:
        return (x + LARGE) * LARGE

    text = verax.jit(fun).lower(1.0).as_text()
    (head,) = [line for line in text.splitlines() if "public @main" in line]
    assert head.count("tensor<4096xf32>") == 2  # one argument, one result


def test_equal_but_different_arrays_are_two() -> None:
    other = LARGE.copy()
    jaxpr = verax.make_jaxpr(lambda x: x + LARGE + other)(1.0)
    assert len(jaxpr.consts) == 2


def test_make_jaxpr_shows_constvars() -> None:
    jaxpr = verax.make_jaxpr(lambda x: x + LARGE)(1.0)
    assert jaxpr.consts[0] is LARGE
    assert str(jaxpr).startswith("{ lambda a:f32[4096]; b:~f32[].")


def test_constants_of_inner_functions_are_passed_down() -> None:
    inner = verax.jit(lambda x: x + LARGE)

    def fun(x: Any) -> Any:
        return inner(x) * LARGE

    text = verax.jit(fun).lower(1.0).as_text()
    assert constants(text) == []
    assert float(verax.jit(fun)(1.0)[2]) == 6
    assert verax.make_jaxpr(fun)(1.0).consts == (LARGE,)


def test_constants_survive_every_transformation() -> None:
    def fun(x: Any) -> Any:
        return (x * LARGE).sum()

    expected = float(LARGE.sum())
    assert float(verax.grad(fun)(1.0)) == expected
    assert float(verax.jit(verax.grad(fun))(1.0)) == expected
    assert verax.vmap(verax.grad(fun))(vnp.ones(2)).tolist() == [expected] * 2
    text = verax.jit(verax.grad(fun)).lower(1.0).as_text()
    assert [line for line in constants(text) if "4096" in line] == []


def test_a_device_array_is_used_where_it_is() -> None:
    held: Any = verax.block_until_ready(verax.jit(lambda: vnp.arange(4096.0))())
    jitted = verax.jit(lambda x: x + held)
    assert float(jitted(1.0)[1]) == 2
    assert held.host is None


def test_the_second_call_runs_no_python() -> None:
    runs = []

    def fun() -> np.ndarray:
        runs.append(1)
        return LARGE

    jitted = verax.jit(fun)
    assert jitted().tolist() == jitted().tolist() == LARGE.tolist()
    assert len(runs) == 1


def test_x64_is_the_same_in_lowering_and_running() -> None:
    wide = np.arange(3, dtype=np.float64)
    jitted = verax.jit(lambda: wide * 2)
    assert jitted().dtype == np.float32
    with verax.enable_x64():
        assert jitted().dtype == np.float64
    assert jitted().tolist() == [0, 2, 4]


def test_operations_of_the_library_are_staged_not_constants() -> None:
    jaxpr = verax.make_jaxpr(lambda x: x + vnp.ones(4096))(1.0)
    assert jaxpr.consts == ()
    assert "broadcast_in_dim" in str(jaxpr)


def test_constants_are_read_when_a_function_is_compiled() -> None:
    held = np.ones(3, np.float32)
    first = verax.jit(lambda x: x + held)
    assert first(1.0).tolist() == [2, 2, 2]
    held[:] = 5
    # An equal program of another function: the executable is shared, the values not.
    assert verax.jit(lambda x: x + held)(1.0).tolist() == [6, 6, 6]
    assert first(1.0).tolist() == [2, 2, 2]
    first.clear_cache()
    assert first(1.0).tolist() == [6, 6, 6]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(
    "use", [vnp.add, vnp.dot, lambda x, a: x + vnp.asarray(a)], ids=["add", "dot", "as"]
)
def test_uses_in_nested_traces_share_one_constant(use: Any, dtype: str) -> None:
    array = np.arange(4).astype(dtype)

    def f(x: Any) -> Any:
        inner = verax.lax.cond(
            x.sum() > 0, lambda x: use(x, array), lambda x: use(x, array) * 2, x
        )
        return inner + use(x, array)

    assert len(verax.make_jaxpr(f)(np.ones(4, np.float32)).consts) == 1


def test_a_buffer_written_between_uses_gives_two_constants() -> None:
    buffer = np.zeros(2)

    def f() -> Any:
        first = vnp.asarray(buffer)
        buffer[:] = 5
        return vnp.stack([first, vnp.asarray(buffer)])

    assert verax.jit(f)().tolist() == [[0, 0], [5, 5]]
