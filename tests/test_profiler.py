"""Recordings hold what they should, and there is one at a time."""

import gzip
import json
import socket
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from jaxlib import _profiler

import verax
import verax.numpy as vnp
from verax import profiler
from verax.backend.runtime.perfetto import serving, write_perfetto


def events(folder: Path) -> list[str]:
    """The names of all events in a recording."""
    (file,) = folder.rglob("*.trace.json.gz")
    actual = json.loads(gzip.decompress(file.read_bytes()))
    return [event.get("name", "") for event in actual["traceEvents"]]


@profiler.annotate_function
def annotated(x: float) -> float:
    return x + 1


def test_a_recording_has_annotations_and_programs(tmp_path: Path) -> None:
    with profiler.trace(tmp_path):
        with (
            profiler.TraceAnnotation("reading", rows=3),
            profiler.StepTraceAnnotation("training", step_num=7),
        ):
            verax.jit(lambda x: vnp.sin(x) @ x)(vnp.ones((64, 64))).block_until_ready()
        assert annotated(1.0) == 2.0
    names = events(tmp_path)
    assert "reading" in names
    assert "training" in names
    assert "annotated" in names
    assert list(tmp_path.rglob("*.xplane.pb"))


def test_there_is_one_recording_at_a_time(tmp_path: Path) -> None:
    with (
        profiler.trace(tmp_path / "one"),
        pytest.raises(RuntimeError, match=r"recording to .*one"),
    ):
        profiler.start_trace(tmp_path / "two")
    with pytest.raises(RuntimeError, match="not recording"):
        profiler.stop_trace()
    with profiler.trace(tmp_path / "two"):
        pass
    assert not (tmp_path / "three").exists()


def test_an_error_ends_the_recording(tmp_path: Path) -> None:
    with pytest.raises(KeyError), profiler.trace(tmp_path):
        raise KeyError("inside")
    with pytest.raises(RuntimeError, match="not recording"):
        profiler.stop_trace()


def test_wrong_name() -> None:
    with pytest.raises(TypeError, match="must be a string, not 3"):
        profiler.TraceAnnotation(3)  # type: ignore[arg-type]  # the error is the test


# jaxlib makes classes without a module, and dies where that warning is an error.
@pytest.mark.filterwarnings("ignore:builtin type .* has no __module__")
def test_a_session_keeps_its_data_in_memory() -> None:
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    with profiler.ProfileSession(profiler_options=options) as session:
        during = (session.is_running, session.profile_data)
        assert profiler.TraceAnnotation.is_enabled()
        with profiler.TraceAnnotation("reading", rows=3) as annotation:
            annotation.set_metadata(columns=4)
    assert during == (True, None)
    assert not session.is_running
    assert not profiler.TraceAnnotation.is_enabled()
    data = session.profile_data
    assert isinstance(data, profiler.ProfileData)
    plane = data.find_plane_with_name("/host:CPU")
    assert isinstance(plane, profiler.ProfilePlane)
    (event,) = [e for line in plane.lines for e in line.events if e.name == "reading"]
    assert dict(event.stats) == {"rows": 3, "columns": 4}
    assert event.duration_ns >= 0


def test_python_frames(tmp_path: Path) -> None:
    def recorded(**how: Any) -> bool:
        with profiler.trace(**how) as session:
            annotated(1.0)
        data = session.profile_data
        assert data is not None
        return any(
            "test_profiler.py" in event.name
            for plane in data.planes
            for line in plane.lines
            for event in line.events
        )

    assert not recorded()
    assert recorded(python_frames=True)
    assert recorded(profiler_options=profiler.ProfileOptions())


def test_stopping_inside_the_block_and_data_of_stop_trace() -> None:
    with profiler.ProfileSession() as session:
        assert isinstance(session.stop(), profiler.ProfileData)
    with profiler.trace(), pytest.raises(RuntimeError, match="Only one profile"):
        session.start()
    profiler.start_trace(None)
    assert isinstance(profiler.stop_trace(), profiler.ProfileData)
    with pytest.raises(RuntimeError, match="No profile started"):
        session.stop()


EXPORTS = hasattr(_profiler, "export_to_xprof")


@pytest.mark.skipif(not EXPORTS, reason="jaxlib 0.11 cannot export recorded data")
def test_exporting_recorded_data(tmp_path: Path) -> None:
    options = profiler.ProfileOptions()
    options.session_id = "mine"
    session = profiler.ProfileSession(tmp_path / "a", False, True, options)
    with pytest.raises(RuntimeError, match="never started"):
        session.export_profile_data(tmp_path)
    with session, pytest.raises(RuntimeError, match="while it is running"):
        session.export_profile_data(tmp_path)
    session.export_profile_data(tmp_path / "b", session_id="other")
    data = session.profile_data
    assert data is not None
    profiler.export_profile_data(data, tmp_path / "c", create_perfetto_trace=True)
    folders = {path.parent.relative_to(tmp_path).parts for path in xplanes(tmp_path)}
    assert ("a", "plugins", "profile", "mine") in folders
    assert ("b", "plugins", "profile", "other") in folders
    actual = {path.relative_to(tmp_path).parts[0] for path in perfettos(tmp_path)}
    assert actual == {"a", "c"}
    with pytest.raises(TypeError, match="ProfileData or a ProfileSession, not a str"):
        profiler.export_profile_data("data", tmp_path)  # type: ignore[arg-type]  # the error is the test


def xplanes(folder: Path) -> list[Path]:
    return list(folder.rglob("*.xplane.pb"))


def perfettos(folder: Path) -> list[Path]:
    return list(folder.rglob("perfetto_trace.json.gz"))


def test_the_file_for_perfetto(tmp_path: Path) -> None:
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        annotated(1.0)
    (path,) = perfettos(tmp_path)
    recorded = json.loads(gzip.decompress(path.read_bytes()))
    assert "metadata" not in recorded
    assert "annotated" in [event.get("name") for event in recorded["traceEvents"]]
    with pytest.raises(ValueError, match="has 0 files"):
        write_perfetto(str(tmp_path / "none"))


def test_the_link_to_perfetto(tmp_path: Path) -> None:
    path = tmp_path / "perfetto_trace.json.gz"
    path.write_bytes(b"recorded")
    with serving(path, 0) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/{path.name}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert answer.read() == b"recorded"
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
        thread.join()
        assert server.taken


def test_device_memory(tmp_path: Path) -> None:
    kept = verax.jit(lambda x: x + 1)(vnp.ones(3))
    file = tmp_path / "memory.prof"
    profiler.save_device_memory_profile(file)
    assert gzip.decompress(file.read_bytes())
    assert gzip.decompress(profiler.device_memory_profile("cpu"))
    with pytest.raises(RuntimeError, match="Unknown backend"):
        profiler.device_memory_profile("abacus")
    del kept


def test_servers() -> None:
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    profiler.start_server(port, requires_backend=False)
    with pytest.raises(ValueError, match="Only one profiler server"):
        profiler.start_server(port)
    profiler.stop_server()


def test_options_have_no_other_names() -> None:
    options = profiler.ProfileOptions()
    with pytest.raises(AttributeError):
        options.python_level = 1  # type: ignore[attr-defined]  # the error is the test
    options.advanced_configuration = {"mode": "all", "level": 2}
    assert options.advanced_configuration == {"mode": "all", "level": 2}
