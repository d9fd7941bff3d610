"""`python -m verax.jax` runs a program as Python does, with verax as its jax."""

import os
import textwrap
import zipfile
from pathlib import Path

import pytest

from tests.jax.programs import output, run_as_jax, run_python

SCRIPT = """
import pickle, sys
import helper
import jax


class Model:
    size = 3


assert pickle.loads(pickle.dumps(Model())).size == 3
assert sys.modules["__main__"].Model is Model
assert __name__ == "__main__" and __spec__ is None and __package__ is None
print(sys.argv, helper.NAME, jax.numpy.ones(2).tolist(), __file__)
print(type(jax.jit(lambda x: x + 1)(1.0)).__module__.split(".")[0])
"""


def write(folder: Path, name: str, source: str) -> Path:
    """A file with some source."""
    path = folder / name
    path.write_text(textwrap.dedent(source))
    return path


@pytest.mark.slow
def test_a_script_sees_its_arguments_its_folder_and_itself(tmp_path: Path) -> None:
    write(tmp_path, "helper.py", "NAME = 'beside'")
    path = write(tmp_path, "script.py", SCRIPT)
    first, second = output("script.py", "--steps", "3", cwd=tmp_path).splitlines()
    assert first == f"['script.py', '--steps', '3'] beside [1.0, 1.0] {path}"
    assert second == "jaxlib"


@pytest.mark.slow
def test_modules_packages_folders_and_zip_files(tmp_path: Path) -> None:
    package = tmp_path / "tool"
    package.mkdir()
    write(package, "__init__.py", "")
    source = "import sys, jax\nprint(__spec__.name, sys.argv[1:], jax.__name__)\n"
    write(package, "__main__.py", source)
    assert output("-m", "tool", "a", cwd=tmp_path) == "tool.__main__ ['a'] jax\n"
    assert output("tool", "b", cwd=tmp_path) == "__main__ ['b'] jax\n"
    with zipfile.ZipFile(tmp_path / "tool.zip", "w") as archive:
        archive.writestr("__main__.py", source)
    assert output("tool.zip", cwd=tmp_path) == "__main__ [] jax\n"


@pytest.mark.slow
def test_code_and_standard_input() -> None:
    source = "import sys, jax; print(sys.argv, jax.__version__ > '0.11')"
    assert output("-c", source, "x") == "['-c', 'x'] True\n"
    assert run_as_jax("-", "x", stdin=source).stdout == "['-', 'x'] True\n"


@pytest.mark.slow
def test_a_traceback_starts_in_the_program(tmp_path: Path) -> None:
    path = write(tmp_path, "fails.py", "def f():\n    1 / 0\n\n\nf()\n")
    done = run_as_jax(path)
    assert done.returncode == 1
    assert done.stderr == run_python(path).stderr
    broken = write(tmp_path, "broken.py", "print(1\n")
    assert run_as_jax(broken).stderr == run_python(broken).stderr


@pytest.mark.slow
def test_exit_statuses() -> None:
    assert run_as_jax("-c", "import sys; sys.exit(7)").returncode == 7
    wrong = {(): "no program named", ("-m",): "-m needs", ("--odd",): "--odd"}
    for args, message in wrong.items():
        done = run_as_jax(*args)
        assert done.returncode == 2
        assert message in done.stderr
        assert "usage:" in done.stderr
    assert run_as_jax("nowhere.py").returncode == 2
    missing = run_as_jax("-m", "no.module.here")
    assert missing.returncode == 1
    assert "No module named no.module.here" in missing.stderr
    shown = run_as_jax("--help")
    assert shown.returncode == 0
    assert shown.stdout.startswith("usage: python -m verax.jax script.py")


@pytest.mark.slow
def test_subprocesses_take_verax_for_jax(tmp_path: Path) -> None:
    """Spawned workers, other programs; the user's own sitecustomize runs as well."""
    write(tmp_path, "sitecustomize.py", "import sys\nsys.mine = 'mine'\n")
    child = (
        "import sys, importlib.metadata as m; late = 'verax' not in sys.modules; "
        "version = m.version('jax'); import jax; "
        "print(jax.__version__ == version, late, sys.mine, type(jax).__module__)"
    )
    path = write(
        tmp_path,
        "parent.py",
        f"""
        import multiprocessing, subprocess, sys
        import jax

        def work(n):
            return type(jax).__module__, jax.numpy.arange(n).sum().item()

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(*pool.map(work, [4])[0], flush=True)
            subprocess.run([sys.executable, "-c", {child!r}], check=True)
        """,
    )
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run_as_jax(path, env={"PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "verax.jax.views 6"
    assert second == "True True mine verax.jax.views"


@pytest.mark.slow
def test_the_folder_on_the_path_does_nothing_without_the_flag() -> None:
    source = "import os, sys; del os.environ['VERAX_AS_JAX']; import subprocess; "
    child = "import sys; print(type(sys.meta_path[0]).__name__)"
    done = output(
        "-c", source + f"subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    )
    assert "Waiting" not in done


@pytest.mark.slow
def test_pytest_runs_as_a_module(tmp_path: Path) -> None:
    source = "import jax\n\ndef test_sum():\n    assert jax.numpy.ones(3).sum() == 3\n"
    write(tmp_path, "test_it.py", source)
    args = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert "1 passed" in output(*args, cwd=tmp_path)


@pytest.mark.slow
def test_install_and_the_extension_of_notebooks() -> None:
    source = (
        "import verax.jax as mode; print(mode.installed())\n"
        "mode.load_ipython_extension(None); mode.install(); print(mode.installed())\n"
        "import jax, verax; print(jax.jit is verax.jit)"
    )
    done = run_python("-c", source)
    assert done.stdout == "False\nTrue\nTrue\n", done.stderr


@pytest.mark.slow
def test_install_refuses_after_another_jax() -> None:
    source = (
        "import sys, types; sys.modules['jax'] = types.ModuleType('jax')\n"
        "import verax.jax; verax.jax.install()"
    )
    done = run_python("-c", source)
    assert done.returncode == 1
    assert "RuntimeError: the real jax has been imported already" in done.stderr


@pytest.mark.slow
def test_without_the_mode_nothing_of_it_is_imported() -> None:
    source = (
        "import sys, verax, verax.numpy as vnp, verax.extend.core, verax.scipy.stats\n"
        "verax.jit(verax.grad(lambda x: vnp.sin(x).sum()))(vnp.ones(3))\n"
        "print([n for n in sys.modules if n.startswith(('verax.jax', 'jax.'))])\n"
        "print('jax' in sys.modules)"
    )
    done = run_python("-c", source)
    assert done.stdout == "[]\nFalse\n", done.stderr


@pytest.mark.slow
def test_the_mode_loads_what_few_programs_ask_for_when_they_do() -> None:
    source = (
        "import sys, jax, jax.numpy, jax.nn.initializers as i, jax.random as r\n"
        "few = 'importlib.metadata', 'verax.random.shuffling', 'verax.ops.linalg.qr'\n"
        "print([name for name in few if name in sys.modules])\n"
        "import importlib.metadata as metadata\n"
        "print(metadata.version('jax') == jax.__version__)\n"
        "print(i.orthogonal()(r.key(0), (2, 2)).shape)"
    )
    done = run_as_jax("-c", source)
    assert done.stdout == "[]\nTrue\n(2, 2)\n", done.stderr


@pytest.mark.slow
def test_the_record_lists_what_a_program_asked_for_in_vain() -> None:
    source = (
        "import jax\nfor i in range(2):\n    hasattr(jax.numpy, 'odd_name')\n"
        "try: jax.lax.needed\nexcept AttributeError: pass\n"
    )
    done = run_as_jax("-c", source, env={"VERAX_JAX_RECORD": "1"})
    assert done.stderr == (
        "jax.numpy.odd_name  2x, first at <string>:3  (probed)\n"
        "jax.lax.needed  1x, first at <string>:4\n"
    )
    assert run_as_jax("-c", source).stderr == ""
