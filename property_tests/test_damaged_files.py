"""Files of every format, changed anywhere: one promised error, or what still fits.

Bytes change under their checksum, and descriptions change with a checksum that is made
again, as an editor or a bad program would leave them: a value becomes another, goes, or
gets company. Whatever comes of it, the process goes on.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from hypothesis import HealthCheck, given, settings, strategies as st

import verax
import verax.numpy as vnp
from verax import export
from verax.api.export import export as export_file
from verax.backend.programs import serialize
from verax.backend.xla.disk_cache import CompilationCacheWarning, Entry, Folder
from verax.ir import dumps, from_json, loads, to_json
from verax.ir.forms import saving
from verax.ir.forms.values import Frame

X = np.arange(3, dtype=np.float32)
OTHERS: list[Any] = [None, True, -1, 0, 2, 1.5, "", "*", "x", "f32[3]", ":no", [], {}]


def function(x: Any) -> Any:
    return {"a": vnp.sin(x) * vnp.arange(3.0), "b": (x, [x.sum()])}


@frozen
class Format:
    """One kind of file: an example, what reads it, and its frame if it has one."""

    data: bytes
    read: Callable[[bytes], object]
    frame: Frame | None


def read_text(data: bytes) -> object:
    return from_json(data.decode(errors="replace"))


def formats() -> dict[str, Format]:
    jitted = verax.jit(function)
    closed = verax.make_jaxpr(function)(X)
    exported = export.export(jitted)(X).serialize(vjp_order=0)
    compiled = jitted.lower(X).compile().serialize()
    return {
        "export": Format(exported, export.deserialize, export_file.FRAME),
        "program": Format(compiled, verax.stages.deserialize, serialize.FRAME),
        "jaxpr": Format(dumps(closed), loads, saving.FRAME),
        "json": Format(to_json(closed).encode(), read_text, None),
    }


FORMATS = formats()


def parts_of(name: str) -> tuple[Any, bytes]:
    """The document of a file and the bytes behind it."""
    form = FORMATS[name]
    if form.frame is None:
        return json.loads(form.data), b""
    return form.frame.unpack(form.data)


def packed(name: str, document: Any, rest: bytes) -> bytes:
    frame = FORMATS[name].frame
    if frame is None:
        return json.dumps(document).encode()
    return frame.pack(document, [rest])


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values of a document."""
    actual = [path]
    if isinstance(document, dict):
        for key in document:
            actual += places(document[key], (*path, key))
    elif isinstance(document, list):
        for i, item in enumerate(document):
            actual += places(item, (*path, i))
    return actual


def changed(document: Any, path: tuple[Any, ...], how: str, other: Any) -> Any:
    """The document with the value at `path` replaced, removed, doubled or renamed."""
    if not path:
        return other
    first, *rest = path
    made = document.copy()
    if rest:
        made[first] = changed(document[first], tuple(rest), how, other)
    elif how == "replace":
        made[first] = other
    elif how == "remove":
        del made[first]
    elif isinstance(made, list):
        made.insert(first, made[first])
    else:
        made[str(other)] = made.pop(first)
    return made


def refused_or_read(name: str, data: bytes) -> None:
    with suppress(ValueError):
        FORMATS[name].read(data)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_changed_descriptions(name: str, data: st.DataObject) -> None:
    document, rest = parts_of(name)
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(places(document)))
        how = data.draw(st.sampled_from(["replace", "remove", "more"]))
        document = changed(document, path, how, data.draw(st.sampled_from(OTHERS)))
    refused_or_read(name, packed(name, document, rest))


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_changed_bytes(name: str, data: st.DataObject) -> None:
    file = bytearray(FORMATS[name].data)
    size = len(file)
    near = st.integers(0, min(size, 200) - 1)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.one_of(near, st.integers(0, size - 1)))
        file[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(size), st.integers(0, size)))
    refused_or_read(name, bytes(file[:cut]))


@given(place=st.integers(0, 400), byte=st.integers(0, 255), cut=st.integers(0, 400))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_changed_cache_files(tmp_path: Path, place: int, byte: int, cut: int) -> None:
    """What is damaged is not read, with a warning; what is whole is."""
    entry = Entry(Folder(tmp_path), "key")
    body = bytes(range(256))
    assert not entry.write(body)
    file = bytearray(entry.path.read_bytes())
    whole = bytes(file)
    if place < len(file):
        file[place] = byte
    entry.path.write_bytes(bytes(file[: len(file) - cut] if cut else file))
    if entry.path.read_bytes() == whole:
        assert entry.read() == body
    else:
        with pytest.warns(CompilationCacheWarning):
            assert entry.read() is None
        assert not entry.path.exists()
