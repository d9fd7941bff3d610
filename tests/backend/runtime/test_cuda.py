"""The CUDA plugin is found and started without importing jax; seen at fakes of it."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jaxlib import xla_client

import verax
from verax.backend.runtime import client, cuda, environment
from verax.backend.runtime.cluster import Settings
from verax.errors import CompileError

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
    monkeypatch.setattr(environment, "GPU_FILES", (str(tmp_path / "nvidia[0-9]*"),))
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
    monkeypatch.setattr(cuda, "LOADED", cuda.LoadedPlugin())
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
    actual = cuda.find_plugin()
    assert actual is not None
    assert actual.library == installed / "jax_plugins" / "xla_cuda13" / cuda.LIBRARY
    assert not any(name.startswith("jax_plugins") for name in sys.modules)
    actual.library.unlink()
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
    monkeypatch.setattr(environment, "GPU_FILES", (str(tmp_path / "nvidia[0-9]*"),))
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


def test_the_plugin_hears_what_computes_parts_of_batches(
    installed: Path, runtime: Runtime
) -> None:
    told = "register_custom_call_as_batch_partitionable"
    cuda.register_batch_target("early")
    cuda.start_cuda_client()
    cuda.register_batch_target("late")
    c_api = "load_pjrt_plugin_dynamically"
    assert [entry[1:] for entry in runtime.said if entry[0] == told] == [
        ("early",),
        ("early", c_api),
        ("late",),
        ("late", c_api),
    ]


def refuse(message: str) -> Any:
    def raised(*args: Any, **options: Any) -> Any:
        raise RuntimeError(message)

    return raised


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("INTERNAL: cuInit: CUDA_ERROR_NO_DEVICE", "The driver shows no GPU"),
        ("NOT_FOUND: no supported devices found for CUDA", "The driver shows no GPU"),
        ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "driver is older than the plugin needs"),
        (
            "RESOURCE_EXHAUSTED: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            "no free memory: .*XLA_PYTHON_CLIENT_PREALLOCATE=false",
        ),
        ("INTERNAL: something else", r"something else\nNVIDIA's driver is not here"),
    ],
)
def test_a_start_that_fails_says_what_to_do(
    said: str,
    advice: str,
    installed: Path,
    runtime: Runtime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda, "DRIVER", "libcuda-is-not-here.so")
    monkeypatch.setattr(runtime, "make_c_api_client", refuse(said), raising=False)
    with pytest.raises(RuntimeError, match=f"(?s)'cuda' failed to init.*{advice}"):
        cuda.start_cuda_client()


def test_a_library_that_does_not_load(
    installed: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "DRIVER", "libc.so.6")
    load = refuse("Failed to open xla_cuda_plugin.so: libcudnn.so.9: cannot open")
    monkeypatch.setattr(runtime, "load_pjrt_plugin_dynamically", load, raising=False)
    with pytest.raises(RuntimeError, match=r"'cuda' failed .*libcudnn\.so\.9"):
        cuda.start_cuda_client()


@pytest.mark.parametrize("package", ["jax-cuda13-pjrt", "jax-cuda13-plugin"])
def test_a_plugin_of_another_version(
    package: str, installed: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {"jaxlib": "0.12.0.1", package: "0.11.2"}
    monkeypatch.setattr(cuda, "version_of", versions.get)
    message = rf"{package} has version 0\.11\.2, but jaxlib 0\.12\.0\.1\. .*==0\.12"
    with pytest.raises(RuntimeError, match=message):
        cuda.start_cuda_client()
    assert not runtime.said
    versions[package] = "0.12.0.1"
    cuda.start_cuda_client()


def test_extras_allow_the_versions_of_jaxlib() -> None:
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())["project"]
    (jaxlib,) = [x for x in project["dependencies"] if x.startswith("jaxlib")]
    for number in ("12", "13"):
        (plugin,) = project["optional-dependencies"][f"cuda{number}"]
        name = f"jax-cuda{number}-plugin[with-cuda]"
        assert plugin == jaxlib.replace("jaxlib", name)


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


def test_a_process_among_others_names_itself_and_its_gpus(
    installed: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own GPUs, if it lists them, come before those of the environment."""
    settings = Settings("host:1", "host:1", 4, 2, local_devices=(1,), partition_index=3)
    cluster = SimpleNamespace(connection=SimpleNamespace(settings=settings))
    monkeypatch.setattr(cuda, "CLUSTER", cluster)
    monkeypatch.setenv("VERAX_CUDA_VISIBLE_DEVICES", "0,2")
    options = cuda.client_options()
    chosen = {"node_id": 2, "num_nodes": 4, "partition_index": 3}
    assert {name: options[name] for name in chosen} == chosen
    assert options["visible_devices"] == [1]
    cluster.connection.settings = Settings("host:1", "host:1", 4, 0)
    options = cuda.client_options()
    assert (options["node_id"], options["visible_devices"]) == (0, [0, 2])
    assert "partition_index" not in options


def test_the_file_of_gpus_under_windows() -> None:
    assert "/dev/dxg" in environment.GPU_FILES


def test_gpus_have_several_files(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installed / "nvidia0").rename(installed / "dxg")
    assert cuda.find_plugin() is None
    patterns = (*environment.GPU_FILES, str(installed / "dxg"))
    monkeypatch.setattr(environment, "GPU_FILES", patterns)
    assert cuda.find_plugin() is not None


def test_options_of_the_compiler_for_gpus() -> None:
    """XLA takes them on every platform, and knows their types."""
    options: dict[str, Any] = {
        "xla_gpu_autotune_level": 0,
        "xla_gpu_enable_latency_hiding_scheduler": True,
        "xla_gpu_enable_command_buffer": "",
    }
    double = verax.jit(lambda x: x * 2, compiler_options=options)
    assert double(3.0) == 6
    wrong = verax.jit(lambda x: x * 3, compiler_options={"xla_gpu_autotune_level": "a"})
    with pytest.raises(CompileError, match="xla_gpu_autotune_level in compiler_opt"):
        wrong(3.0)


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


@pytest.mark.slow
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
