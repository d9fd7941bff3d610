"""The CUDA plugin is found and started without importing jax; seen at fakes of it."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jaxlib import xla_client

from verax.backend.runtime import client, cuda

SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a GPU and a plugin, whose packages cannot be imported."""
    for folder in ("xla_cuda12", "xla_cuda13"):
        home = tmp_path / "jax_plugins" / folder
        home.mkdir(parents=True)
        (home / "__init__.py").write_text("import jax_is_not_here")
        (home / cuda.LIBRARY).touch()
    gpu = tmp_path / "nvidia0"
    gpu.touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(cuda, "GPU_FILES", str(tmp_path / "nvidia[0-9]*"))
    return tmp_path


class Runtime:
    """Stands for jaxlib: notes what it is told, in order."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.real = xla_client

    def __getattr__(self, name: str) -> Any:
        if name == "generate_pjrt_gpu_plugin_options":
            return self.real.generate_pjrt_gpu_plugin_options

        def note(*args: Any, **options: Any) -> Any:
            self.said.append((name, *args, *options.values()))
            return False if name == "pjrt_plugin_initialized" else name

        return note

    def names(self) -> list[str]:
        return [entry[0] for entry in self.said]


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    fake = Runtime()
    monkeypatch.setattr(cuda, "xla_client", fake)
    monkeypatch.setattr(cuda, "_profiler", fake)
    extension = SimpleNamespace(
        register_custom_type=lambda *args: None,
        register_custom_call_target=lambda *args: None,
        ffi_types=lambda: {"a_type": 1},
        ffi_handlers=lambda: {"a_kernel": 2},
    )
    support = SimpleNamespace(import_from_plugin=lambda name, part: extension)
    monkeypatch.setattr(cuda, "plugin_support", support)
    return fake


def test_the_newest_plugin_is_found_without_importing_it(installed: Path) -> None:
    found = cuda.find_plugin()
    assert found is not None
    assert found.library == installed / "jax_plugins" / "xla_cuda13" / cuda.LIBRARY
    assert not any(name.startswith("jax_plugins") for name in sys.modules)
    found.library.unlink()
    older = cuda.find_plugin()
    assert older is not None
    assert older.library.parent.name == "xla_cuda12"


def test_a_plugin_without_a_gpu_is_not_used(installed: Path) -> None:
    (installed / "nvidia0").unlink()
    assert cuda.find_plugin() is None
    with pytest.raises(RuntimeError, match="no NVIDIA GPU"):
        cuda.start_cuda_client()


def test_a_gpu_without_a_plugin_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(cuda, "GPU_FILES", str(tmp_path / "nvidia[0-9]*"))
    with pytest.raises(RuntimeError, match="jax-cuda13-plugin"):
        cuda.start_cuda_client()


def test_the_client_starts_step_by_step(installed: Path, runtime: Runtime) -> None:
    started: object = cuda.start_cuda_client()
    assert started == "make_c_api_client"
    names = runtime.names()
    assert names[0] == "load_pjrt_plugin_dynamically"
    assert runtime.said[0][1:] == ("cuda", str(cuda.find_plugin().library))  # type: ignore[union-attr]  # it is installed
    assert names[1] == "register_plugin_profiler"
    assert ("register_custom_type", "a_type", 1, "CUDA") in runtime.said
    assert ("register_custom_call_target", "a_kernel", 2, "CUDA", 1) in runtime.said
    assert names[-2:] == ["initialize_pjrt_plugin", "make_c_api_client"]
    options = runtime.said[-1][2]
    assert options["platform_name"] == "cuda"


def test_memory_and_devices_come_from_the_usual_variables(
    installed: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    monkeypatch.setenv("XLA_CLIENT_MEM_FRACTION", ".25")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")
    monkeypatch.setenv("JAX_CUDA_VISIBLE_DEVICES", "0,2")
    cuda.start_cuda_client()
    options = runtime.said[-1][2]
    assert options["preallocate"] is False
    assert options["memory_fraction"] == 0.25
    assert options["allocator"] == "platform"
    assert options["visible_devices"] == [0, 2]
    monkeypatch.setenv("VERAX_CUDA_VISIBLE_DEVICES", "all")
    assert cuda.visible_devices() is None
    monkeypatch.setenv("VERAX_CUDA_VISIBLE_DEVICES", "first")
    with pytest.raises(ValueError, match="VERAX_CUDA_VISIBLE_DEVICES must list"):
        cuda.visible_devices()
    monkeypatch.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "mine")
    with pytest.raises(ValueError, match="XLA_PYTHON_CLIENT_ALLOCATOR"):
        cuda.client_options()


def test_libraries_of_nvidia_are_loaded_where_pip_put_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcudart.so.13").touch()
    loaded: list[str] = []
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("ctypes.CDLL", loaded.append)
    assert cuda.load_nvidia_libraries() == [folder / "libcudart.so.13"]
    assert loaded == [str(folder / "libcudart.so.13")]


def test_platform_is_chosen_by_what_is_installed(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in client.PLATFORM_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    assert client.platform_from_environment() == "cuda"
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert client.platform_from_environment() == "cpu"
    monkeypatch.setenv("VERAX_PLATFORMS", "gpu,cpu")
    assert client.platform_from_environment() == "cuda"


def test_asking_for_cuda_without_it_is_an_error_and_no_abort() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import verax; verax.devices()"],
        env={**os.environ, "VERAX_PLATFORMS": "cuda", "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "The platform 'cuda' failed to initialize" in done.stderr


def test_processors_are_there_beside_the_platform() -> None:
    assert client.devices("cpu") == client.devices()
    assert len(client.local_devices("cpu")) >= 1
