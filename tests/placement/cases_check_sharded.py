"""`verify.check_sharded` on eight devices: planted mistakes are found and named."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import P, lax, verify

MESH = verax.make_mesh((4,), ("m",))
GRID = verax.make_mesh((4, 2), ("a", "b"))
W = np.linspace(0.5, 1.5, 8, dtype=np.float32)
X = np.linspace(-1.0, 1.0, 64, dtype=np.float32).reshape(8, 8)


def loss(w: Any, x: Any) -> Any:
    return ((x @ w) ** 2).sum()


def by_rows(w: Any, x: Any) -> Any:
    """The rows are split, the weights are on all devices."""
    return lax.psum(loss(w, x), "m")


def by_weights(w: Any, x: Any) -> Any:
    """The weights are split, too, and gathered where they are needed."""
    return lax.psum(loss(lax.all_gather(w, "m", tiled=True), x), "m")


def by_columns(w: Any, x: Any) -> Any:
    """Each device has some columns and their weights."""
    return vnp.sum(lax.psum(x @ w, "m") ** 2)


def around(w: Any, x: Any) -> Any:
    """The rows go around the ring, one part at a time."""
    ring = [(i, (i + 1) % 4) for i in range(4)]
    total = vnp.zeros((), x.dtype)
    for _ in range(4):
        total, x = total + loss(w, x) / 4, lax.ppermute(x, "m", ring)
    return lax.psum(total, "m")


RIGHT = (
    (by_rows, (P(), P("m"))),
    (by_weights, (P("m"), P("m"))),
    (by_columns, (P("m"), P(None, "m"))),
    (around, (P(), P("m"))),
)


@pytest.mark.parametrize(
    ("local", "specs"), RIGHT, ids=lambda x: getattr(x, "__name__", "")
)
def test_right_programs_pass(local: Callable[..., Any], specs: Any) -> None:
    report = verify.check_sharded(
        loss, W, X, mesh=MESH, in_specs=specs, local=local, out_specs=P()
    )
    report.raise_if_broken()
    assert [finding.verdict for finding in report] == ["holds"] * 5


def broken(local: Callable[..., Any], law: str, **named: Any) -> str:
    given: dict[str, Any] = {"mesh": MESH, "in_specs": (P(), P("m")), "seed": 1}
    given |= {"out_specs": P(), "local": local, "laws": [law]}
    report = verify.check_sharded(loss, W, X, **given | named)
    (finding,) = report.broken
    return finding.evidence


def test_sum_that_was_forgotten() -> None:
    said = broken(loss, "shard_map")
    assert "out_specs" in said
    assert "check_vma=False" in said
    assert "verify.check_sharded(loss" in said
    said = broken(loss, "shard_map", check_vma=False)
    assert "result 0 is not that of one device" in said
    assert "instead of" in said


def test_sum_that_is_taken_twice() -> None:
    said = broken(
        lambda w, x: lax.psum(by_rows(w, x), "m"), "shard_map", check_vma=False
    )
    assert "4 times as large, the size of mesh axis 'm'" in said


def test_mean_in_place_of_a_sum() -> None:
    said = broken(lambda w, x: lax.pmean(loss(w, x), "m"), "vjp of shard_map")
    assert "the cotangent of argument w of loss is not that of one device" in said
    assert "1/4 of it, and 4 is the size of mesh axis 'm'" in said
    assert "got:" in said
    assert "want:" in said


def test_sum_of_gradients_that_are_summed_already() -> None:
    """A rule of a library that adds up over the devices what the map adds up."""

    @verax.custom_vjp
    def square(y: Any) -> Any:
        return y**2

    square.defvjp(lambda y: (y**2, y), lambda y, ct: (2 * y * ct * lax.axis_size("m"),))
    said = broken(lambda w, x: lax.psum(square(x @ w).sum(), "m"), "vjp inside")
    assert "the cotangent of argument w of loss is not that of one device" in said
    assert "4 times as large, the size of mesh axis 'm'" in said


def test_sum_over_another_axis() -> None:
    said = broken(
        lambda w, x: lax.psum(loss(w, x), "b"),
        "shard_map",
        mesh=GRID,
        in_specs=(P(), P("a")),
        check_vma=False,
    )
    assert "whole on all devices of the mesh ('a', 'b')" in said


def test_derivative_that_is_wrong_by_the_number_of_devices() -> None:
    """A rule that takes the devices into account, which the map does, too."""

    @verax.custom_vjp
    def square(y: Any) -> Any:
        return y**2

    square.defvjp(lambda y: (y**2, y), lambda y, ct: (4 * 2 * y * ct,))

    def local(w: Any, x: Any) -> Any:
        return lax.psum(square(x @ w).sum(), "m")

    verify.check_sharded(
        loss, W, X, mesh=MESH, in_specs=(P(), P("m")), local=local, out_specs=P(),
        laws=["shard_map"],
    ).raise_if_broken()  # fmt: skip
    said = broken(local, "vjp of shard_map")
    assert "4 times as large, the size of mesh axis 'm'" in said


def test_one_part_that_is_wrong_is_named() -> None:
    def scaled(x: Any) -> Any:
        return x * vnp.where(lax.axis_index("m") == 2, 3.0, 2.0)

    report = verify.check_sharded(
        lambda x: 2 * x, W, mesh=MESH, in_specs=P("m"), local=scaled, out_specs=P("m"),
        laws=["shard_map", "vjp of shard_map"],
    )  # fmt: skip
    for finding in report:
        assert "in part 2 along mesh axis 'm'" in finding.evidence


def test_evidence_holds_a_program_that_shows_it_again() -> None:
    said = broken(lambda w, x: lax.pmean(loss(w, x), "m"), "vjp of shard_map")
    assert "mesh = verax.make_mesh((4,), ('m',))" in said
    assert "in_specs=(P(), P('m',))" in said


def test_parts_without_a_program_of_their_own() -> None:
    report = verify.check_sharded(loss, W, X, mesh=GRID, in_specs=(P("b"), P("a", "b")))
    report.raise_if_broken()
    assert [finding.law for finding in report] == ["jit", "vjp of jit"]


@pytest.mark.parametrize(
    ("named", "error", "says"),
    [
        ({"mesh": None}, TypeError, "needs a mesh of devices"),
        ({"out_specs": P()}, ValueError, "local and out_specs together"),
        ({"in_specs": (P(), "m")}, TypeError, "must be made of PartitionSpecs"),
        ({"in_specs": (P(), P(None, None, "m"))}, ValueError, "argument x of loss"),
        ({"laws": ["vjp inside"]}, ValueError, "there is no law 'vjp inside' here"),
        ({"local": 3, "out_specs": P()}, TypeError, "check_sharded"),
    ],
)
def test_bad_calls(named: dict[str, Any], error: type[Exception], says: str) -> None:
    given: dict[str, Any] = {"mesh": MESH, "in_specs": (P(), P("m"))}
    with pytest.raises(error, match=says):
        verify.check_sharded(loss, W, X, **given | named)
