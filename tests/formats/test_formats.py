"""Files of every version of every format are read, and later ones refused clearly."""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.formats.make import (
    CACHE_BODY,
    CACHE_KEY,
    HOME,
    TABLE,
    WORDS,
    WRITERS,
    X,
    make,
    plain,
    tree,
)
from verax import export, ir, random, stages
from verax.backend.xla.disk_cache import CompilationCacheWarning, Entry, Folder
from verax.experimental import checkpoint
from verax.transforms import check

pytestmark = pytest.mark.filterwarnings("ignore:.*programs of .* were compiled")


def folders(kind: str) -> list[Path]:
    """The folders of all versions of a format."""
    return sorted(HOME.glob(f"{kind}-*"))


def of(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("folder", folders(kind), ids=lambda x: x.name)


def expected(folder: Path) -> dict[str, Any]:
    out: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return out


def agree(actual: Any, right: list[Any]) -> None:
    for one, other in zip(actual, right, strict=True):
        np.testing.assert_allclose(np.asarray(one, np.float64), other, rtol=1e-5)


def test_the_formats_of_today_have_files() -> None:
    names = {folder.name for folder in HOME.iterdir()}
    assert set(WRITERS) <= names, "run `python -m tests.formats.make`"
    assert {name.partition("-")[0] for name in names} == {
        name.partition("-")[0] for name in WRITERS
    }


def test_what_is_there_is_never_written_again(tmp_path: Path) -> None:
    for name in WRITERS:
        (tmp_path / name).mkdir()
    assert make(tmp_path) == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_folder_that_was_not_completed_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(folder: Path) -> None:
        (folder / "half").write_bytes(b"")
        raise OSError

    monkeypatch.setattr("tests.formats.make.WRITERS", {"jaxpr-9": broken})
    with pytest.raises(OSError):  # noqa: PT011  # that of the writer, without words
        make(tmp_path)
    assert list(tmp_path.iterdir()) == []


@of("jaxpr")
def test_saved_programs_are_read_and_compute_the_same(folder: Path) -> None:
    forms = {
        "bytes": ir.loads((folder / "full.bin").read_bytes()),
        "json": ir.from_json((folder / "full.json").read_text()),
    }
    for closed in forms.values():
        check(closed)
        run = verax.core.jaxpr_as_fun(closed)
        agree(run(X, WORDS), expected(folder)["full"])
    assert forms["bytes"].jaxpr.invars == forms["json"].jaxpr.invars


@of("jaxpr")
def test_printed_programs_are_read(folder: Path) -> None:
    jaxpr = ir.parse_jaxpr((folder / "plain.txt").read_text())
    (out,) = verax.core.jaxpr_as_fun(ir.ClosedJaxpr(jaxpr))(X)
    agree([out], [expected(folder)["plain"]])


@of("jaxpr")
def test_calls_of_every_row_are_read(folder: Path) -> None:
    lines = (folder / "rows.jsonl").read_text().splitlines()
    assert len(lines) > 100
    for line in lines:
        check(ir.from_json(line))


@of("export")
def test_exported_functions_are_read_and_compute_the_same(folder: Path) -> None:
    exported = export.deserialize((folder / "full.bin").read_bytes())
    right = expected(folder)["full"]
    agree(exported.call(X, WORDS), right)
    slope = verax.grad(lambda x: exported.call(x, WORDS)[0].sum())(X)
    assert slope.shape == (3,)
    assert bool(vnp.isfinite(slope).all())
    with pytest.raises(ValueError, match="must have the same pytree structure"):
        exported.call(X)


@of("export")
def test_exported_functions_of_symbolic_shapes_are_read(folder: Path) -> None:
    exported = export.deserialize((folder / "symbolic.bin").read_bytes())
    assert exported.platforms == ("cpu", "cuda")
    agree([exported.call(TABLE + 1)], [expected(folder)["scaled"]])
    assert exported.call(vnp.ones((7, 3))).shape == (7, 3)


@of("checkpoint")
def test_checkpoints_are_restored(folder: Path) -> None:
    actual = checkpoint.restore(folder / "tree")
    like = checkpoint.restore(folder / "tree", like=tree())
    for result in (actual, like):
        assert (result["step"], result["rate"], result["name"]) == (7, 0.25, "a run")
        assert result["none"] is None
        key = random.key_data(result["key"])
        assert key.tolist() == random.key_data(random.key(3)).tolist()
        weights = tree()["weights"]
        for one, other in zip(result["weights"], weights, strict=True):
            assert one.dtype == other.dtype
            assert one.tolist() == other.tolist()
        np.testing.assert_array_equal(result["host"], TABLE)


def refusal(act: Callable[[], object]) -> str:
    """Why an act is refused; empty if it is not."""
    try:
        act()
    except ValueError as error:
        return str(error)
    return ""


@of("program")
def test_compiled_programs_run_or_are_refused_with_the_reason(folder: Path) -> None:
    data = (folder / "plain.bin").read_bytes()
    if reason := refusal(lambda: stages.deserialize(data)):
        assert re.search("jaxlib|processor|platform|version", reason)
    else:
        agree([stages.deserialize(data)(X)], [expected(folder)["plain"]])


@of("cache")
def test_entries_of_the_cache_are_read_or_made_again(
    folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "cache")
    entry = Entry(Folder(tmp_path / "cache"), CACHE_KEY)
    if folder.name in WRITERS:
        assert entry.read() == CACHE_BODY
    else:
        with pytest.warns(CompilationCacheWarning, match="of another kind"):
            assert entry.read() is None
        assert not entry.path.exists()


def test_an_entry_of_a_later_cache_is_made_again(tmp_path: Path) -> None:
    entry = Entry(Folder(tmp_path), CACHE_KEY)
    entry.path.write_bytes(b"verax-executable 99\n" + b"x" * 100)
    with pytest.warns(CompilationCacheWarning, match="of another kind"):
        assert entry.read() is None


def renumbered(data: bytes, version: int) -> bytes:
    """The file of a frame under another version, which is behind the first line."""
    start = data.index(b"\n") + 1
    return data[:start] + version.to_bytes(4, "little") + data[start + 4 :]


FRAMED: Mapping[str, tuple[str, Callable[[bytes], object]]] = {
    "jaxpr": ("full.bin", ir.loads),
    "export": ("full.bin", export.deserialize),
    "program": ("plain.bin", stages.deserialize),
}


def framed() -> Iterator[tuple[Path, Callable[[bytes], object]]]:
    for kind, (name, read) in FRAMED.items():
        yield folders(kind)[-1] / name, read


@pytest.mark.parametrize(("file", "read"), list(framed()), ids=list(FRAMED))
def test_files_of_later_versions_are_refused_with_advice(
    file: Path, read: Callable[[bytes], object]
) -> None:
    data = file.read_bytes()
    with pytest.raises(ValueError, match=r"has version 99.*a later verax wrote it"):
        read(renumbered(data, 99))
    with pytest.raises(ValueError, match=r"has version 0, .*make it again"):
        read(renumbered(data, 0))


def test_checkpoints_of_later_versions_are_refused_with_advice(tmp_path: Path) -> None:
    shutil.copytree(folders("checkpoint")[-1] / "tree", tmp_path / "tree")
    manifest = tmp_path / "tree" / "manifest.json"
    text = manifest.read_text()
    assert '"version": 1' in text
    manifest.write_text(text.replace('"version": 1', '"version": 99'))
    with pytest.raises(ValueError, match=r"has version 99.*with the verax that wrote"):
        checkpoint.restore(tmp_path / "tree")


def test_the_functions_still_compute_what_was_written_down() -> None:
    agree([plain(X)], [expected(folders("jaxpr")[0])["plain"]])
