"""The client starts once, late, and only with options that the runtime survives."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.backend.programs import on_device, vector
from verax.backend.runtime import client
from verax.backend.runtime.client import ClientOptions, ClientSlot

SOURCE = Path(__file__).parents[3] / "src"
VARIABLES = (*client.PLATFORM_VARIABLES, *client.DEVICE_COUNT_VARIABLES)


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for variable in (*VARIABLES, "XLA_FLAGS", "TF_CPP_MIN_LOG_LEVEL"):
        monkeypatch.delenv(variable, raising=False)
    return monkeypatch


def run(source: str) -> subprocess.CompletedProcess[str]:
    """A fresh process, which sees the environment as it is now."""
    return subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.slow
def test_import_starts_no_client_and_client_prints_nothing(
    bare_environment: pytest.MonkeyPatch,
) -> None:
    done = run(
        "import verax.backend.runtime.buffers, verax.backend.xla.executable\n"
        "from verax.backend.runtime import client\n"
        "assert client.SLOT.client is None\n"
        "print(client.device_count(), client.SLOT.client is not None)"
    )
    assert (done.stdout, done.stderr) == ("1 True\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "value", "count"),
    [
        ("VERAX_NUM_CPU_DEVICES", "3", 3),
        ("JAX_NUM_CPU_DEVICES", "2", 2),
        ("XLA_FLAGS", "--xla_force_host_platform_device_count=4", 4),
    ],
)
def test_environment_sets_the_number_of_devices(
    bare_environment: pytest.MonkeyPatch, variable: str, value: str, count: int
) -> None:
    bare_environment.setenv(variable, value)
    done = run(
        "from verax.backend.runtime import client; print(client.local_device_count())"
    )
    assert done.stdout == f"{count}\n"


def test_options_win_over_the_environment(bare_environment: pytest.MonkeyPatch) -> None:
    bare_environment.setenv("VERAX_NUM_CPU_DEVICES", "3")
    started = client.start_client(ClientOptions(device_count=2))
    assert [device.id for device in started.devices()] == [0, 1]


def test_many_devices_and_their_attributes() -> None:
    started = client.start_client(ClientOptions(platform="cpu", device_count=5))
    assert started.device_count() == len(started.local_devices()) == 5
    device = started.devices()[4]
    assert (device.id, device.platform, device.device_kind) == (4, "cpu", "cpu")
    assert device.client is started
    assert device.process_index == started.process_index() == 0
    assert device.memory_stats() is None
    assert isinstance(started.platform_version, str)


@pytest.mark.parametrize("count", [0, -1, 2049])
def test_impossible_device_count(count: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 2048"):
        ClientOptions(device_count=count)


@pytest.mark.parametrize("count", ["2", True, 1.0])
def test_device_count_of_wrong_type(count: object) -> None:
    with pytest.raises(TypeError, match="must be an integer"):
        ClientOptions(device_count=count)  # type: ignore[arg-type]  # what is tested


def test_unknown_platform_is_named_with_its_origin(
    bare_environment: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match=r"option platform .* 'abacus'.*: cpu"):
        ClientOptions(platform="abacus")
    bare_environment.setenv("JAX_PLATFORMS", "abacus")
    with pytest.raises(ValueError, match="JAX_PLATFORMS asks for the platform"):
        client.platform_from_environment()
    bare_environment.setenv("VERAX_PLATFORMS", " CPU ,")
    assert client.platform_from_environment() == "cpu"
    bare_environment.setenv("VERAX_PLATFORMS", "cpu,abacus")
    with pytest.raises(ValueError, match="VERAX_PLATFORMS"):
        client.platform_from_environment()


@pytest.mark.parametrize("value", ["many", "0"])
def test_bad_device_count_in_environment(
    bare_environment: pytest.MonkeyPatch, value: str
) -> None:
    bare_environment.setenv("VERAX_NUM_CPU_DEVICES", value)
    with pytest.raises(ValueError, match="VERAX_NUM_CPU_DEVICES must"):
        client.device_count_from_environment()


def test_threads_get_one_client() -> None:
    slot = ClientSlot()
    with ThreadPoolExecutor(8) as pool:
        clients = list(pool.map(lambda _: slot.get(), range(8)))
    assert all(each is clients[0] for each in clients)


def test_options_are_fixed_once_the_client_runs() -> None:
    slot = ClientSlot()
    slot.configure(ClientOptions(device_count=2))
    assert slot.get().device_count() == 2
    slot.configure(ClientOptions(device_count=2))
    with pytest.raises(RuntimeError, match="already started"):
        slot.configure(ClientOptions(device_count=3))


def test_unknown_backend() -> None:
    assert client.devices("cpu") == client.devices()
    with pytest.raises(RuntimeError, match="Unknown backend 'tpu'"):
        client.devices("tpu")


def test_live_buffers_come_and_go() -> None:
    buffer = on_device(vector())
    assert any(each is buffer for each in client.live_buffers())
    buffer.delete()
    assert not any(each is buffer for each in client.live_buffers())
