"""What reverse mode keeps, told by `ad_checkpoint`; policies that offload."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import checkpoint_policies as policies
from verax.ad_checkpoint import (
    checkpoint_name,
    print_saved_residuals,
    saved_residuals,
)

X = vnp.asarray(np.arange(9, dtype=np.float32).reshape(3, 3) / 9)


def test_where_residuals_come_from() -> None:
    def f(x: Any, y: Any) -> Any:
        return vnp.sum(checkpoint_name(vnp.sin(x), "hey") * y["a"] * vnp.cos(x))

    texts = [text for _, text in saved_residuals(f, X, {"a": X})]
    assert "from the argument y['a']" in texts
    assert any(text.startswith("named 'hey' from") for text in texts)
    assert any(text.startswith("output of cos from") for text in texts)
    again = [text for _, text in saved_residuals(verax.checkpoint(f), X, y={"a": X})]
    assert again == ["from the argument x", "from the argument y['a']"]


def twice(x: Any) -> Any:
    return vnp.sin(vnp.sin(x))


def test_residuals_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_saved_residuals(verax.checkpoint(twice), X)
    assert capsys.readouterr().out == "f32[3,3] from the argument x\n"


def layer(x: Any) -> Any:
    return vnp.sin(checkpoint_name(vnp.sin(x @ x), "inner") @ x)


@pytest.mark.parametrize(
    "policy",
    [
        policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[],
            names_which_can_be_offloaded=["inner"],
            offload_src="device",
            offload_dst="pinned_host",
        ),
    ],
)
def test_policies_that_offload_move_what_they_name(policy: Any) -> None:
    f = verax.checkpoint(layer, policy=policy)
    texts = [text for _, text in saved_residuals(f, X)]
    assert any("output of device_put" in text for text in texts), texts
    actual = verax.grad(lambda x: f(x).sum())(X)
    np.testing.assert_allclose(actual, verax.grad(lambda x: layer(x).sum())(X), 1e-5)


def test_a_name_is_saved_or_offloaded() -> None:
    with pytest.raises(ValueError, match=r"both hold \['a'\]"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"],
            names_which_can_be_offloaded=["a"],
            offload_src="device",
            offload_dst="pinned_host",
        )


def scaled(cfg: Any, x: Any) -> Any:
    return x * cfg["a"]


def test_checkpoint_takes_static_arguments_of_any_kind() -> None:
    f: Any = verax.checkpoint(scaled, static_argnums=0)
    assert verax.grad(lambda x: f({"a": 2.0}, x))(1.0) == 2.0
    kinds = verax.checkpoint(lambda x: (x, isinstance(x, verax.Array)))(1.0)
    assert kinds[1]
