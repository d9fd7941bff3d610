"""`python -m verax explore --serve`: a page that follows the script."""

import http.client
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.explore.services import running
from tests.processes import started
from verax.__main__ import main
from verax.explorer import serving
from verax.explorer.composed import Mistake
from verax.explorer.serving import Service, files_of, message, noting_files, server_at

ROOT = Path(__file__).parents[2]
LONG = 120.0


def got(url: str, host: str | None = None) -> str:
    headers = {} if host is None else {"Host": host}
    with urlopen(Request(url, headers=headers), timeout=LONG) as answer:
        text: str = answer.read().decode()
    return text


def until(url: str, holds: Callable[[str], bool]) -> str:
    """The page, once something holds of it."""
    end, known = time.monotonic() + LONG, ""
    while time.monotonic() < end:
        state = json.loads(got(f"{url}version?known={known}"))
        known = f"{state['version']}.{int(state['busy'])}"
        page = got(f"{url}page")
        if not state["busy"] and holds(page):
            return page
    raise AssertionError(f"it never came: {got(f'{url}page')[:400]}")


# -----------------------------------------------------------------------------
# A service whose pages are made by a small script instead of the command.

MAKER = """
import json, runpy, sys
from pathlib import Path
script, (_, page, _, files) = sys.argv[1], sys.argv[2:]
open(files, "w").write(json.dumps([*map(str, Path(script).parent.iterdir())]))
names = runpy.run_path(script)
open(page, "w").write("<p>" + names["TEXT"])
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text("TEXT = 'one'")
    return path


@pytest.fixture
def service(script: Path) -> Service:
    return Service("s", [sys.executable, "-c", MAKER, str(script)], [str(script)])


@pytest.mark.slow
def test_it_follows_the_script_and_recovers(
    service: Service, script: Path, capfd: Any
) -> None:
    with running(service) as url:
        until(url, lambda page: page == "<p>one")
        script.write_text("TEXT = 'three'")
        until(url, lambda page: page == "<p>three")
        script.write_text("TEXT = 1 / '<b>'")
        page = until(url, lambda page: "TypeError" in page)
        assert "&lt;b&gt;" in page
        assert "<b>" not in page
        script.write_text("TEXT = 'again'")
        until(url, lambda page: page == "<p>again")
        script.unlink()
        until(url, lambda page: "FileNotFoundError" in page)
        script.write_text("TEXT = 'back'")
        until(url, lambda page: page == "<p>back")
        around = got(url)
        assert 'src="/page"' in around
        assert "/version" in around
    assert "TypeError" in capfd.readouterr().err


@pytest.mark.slow
def test_a_change_while_the_page_is_made_starts_again(
    service: Service, script: Path
) -> None:
    script.write_text("import time\ntime.sleep(600)\nTEXT = 'late'")
    with running(service) as url:
        time.sleep(0.3)
        script.write_text("TEXT = 'soon'")
        until(url, lambda page: page == "<p>soon")


@pytest.mark.slow
def test_a_file_that_changes_before_it_is_known_is_read_again(
    service: Service, script: Path
) -> None:
    helper = script.with_name("helper")
    helper.write_text("one")
    script.write_text(
        f"""
from pathlib import Path
helper = Path({str(helper)!r})
TEXT = helper.read_text()
if TEXT == "one":
    helper.write_text("two")
"""
    )
    with running(service) as url:
        until(url, lambda page: page == "<p>two")


def test_answers(service: Service) -> None:
    with running(service) as url:
        for path, host, status in (
            ("none", None, 404),
            ("page", "example.com", 403),
            ("version", "127.0.0.1", 403),
        ):
            with pytest.raises(HTTPError) as raised:
                got(url + path, host)
            assert raised.value.code == status
            raised.value.close()
        port = int(url.rstrip("/").rpartition(":")[2])
        connection = http.client.HTTPConnection("localhost", port)
        connection.request("GET", "/", headers={"Host": f"localhost:{port}"})
        answer = connection.getresponse()
        policy = answer.headers["Content-Security-Policy"]
        assert answer.status == 200
        assert "connect-src 'self'" in policy
        assert "default-src 'none'" in policy
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.read().startswith(b"<!doctype html>")
        connection.close()


def test_ports() -> None:
    service = Service("s", ["true"], [])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Mistake, match=f"--serve {port}: the port is taken; give"):
            server_at(port, service)
    with pytest.raises(Mistake, match="ports are numbers up to 65535"):
        server_at(70000, service)


def test_files_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, helper, bad = (tmp_path / n for n in ("a.py", "helper_of_a.py", "bad_a.py"))
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "library_of_a.py").write_text("")
    helper.write_text("")
    bad.write_text("def (:")
    script.write_text("import helper_of_a, library_of_a, bad_a")
    for folder in (tmp_path, library):
        monkeypatch.syspath_prepend(str(folder))
    noted = tmp_path / "files.json"
    with (
        pytest.raises(SyntaxError),
        noting_files(f"{script}:f", str(noted)),
    ):
        exec(compile(script.read_text(), str(script), "exec"), {})
    found = json.loads(noted.read_text())
    assert set(found) == {str(script), str(helper), str(bad)}
    for name in ("helper_of_a", "library_of_a"):
        monkeypatch.delitem(sys.modules, name)
    assert files_of(f"{script}:f", None) == [str(script)]
    monkeypatch.chdir(tmp_path)
    assert str(script) not in files_of("json:dumps", None)


def test_messages_are_escaped() -> None:
    assert "&lt;script&gt;" in message("t", "<script>")
    assert serving.AROUND.format(title="t").count("<script>") == 1


# -----------------------------------------------------------------------------
# The command.


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--costs"], "leave out --costs, --json and -o"),
        (["--json"], "leave out --costs, --json and -o"),
        (["-o", "page.html"], "leave out --costs, --json and -o"),
        (["--profile", "--no-compile"], "leave out --no-compile"),
    ],
)
def test_options_that_do_not_fit(
    script: Path, capsys: Any, options: list[str], text: str
) -> None:
    assert main(["explore", f"{script}:f", *options, "--serve"]) == 2
    assert text in capsys.readouterr().err
    assert main(["explore", f"{script}s.py:f", "--serve"]) == 2
    assert "there is no such script" in capsys.readouterr().err


def test_a_port_that_is_taken_is_an_error_of_the_command(
    script: Path, capsys: Any
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["explore", f"{script}:f", "--serve", port]) == 2
    err = capsys.readouterr().err
    assert "the port is taken" in err
    assert err.count("\n") == 1


TRAIN = """
import numpy as np
import verax.numpy as vnp
from helper_of_train import POWER

def loss(x):
    return (vnp.sin(x) ** POWER).sum()

x = np.ones(3, np.float32)
"""


@pytest.mark.slow
def test_the_command_until_it_is_interrupted(tmp_path: Path) -> None:
    script, helper = tmp_path / "train.py", tmp_path / "helper_of_train.py"
    script.write_text(TRAIN)
    helper.write_text("POWER = 2\n")
    options = ["--args", "x", "--no-compile", "--watch", "--serve"]
    command = [sys.executable, "-m", "verax", "explore", f"{script}:loss", *options]
    own = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with started(command, stdout=PIPE, stderr=PIPE, env=own) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[1]
        page = until(address, lambda page: "verax-data" in page)
        assert "<title>loss · verax</title>" in page
        helper.write_text("POWER = 1 / 0  # <oh>\n")
        page = until(address, lambda page: "ZeroDivisionError" in page)
        assert "# &lt;oh&gt;" in page
        helper.write_text("POWER = 33\n")
        assert until(address, lambda page: "verax-data" in page)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LONG)
        assert process.returncode == 0
        assert "ZeroDivisionError" in err
        assert "KeyboardInterrupt" not in err
