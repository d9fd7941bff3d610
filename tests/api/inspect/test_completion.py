"""What editors offer after a dot: the public names, without what verax keeps there."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp

MESH = verax.make_mesh((1,), ("x",))
JITTED = verax.jit(lambda x: x * 2)


def shown(x: object) -> list[str]:
    return [name for name in dir(x) if not name.startswith("_")]


@pytest.mark.parametrize(
    ("x", "names"),
    [
        (JITTED, "clear_cache eval_shape explain lower trace"),
        (verax.custom_jvp(lambda x: x), "clear_cache defjvp defjvps"),
        (verax.custom_vjp(lambda x: x), "clear_cache defvjp defvjp_with_logs"),
        (
            verax.vjp(lambda x: x, 1.0)[1],
            "args_res opaque_residuals with_logs with_refs",
        ),
        (
            vnp.ones(3).at[0],
            "add apply divide get max min mul multiply power set subtract",
        ),
        (vnp.ones(3).at, ""),
    ],
    ids=lambda x: type(x).__name__,
)
def test_names_of_small_objects(x: Any, names: str) -> None:
    assert shown(x) == names.split()


@pytest.mark.parametrize(
    ("x", "hidden"),
    [
        (vnp.ones(3), "host buffer kind placed namespace"),
        (verax.new_ref(1.0), "read write pinned"),
        (JITTED.lower(1.0), "interface module stage"),
        (JITTED.lower(1.0).compile(), "program moves remember slow_call"),
        (MESH, "key transient"),
        (verax.NamedSharding(MESH, verax.P("x")), "splits tiling"),
        (verax, "wiring keeping rules facade"),
        (vnp, "arguments facade"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_is_kept_out(x: Any, hidden: str) -> None:
    names = shown(x)
    assert not set(names).intersection(hidden.split())
    assert len(names) >= 5
    for name in names:
        assert name in {"device_buffer"} or hasattr(type(x), name) or hasattr(x, name)


def test_an_array_has_the_methods_of_numpy() -> None:
    assert {"sum", "reshape", "astype", "at", "T"} < set(shown(vnp.ones(3)))


def test_errors_call_an_array_an_array() -> None:
    x: Any = vnp.ones(3)
    with pytest.raises(TypeError, match=r"\+: 'Array' and 'str'"):
        x + "a"
    with pytest.raises(AttributeError, match="'Array' object has no attribute 'foo'"):
        x.foo  # noqa: B018


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("unsqueeze", "verax.numpy.expand_dims"),
        ("backward", r"verax.grad\(f\)\(x\)"),
        ("to", r"x.astype\(dtype\), or verax.device_put"),
        ("strides", "not needed"),
    ],
)
def test_names_of_other_libraries(name: str, here: str) -> None:
    traced: list[Any] = []

    def keep(x: Any) -> Any:
        traced.append(x)
        return x

    verax.make_jaxpr(keep)(np.ones(2))
    with pytest.raises(AttributeError, match=f"{name} is {here}") as caught:
        getattr(vnp.ones(2), name)
    assert caught.value.name == name
    assert not hasattr(vnp.ones(2), name)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
        getattr(traced[0], name)


def test_a_view_of_another_shape() -> None:
    x: Any = vnp.ones(6)
    for sizes in ((3, 2), (-1,), ((2, 3),)):
        with pytest.raises(TypeError, match=r"write x\.reshape"):
            x.view(*sizes)
    assert x.view(np.int32).dtype == np.int32


def test_names_of_functions_of_other_libraries() -> None:
    with pytest.raises(AttributeError, match=r"cat is verax\.numpy\.concatenate"):
        getattr(vnp, "cat")  # noqa: B009
    with pytest.raises(AttributeError, match="NumPy's in1d is isin"):
        getattr(vnp, "in1d")  # noqa: B009
