"""Where devices have memory of their own, eager operations never go to the host.

A CPU stands for the accelerator: its arrays are buffers, and every read of one by the
host is counted.
"""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, nn, random
from verax.api.config.config import compute_on_devices, eager_of
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.eager.interpreter import DeviceInterpreter
from verax.backend.runtime import client
from verax.backend.runtime.metrics import TALLY
from verax.experimental import checkify
from verax.rules.values.state import STATE, State, refresh


@pytest.fixture
def accelerator() -> Iterator[None]:
    """The process as it is once the client of an accelerator has started."""
    compute_on_devices()
    yield
    State.accelerated = False
    State.interpreter = State.eager = eager_of(State)
    refresh()


MATRIX = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
MATRIX += 4 * np.eye(4, dtype=np.float32)
INDICES = np.array([2, 0, 2])


@verax.custom_jvp
def doubled(x: Any) -> Any:
    return x * 2


doubled.defjvp(lambda xs, ts: (doubled(*xs), ts[0] * 2))

EAGER: dict[str, Callable[[Any], Any]] = {
    "operators": lambda x: (x + 1, 2 * x, x / x, -x, x**2, x > 0, x @ x),
    "functions": lambda x: (vnp.sin(x), vnp.where(x > 0, x, 0), vnp.clip(x, 0, 1)),
    "reductions": lambda x: (x.sum(), x.mean(0), x.std(), x.max(1), vnp.median(x)),
    "positions": lambda x: (x.argmax(), vnp.cumsum(x), vnp.sort(x), vnp.argsort(x, 0)),
    "shapes": lambda x: (x.T, x.reshape(2, 8), x.ravel(), vnp.stack([x, x]), x[None]),
    "reads": lambda x: (x[0], x[1, 2], x[::2, -1], x[..., 1:], x[INDICES]),
    "reads at": lambda x: x[vnp.argmax(x, 0)],
    "writes": lambda x: (x.at[0].set(1.0), x.at[1, 2].add(x[0, 0]), x.at[1:].mul(3)),
    "rows": list,
    "dtypes": lambda x: (x.astype(vnp.int32), x.astype(vnp.bfloat16), x == x),
    "creation": lambda x: (vnp.zeros_like(x) + vnp.ones(4), vnp.full_like(x, 3) * x),
    "products": lambda x: (
        vnp.einsum("ij,kj->ik", x, x),
        vnp.dot(x, x),
        vnp.outer(x, x),
    ),
    "linalg": lambda x: (vnp.linalg.solve(x, x), vnp.linalg.det(x), vnp.linalg.inv(x)),
    "fft": lambda x: vnp.abs(vnp.fft.fft(x)),
    "nn": lambda x: (nn.softmax(x), nn.gelu(x), nn.relu(x), nn.logsumexp(x)),
    "random": lambda x: x + random.normal(random.key(1), (4, 4)),
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c * y), x[0], x),
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 99, lambda c: c + 1, x),
    "cond": lambda x: lax.cond(x.sum() > 0, lambda y: y + 1, lambda y: y, x),
    "windows": lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"),
    "gradients": lambda x: verax.grad(lambda y: (vnp.tanh(y) @ y).sum())(x),
    "batches": lambda x: verax.vmap(lambda row: row / row.sum())(x),
    "pushed": lambda x: verax.jvp(lambda y: vnp.exp(y / 9), (x,), (x,)),
    "custom": lambda x: (doubled(x), verax.grad(lambda y: doubled(y).sum())(x)),
    "checkpoint": lambda x: verax.checkpoint(vnp.sin)(x),
    "compiled": lambda x: verax.jit(lambda y: y + 1)(x) * 2,
    "values of the host": lambda x: (
        x + np.ones(4),
        np.float64(2) * x,
        x @ MATRIX,
        1 - x,
    ),
    "several results": lambda x: (*vnp.frexp(x), *vnp.modf(x), *vnp.split(x, 2)),
    "keys": lambda x: random.bits(random.split(random.key(3), 2)[1], (3,)),
    "trees": lambda x: verax.tree.map(vnp.add, {"a": x}, {"a": x}),
    "top k": lambda x: lax.top_k(x, 2),
}


def on_device(values: np.ndarray) -> verax.Array:
    """An array of which the host has no copy."""
    made = verax.jit(lambda x: x + 0)(values)
    assert isinstance(made, ConcreteArray)
    assert made.host is None
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", EAGER)
@pytest.mark.usefixtures("little_effort")
def test_eager_operations_stay_on_the_device(name: str, accelerator: None) -> None:
    f = EAGER[name]
    x = on_device(MATRIX)
    before = TALLY.bytes_to_host
    outs = verax.tree.leaves(f(x))
    assert TALLY.bytes_to_host == before
    assert all(type(y) is ConcreteArray and y.host is None for y in outs)
    compiled = verax.tree.leaves(verax.jit(lambda x: f(x))(x))
    for y, z in zip(outs, compiled, strict=True):
        assert (y.dtype, y.shape, y.weak_type) == (z.dtype, z.shape, z.weak_type)
        np.testing.assert_allclose(y, z, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_training_step_copies_nothing_to_the_host(accelerator: None) -> None:
    def loss(params: Any, x: Any) -> Any:
        hidden = nn.relu(x @ params["in"] + params["bias"])
        return ((hidden @ params["out"]) ** 2).mean()

    keys = random.split(random.key(0), 2)
    params = {
        "in": random.normal(keys[0], (4, 8)),
        "bias": vnp.zeros(8),
        "out": random.normal(keys[1], (8, 2)) / 3,
    }
    momentum = verax.tree.map(vnp.zeros_like, params)
    step = verax.jit(verax.value_and_grad(loss))
    x = on_device(MATRIX)
    before = TALLY.bytes_to_host
    values = []
    for _ in range(3):
        value, grads = step(params, x)
        momentum = verax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        params = verax.tree.map(lambda p, m: p - 0.001 * m, params, momentum)
        values.append(value)
    assert TALLY.bytes_to_host == before
    assert float(values[-1]) < float(values[0])
    assert TALLY.bytes_to_host == before + 8


def test_functions_of_the_user_get_their_values(accelerator: None) -> None:
    x = on_device(MATRIX)
    actual = verax.pure_callback(lambda v: np.asarray(v) + 1, x, x)
    np.testing.assert_array_equal(actual, MATRIX + 1)


@pytest.mark.parametrize("placed", [False, True])
def test_checks_look_at_values_on_the_host(placed: bool, accelerator: None) -> None:
    """A program could not raise their exceptions."""
    x = on_device(MATRIX)
    if placed:
        x = verax.device_put(x, verax.devices()[0])

    def positive(row: Any) -> Any:
        checkify.check(vnp.all(row > 100), "the least is {}", row.min())
        return row

    with pytest.raises(checkify.JaxRuntimeError, match="the least is -"):
        positive(x - 100)
    with pytest.raises(checkify.JaxRuntimeError, match="the least is -"):
        verax.vmap(positive)(x - 100)
    np.testing.assert_array_equal(verax.vmap(positive)(x + 200), MATRIX + 200)


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda: vnp.true_divide(1, 2), 0.5),
        (lambda: vnp.power(2, 3), 8),
        (lambda: vnp.sqrt(4), 2),
        (lambda: vnp.imag(2.0), 0),
        (lambda: vnp.hypot(3, 4), 5),
        (lambda: vnp.round(vnp.asarray(1.234), 2), 1.23),
    ],
)
def test_numbers_without_arrays(
    call: Callable[[], Any], value: float, accelerator: None
) -> None:
    assert float(call()) == pytest.approx(value)


def test_an_operation_is_looked_up_by_what_its_operands_are(accelerator: None) -> None:
    """Equal shapes and dtypes of NumPy mean another type with 64 bits."""
    x, values = on_device(MATRIX), MATRIX.astype(np.float64)
    for wide in (False, True, False):
        with verax.enable_x64(wide):
            y = lax.mul(values, values)
            assert y.dtype == (np.float64 if wide else np.float32)
            np.testing.assert_allclose(y, MATRIX**2, rtol=1e-6)
            assert (x * MATRIX).dtype == np.float32
    with pytest.raises(TypeError, match="mul"):
        lax.mul(x, vnp.ones((4, 3)))
    placed = verax.device_put(x, verax.devices()[0])
    assert (placed * x).committed
    assert not (x * x).committed
    assert float(lax.mul(vnp.float32(2), 3.0)) == 6


def test_tangents_of_integers_are_those_of_numpy(accelerator: None) -> None:
    zeros = np.zeros(3, verax.dtypes.float0)
    rows: Any = verax.vmap(lambda x: zeros)(on_device(MATRIX))
    assert (rows.shape, rows.dtype) == ((4, 3), zeros.dtype)
    kept: Any = lax.cond(on_device(MATRIX)[0, 0] > 0, lambda z: z, lambda z: z, zeros)
    assert (kept.shape, kept.dtype) == ((3,), zeros.dtype)


def test_options_keep_the_operations_on_the_device(accelerator: None) -> None:
    x = on_device(MATRIX)
    with verax.default_matmul_precision("highest"), verax.enable_x64():
        assert type(STATE.interpreter) is DeviceInterpreter
        assert type(x @ x) is ConcreteArray
    with verax.debug_nans(True), pytest.raises(FloatingPointError):
        vnp.log(-x)


@pytest.mark.parametrize(("platform", "count"), [("cpu", 0), ("cuda", 1), ("gpu", 1)])
def test_the_start_of_a_client_decides(
    platform: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[None] = []
    started = SimpleNamespace(platform=platform)
    monkeypatch.setattr(client, "start_client", lambda options: started)
    monkeypatch.setattr("os.register_at_fork", lambda **options: None)
    monkeypatch.setattr(State, "accelerate", staticmethod(lambda: told.append(None)))
    actual: object = client.ClientSlot().get()
    assert actual is started
    assert len(told) == count
