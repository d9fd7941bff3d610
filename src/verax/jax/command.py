"""The command line: runs a program as Python does, with verax where it imports jax.

The program is a new module `__main__` that stays to the end of the process, so its
classes pickle and its threads find their globals. Python processes that it starts
come through `verax.jax.startup`::

    python -m verax.jax script.py --steps 100
    python -m verax.jax -m pytest tests
"""

import builtins
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from types import CodeType, ModuleType, TracebackType
from typing import NoReturn

from verax.jax.doctor import Unreadable, examine
from verax.jax.finder import install
from verax.jax.startup.sitecustomize import FLAG, HERE

USAGE = """usage: python -m verax.jax script.py [args]
       python -m verax.jax -m module [args]
       python -m verax.jax -c code [args]
       python -m verax.jax --doctor script.py | module

Runs a program that imports jax, with verax under that name: the program and its
libraries stay as they are. Python processes that it starts do the same.

  script.py   a file, a folder or zip file with a __main__.py, or - (standard input)
  --doctor    run nothing; list the names of jax that the program and what it
              imports use, and those that verax lacks

VERAX_JAX_RECORD=1 lists, when a program ends, the names it asked for in vain.
"""


def main(args: Sequence[str]) -> None:
    """Run the program that the arguments name; its traceback shows no frame of ours.

    Raises:
        SystemExit: nothing was named, or the program ended with an error.
    """
    try:
        start(args)
    except Exception as error:  # what Python does with an error that nobody caught
        error.__traceback__ = trimmed(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(1)


def trimmed(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the program's first frame on."""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file != __file__ and not file.startswith("<frozen "):
            return trace
        trace = trace.tb_next
    return None


def start(args: Sequence[str]) -> None:
    """Read the arguments and run what they ask for."""
    if not args:
        refuse("no program named")
    first, *rest = args
    if first in ("-h", "--help"):
        print(USAGE, end="")
        return
    if first == "--doctor":
        if not rest:
            refuse("--doctor needs the script or the module to read")
        try:
            print(examine(rest[0]))
        except Unreadable as error:
            refuse(str(error))
        return
    install()
    tell_subprocesses()
    if first == "-m":
        run_module(rest)
    elif first == "-c":
        run_code(rest)
    elif first == "-":
        begin(["-", *rest], "")
        run(compile(sys.stdin.read(), "<stdin>", "exec"), {})
    elif first.startswith("-"):
        refuse(f"unknown option {first}")
    else:
        run_path(first, rest)


def refuse(message: str) -> NoReturn:
    """End as Python does when its own arguments are wrong."""
    print(f"verax.jax: {message}\n\n{USAGE}", end="", file=sys.stderr)
    sys.exit(2)


def tell_subprocesses() -> None:
    """Have the Python processes below this one take verax for jax too."""
    os.environ[FLAG] = "1"
    before = os.environ.get("PYTHONPATH")
    paths = before.split(os.pathsep) if before else []
    if HERE not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([HERE, *paths])


def begin(argv: Sequence[str], folder: str) -> None:
    """Set what a program sees of its start: its arguments, and where it imports from.

    Python put the current folder first on the path, because it ran a module; with
    its option -P it put nothing there.
    """
    sys.argv = list(argv)
    if not sys.flags.safe_path:
        sys.path[0] = folder


def run_code(args: Sequence[str]) -> None:
    """Run `-c code args`."""
    if not args:
        refuse("-c needs the code to run")
    begin(["-c", *args[1:]], "")
    run(compile(args[0], "<string>", "exec"), {})


def run_path(path: str, args: Sequence[str]) -> None:
    """Run a file, or the `__main__` of a folder or a zip file."""
    spec = PathFinder.find_spec("__main__", [path])
    if spec is not None:
        begin([path, *args], path)
        run_spec(spec)
    elif not os.path.isfile(path):
        refuse(f"can't open {path!r}: no such file, or a folder without __main__.py")
    else:
        file = os.path.abspath(path)
        loader = SourceFileLoader("__main__", file)
        begin([path, *args], os.path.dirname(os.path.realpath(path)))
        code = loader.source_to_code(loader.get_data(file), file)
        run(code, {"__file__": file, "__cached__": None, "__loader__": loader})


def run_module(args: Sequence[str]) -> None:
    """Run `-m module args`; of a package, its module `__main__`."""
    if not args:
        refuse("-m needs the name of a module")
    name, *rest = args
    begin(["-m", *rest], os.getcwd())
    spec = find_main(name)
    if spec is None:
        print(f"{sys.executable}: No module named {name}", file=sys.stderr)
        sys.exit(1)
    sys.argv[0] = spec.origin or name
    run_spec(spec)


def find_main(name: str) -> ModuleSpec | None:
    """The module that `-m name` runs, or None."""
    try:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # a package of that name exists, and lacks something else
        return None
    return spec


def run_spec(spec: ModuleSpec) -> None:
    """Run a module that was found, as the main program."""
    get_code = getattr(spec.loader, "get_code", None)
    code = get_code(spec.name) if get_code else None
    if code is None:
        refuse(f"module {spec.name} has no Python code to run")
    shown = {"__file__": spec.origin, "__cached__": spec.cached}
    run(code, shown | {"__loader__": spec.loader, "__package__": spec.parent}, spec)


def run(
    code: CodeType, shown: Mapping[str, object], spec: ModuleSpec | None = None
) -> None:
    """Run code in a new module `__main__`, with the attributes that Python sets."""
    module = ModuleType("__main__")
    module.__spec__ = spec
    vars(module).update(shown, __builtins__=builtins)
    sys.modules["__main__"] = module
    exec(code, vars(module))
