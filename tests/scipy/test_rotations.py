"""`verax.scipy.spatial.transform`: rotations against SciPy's."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation as ScipyRotation, Slerp as ScipySlerp

import verax
import verax.numpy as vnp
from verax.scipy.spatial.transform import Rotation, Slerp

FORMS = ["as_matrix", "as_mrp", "as_rotvec", "as_quat", "magnitude"]
PROPER = ["".join(s) for s in itertools.permutations("xyz", 2)]
ORDERS = ["".join(s) for s in itertools.permutations("xyz")]
ORDERS += [s + s[0] for s in PROPER]


def close(result: Any, expected: Any, tolerance: float) -> None:
    np.testing.assert_allclose(np.asarray(result), expected, tolerance, tolerance)


def quaternions(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape)


def pair(*shape: int) -> tuple[Any, Any]:
    q = quaternions(*shape)
    return Rotation.from_quat(q), ScipyRotation.from_quat(q)


@pytest.fixture(autouse=True)
def wide() -> Any:
    with verax.enable_x64(True):
        yield


@pytest.mark.parametrize("shape", [(4,), (5, 4), (1, 4)])
def test_every_form_is_that_of_scipy_and_leads_back(shape: tuple[int, ...]) -> None:
    ours, theirs = pair(*shape)
    for name in FORMS:
        close(getattr(ours, name)(), getattr(theirs, name)(), 1e-12)
    close(ours.as_quat(canonical=True), theirs.as_quat(canonical=True), 1e-12)
    close(ours.as_quat(scalar_first=True), theirs.as_quat(scalar_first=True), 1e-12)
    close(ours.as_rotvec(degrees=True), theirs.as_rotvec(degrees=True), 1e-10)
    for name in ("matrix", "mrp", "rotvec"):
        form = getattr(ours, f"as_{name}")()
        back = getattr(Rotation, f"from_{name}")(form)
        assert float(vnp.max((back * ours.inv()).magnitude())) < 1e-7


@pytest.mark.parametrize("axes", ORDERS)
@pytest.mark.parametrize("intrinsic", [True, False])
def test_euler_angles(axes: str, intrinsic: bool) -> None:
    seq = axes.upper() if intrinsic else axes
    ours, theirs = pair(6, 4)
    angles = theirs.as_euler(seq, degrees=True)
    close(ours.as_euler(seq, degrees=True), angles, 1e-10)
    turn = Rotation.from_euler(seq, angles, degrees=True)
    close(turn.as_matrix(), theirs.as_matrix(), 1e-12)


@pytest.mark.parametrize("axes", ORDERS)
def test_at_a_pole_the_third_angle_is_zero(axes: str) -> None:
    for seq in (axes, axes.upper()):
        for middle in (0.0, np.pi) if axes[0] == axes[2] else (-np.pi / 2, np.pi / 2):
            turn = Rotation.from_euler(seq, np.array([0.3, middle, 0.4]))
            angles = turn.as_euler(seq)
            assert float(angles[2]) == 0.0
            back = Rotation.from_euler(seq, angles)
            assert float((back * turn.inv()).magnitude()) < 1e-7


def test_composing_applying_and_averaging() -> None:
    (p, a), (q, b) = pair(5, 4), pair(4)
    close((p * q).as_matrix(), (a * b).as_matrix(), 1e-12)
    v = np.arange(15.0).reshape(5, 3)
    close(p.apply(v), a.apply(v), 1e-12)
    close(p.apply(v, inverse=True), a.apply(v, inverse=True), 1e-12)
    close(q.apply(v), b.apply(v), 1e-12)
    w = np.arange(1.0, 6.0)
    close(p.mean(w).as_matrix(), a.mean(w).as_matrix(), 1e-12)
    assert len(Rotation.concatenate([p, p[1:3]])) == 7
    assert [r.single for r in (q, p, p[2])] == [True, False, True]


def test_interpolation_at_and_between_the_times() -> None:
    ours, theirs = pair(4, 4)
    times = np.array([0.0, 1.0, 3.0, 4.0])
    at = np.array([0.0, 0.5, 1.0, 2.5, 4.0])
    slerp = Slerp.init(times, ours)
    close(slerp(at).as_matrix(), ScipySlerp(times, theirs)(at).as_matrix(), 1e-12)
    assert slerp(0.5).single


def test_a_rotation_is_a_pytree_and_has_derivatives_at_the_identity() -> None:
    ours, _ = pair(3, 4)
    turned = verax.jit(verax.vmap(lambda r, v: r.inv().apply(r.apply(v))))
    close(turned(ours, vnp.ones((3, 3))), np.ones((3, 3)), 1e-12)
    there = verax.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec())
    close(there(vnp.zeros(3)), np.eye(3), 1e-12)
    matrix = verax.jacobian(lambda v: Rotation.from_rotvec(v).as_matrix())
    close(matrix(vnp.zeros(3))[2, 1], np.array([1.0, 0.0, 0.0]), 1e-12)


def test_the_identity_and_random_rotations() -> None:
    assert Rotation.identity().quat.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert Rotation.identity(2).quat.shape == (2, 4)
    actual = Rotation.random(verax.random.key(0), 500)
    close(vnp.sum(actual.quat**2, axis=-1), np.ones(500), 1e-12)
    assert float(vnp.abs(vnp.mean(actual.as_matrix(), axis=0)).max()) < 0.1


def test_what_does_not_fit_is_an_error() -> None:
    ours, _ = pair(3, 4)
    for seq in ("", "xyzx", "xxz", "xYz", "xyw"):
        with pytest.raises(ValueError, match="from_euler"):
            Rotation.from_euler(seq, np.zeros(len(seq)))
    with pytest.raises(ValueError, match="three axes"):
        ours.as_euler("xy")
    with pytest.raises(ValueError, match="shape"):
        Rotation.from_quat(np.ones(3))
    with pytest.raises(ValueError, match="one weight"):
        ours.mean(np.ones(1))
    with pytest.raises(TypeError, match="single"):
        len(ours[0])
    with pytest.raises(TypeError, match="single"):
        ours[0][0]
    with pytest.raises(ValueError, match="at least two"):
        Slerp.init(np.zeros(1), ours[:1])
    with pytest.raises(ValueError, match="one time"):
        Slerp.init(np.zeros(1), ours)
    with pytest.raises(TypeError, match="Rotation"):
        Slerp.init(np.arange(2.0), [1.0])  # type: ignore[arg-type]  # the error's subject
    with pytest.raises(ValueError, match="vector"):
        Slerp.init(np.arange(3.0), ours)(np.zeros((1, 1)))
