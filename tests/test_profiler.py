"""Recordings hold what they should, and there is one at a time."""

import gzip
import json
from pathlib import Path

import pytest

import verax
import verax.numpy as vnp
from verax import profiler


def events(folder: Path) -> list[str]:
    """The names of all events in a recording."""
    (file,) = folder.rglob("*.trace.json.gz")
    found = json.loads(gzip.decompress(file.read_bytes()))
    return [event.get("name", "") for event in found["traceEvents"]]


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
