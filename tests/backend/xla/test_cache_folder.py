"""The folder of compiled programs: where it is, who may write to it, and silence."""

import errno
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import verax
from verax.api.config.config import override
from verax.backend.xla import disk_cache
from verax.backend.xla.disk_cache import (
    Folder,
    chosen_folder,
    make_private,
    objection,
    user_folder,
    way,
)

STRANGER = 54321
SOURCE = Path(verax.__file__).parents[1]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing names a folder."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    disk_cache.log_once.cache_clear()  # type: ignore[attr-defined]  # a memo


@pytest.fixture
def given_away(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """What makes a file look like another user's."""

    def give(path: Path) -> None:
        if os.getuid() == 0:
            os.lchown(path, STRANGER, -1)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
            monkeypatch.setattr(os, "getuid", lambda: STRANGER)

    return give


@pytest.mark.parametrize(
    ("platform", "variables", "place"),
    [
        ("linux", {}, "home/.cache/verax"),
        ("linux", {"XDG_CACHE_HOME": "{}/other"}, "other/verax"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "home/.cache/verax"),
        ("linux", {"LOCALAPPDATA": "{}/local"}, "home/.cache/verax"),
        ("darwin", {}, "home/Library/Caches/verax"),
        ("darwin", {"XDG_CACHE_HOME": "{}/other"}, "other/verax"),
        ("win32", {"LOCALAPPDATA": "{}/local"}, "local/verax"),
        ("win32", {}, "home/AppData/Local/verax"),
    ],
)
def test_the_place_is_usual_on_each_platform(
    platform: str,
    variables: dict[str, str],
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    assert user_folder() == Folder(tmp_path / place, private=True)
    assert not list(tmp_path.iterdir())


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "relative")
    assert "no cache folder: the home directory is unknown" in user_folder().refusal

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    assert "Could not determine home" in user_folder().refusal


def test_the_configuration_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with override("compilation_cache_dir", "auto"):
        assert chosen_folder() == Folder(tmp_path / "verax", private=True)
    with override("compilation_cache_dir", tmp_path / "mine"):
        assert chosen_folder() == Folder(tmp_path / "mine")
    for nothing in (None, ""):
        with override("compilation_cache_dir", nothing):
            assert chosen_folder() is None


def test_it_is_made_for_the_user_alone(tmp_path: Path) -> None:
    mask = os.umask(0o002)
    try:
        path = tmp_path / "a" / "b" / "verax"
        assert not objection(path)
        Folder(path, private=True).make()
        make_private(path)
    finally:
        os.umask(mask)
    for folder in (path, path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not objection(path)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720])
def test_a_folder_that_others_may_write_to_is_refused(
    tmp_path: Path, mode: int
) -> None:
    path = tmp_path / "verax"
    path.mkdir()
    path.chmod(mode)
    assert objection(path) == f"others may write to {path}; chmod 700 closes it"
    path.chmod(0o755)
    assert not objection(path)


def test_the_folder_of_another_user_is_refused(
    tmp_path: Path, given_away: Callable[[Path], None]
) -> None:
    path = tmp_path / "verax"
    path.mkdir(0o700)
    given_away(path)
    assert objection(path) == f"{path} belongs to another user"


def test_nothing_is_made_in_the_home_of_another_user(
    tmp_path: Path, given_away: Callable[[Path], None]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    given_away(home)
    assert objection(home / ".cache" / "verax") == f"{home} belongs to another user"


def test_links_are_followed_if_they_are_the_users(
    tmp_path: Path, given_away: Callable[[Path], None]
) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    (real / "verax").mkdir(0o700, parents=True)
    link.symlink_to("real/../real")
    assert not objection(link / "verax")
    assert [place.name for place, _ in way(link / "verax")[0]][-4:] == [
        "real",
        tmp_path.name,
        "real",
        "verax",
    ]
    given_away(link)
    assert objection(link / "verax") == f"the link {link} belongs to another user"


def test_the_folder_itself_may_be_a_link_of_the_users(tmp_path: Path) -> None:
    link, real = tmp_path / "verax", tmp_path / "real"
    link.symlink_to(real)
    assert not objection(link)  # and cannot be made: it leads nowhere
    real.mkdir(0o770)
    real.chmod(0o770)
    assert objection(link).startswith(f"others may write to {real}")


def test_links_that_lead_to_each_other_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a"))
    assert os.strerror(errno.ELOOP) in user_folder().refusal


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "verax").write_text("")
    assert objection(tmp_path / "verax").endswith("is not a folder")


def test_a_process_with_the_rights_of_another_user_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    assert objection(tmp_path / "verax") == (
        "the process has the rights of another user"
    )


def test_a_refusal_is_logged_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "verax").mkdir()
    (tmp_path / "verax").chmod(0o777)
    with caplog.at_level(logging.DEBUG, "verax"):
        for _ in range(3):
            assert user_folder().refusal
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    assert "compilation cache: not used, since others may write" in caplog.text


def test_importing_looks_at_no_folder(tmp_path: Path) -> None:
    code = (
        "import sys, verax, verax.numpy; verax.config.compilation_cache_dir; "
        "assert 'verax.backend.xla.disk_cache' not in sys.modules"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "HOME": str(tmp_path)},
        check=True,
        timeout=120,
    )
    assert not list(tmp_path.iterdir())
