"""`python -m verax explore`: the page of a function in a script (floor 6).

The script runs as a module does that is imported, so that what is below
`if __name__ == "__main__"` does not; arguments are an expression in its names::

    python -m verax explore train.py:loss --args "params, batch" -o loss.html
    python -m verax explore mylib.models:forward --args "np.ones((8, 3))" --profile
    python -m verax explore train.py:loss --args "params, batch" --grad --costs h100
    python -m verax explore program.jaxpr
"""

import argparse
import inspect
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from functools import reduce
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import numpy as np

from verax import numpy as vnp, random
from verax.api.export.symbolic import symbolic_shape
from verax.api.inspect.watching import Watched, watch
from verax.api.jit import PjitFunction
from verax.api.tracing.structs import ShapeDtypeStruct
from verax.api.tracing.wrapping import wraps
from verax.explorer.composed import Flags, Mistake, check_values, composed
from verax.explorer.costing import costs
from verax.explorer.exploration import Exploration, explore, of_program
from verax.explorer.meshes.devices import KNOWN
from verax.explorer.printed import Report, printed
from verax.explorer.serving import noting_files, serve
from verax.ir.facade import module_named
from verax.ir.jaxpr import ClosedJaxpr

NAME: Final = "__explore__"
"""The `__name__` of a script that is explored."""
type Read = Callable[[str], ClosedJaxpr]


def main(arguments: Sequence[str], read: Read) -> int:
    """Run the command; `read` reads a saved program. The exit status is 2 for errors.

    Errors of the script and of the function are the user's: they are raised.
    """
    options = parser().parse_args(arguments)
    if options.serve is not None and options.files is None:
        return served(options, arguments)
    aside = redirect_stdout(sys.stderr) if options.json else nullcontext()
    try:
        with aside, noting_files(options.target, options.files):
            # What the script prints is no JSON.
            report = report_of(options, read)
            text = printed(report) if options.json else str(report)
    except Mistake as error:
        print(f"{options.target}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    print(text)
    if isinstance(report, Exploration) and not options.json:
        print(written(report, options.output))
    return 0


def served(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Serve the page until Ctrl-C, each time made by the same command."""
    try:
        if options.json or options.costs is not None or options.output is not None:
            raise Mistake("--serve shows the page: leave out --costs, --json and -o")
        options.output = "page.html"
        check_options(options)
        serve(options.target, arguments, options.serve)
    except Mistake as error:
        print(f"{options.target}: {error}", file=sys.stderr)
        return 2
    return 0


def report_of(options: argparse.Namespace, read: Read) -> Report:
    """What the options ask for.

    Raises:
        Mistake: they do not fit each other, the function or the call.
    """
    check_options(options)
    subject, names = subject_of(options.target, read)
    args, kwargs = called_with(options.args, names)
    check_call(options.target, subject, args, kwargs)
    prints = options.watch and options.output is None
    flags = Flags(options.static, options.grad, options.vmap, inline=prints)
    if is_saved := isinstance(subject, ClosedJaxpr):
        subject, args = of_saved(subject, flags, args)
    function = composed(subject, flags, args, kwargs)
    for option in ("profile", "watch", "precision"):
        if getattr(options, option):
            check_values(f"--{option}", function, args, kwargs)
    if prints:
        return watched(function, args, kwargs, every=is_saved)
    if options.costs is not None:
        return costs(function, device=options.costs)(*args, **kwargs)
    exploring = explore(
        function,
        compile=not options.no_compile,
        profile=options.profile,
        watch=options.watch,
        precision=options.precision,
    )
    return exploring(*args, **kwargs)


def of_saved(
    program: ClosedJaxpr, flags: Flags, args: tuple[object, ...]
) -> tuple[Callable[..., Any], tuple[object, ...]]:
    """The function of a saved program, and its arguments: of its types without any.

    Raises:
        Mistake: an option does not fit a program.
    """
    run, given = of_program(program)
    if flags.static is not None:
        raise Mistake("--static: a saved program has no static arguments")
    if flags.vmap is not None and not args:
        raise Mistake("--vmap: say with --args which arrays a saved program maps over")
    if flags.grad is None or len(program.out_avals) != 1:
        return run, args or given

    @wraps(run)
    def only(*args: object) -> Any:
        return run(*args)[0]

    return only, args or given


def watched(
    function: PjitFunction[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    every: bool,
) -> Watched:
    """The values of a run; `every` one of a saved program, which has no lines.

    The function is watched without the jit around it.
    """
    call = function.settings.statics.bind(args, kwargs)
    given, named = call.dynamic
    watching = watch(call.with_statics(function.fun), every=every)
    seen: Watched = watching(*given, **named)[1]
    return seen


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        "python -m verax explore",
        description="Show every stage of a program, from its lines to compiled code.",
    )
    made.add_argument(
        "target",
        help="script.py:function, package.module:function, or a saved program",
    )
    made.add_argument(
        "--args",
        default="",
        metavar="EXPRESSIONS",
        help="arguments of the call, in the names of the script; np is NumPy, vnp "
        "verax.numpy, random verax.random; ShapeDtypeStruct stands for an array "
        "of a type",
    )
    add_transformations(made)
    made.add_argument(
        "--profile", action="store_true", help="run it, and say how long rows take"
    )
    made.add_argument(
        "--precision",
        action="store_true",
        help="run it beside a shadow, and say which rows and lines lose digits",
    )
    made.add_argument(
        "--no-compile", action="store_true", help="leave out what XLA makes of it"
    )
    made.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the page there, or its document if the name ends in .json, "
        "instead of opening a browser",
    )
    made.add_argument(
        "--serve",
        nargs="?",
        type=int,
        const=0,
        metavar="PORT",
        help="show the page at an address of this machine, and make it again when the "
        "script or a module beside it changes; at any free port without one",
    )
    made.add_argument("--files", help=argparse.SUPPRESS)
    add_reports(made)
    return made


def add_transformations(made: argparse.ArgumentParser) -> None:
    """Add the options that say what is made of the function first."""
    made.add_argument(
        "--static",
        metavar="NAMES",
        help="names or numbers of static arguments, with commas between, as of jit",
    )
    made.add_argument(
        "--grad",
        nargs="?",
        const="0",
        metavar="ARGNUMS",
        help="look at its gradient, by the first argument or by those that are named",
    )
    made.add_argument(
        "--vmap",
        nargs="?",
        const="0",
        metavar="IN_AXES",
        help="look at it mapped over dimension 0, or as in_axes say; with --grad, at "
        "the mapped gradient",
    )


def add_reports(made: argparse.ArgumentParser) -> None:
    """Add the options that print something in place of the page."""
    made.add_argument(
        "--costs",
        nargs="?",
        const="cpu",
        metavar="DEVICE",
        help="print what each line costs on a device: cpu (this machine), "
        f"{', '.join(KNOWN)}",
    )
    made.add_argument(
        "--watch",
        action="store_true",
        help="run it, and print the values of each line; with -o, a page that has them",
    )
    made.add_argument(
        "--json", action="store_true", help="print JSON instead of a page or a table"
    )


def check_options(options: argparse.Namespace) -> None:
    """Find mistakes that need nothing run.

    Raises:
        Mistake: options exclude each other, or there is no place for the page.
    """
    if options.profile and options.no_compile:
        raise Mistake("--profile runs the compiled program: leave out --no-compile")
    costed = options.costs is not None
    if options.watch and costed:
        raise Mistake("--watch and --costs print a report each: choose one")
    prints = options.watch and options.output is None
    report = "--watch" if prints else "--costs" if costed else None
    page = {
        "--profile": options.profile,
        "--precision": options.precision,
        "--no-compile": options.no_compile,
    }
    for option, given in page.items():
        if report and given:
            raise Mistake(f"{option} is of the page: leave it out of {report}")
    if options.output is not None and (report or options.json):
        raise Mistake(
            f"-o is where the page goes, and {report or '--json'} prints: leave out one"
        )
    if options.costs not in (None, "cpu", *KNOWN):
        raise Mistake(
            f"--costs {options.costs}: there is no such device; there are cpu, "
            f"{', '.join(KNOWN)}"
        )
    folder = Path(options.output or ".").parent
    if not folder.is_dir():
        raise Mistake(f"-o {options.output}: there is no directory {folder}")


def check_call(
    target: str, subject: object, args: Sequence[object], kwargs: dict[str, object]
) -> None:
    """Find mistakes of a call before it is traced.

    Raises:
        Mistake: the subject is not a function, or takes other arguments.
    """
    if isinstance(subject, ClosedJaxpr):
        count = len(subject.in_avals)
        if kwargs or len(args) not in (0, count):
            raise Mistake(
                f"the program takes {count} arguments by position, not "
                f"{len(args) + len(kwargs)}{' by name' if kwargs else ''}"
            )
        return
    if not callable(subject):
        kind = type(subject).__name__
        raise Mistake(f"this is of type {kind}, not a function")
    try:
        signature = inspect.signature(subject)
    except ValueError:  # some functions of C do not say what they take
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        name = target.rpartition(":")[2]
        raise Mistake(
            f"{name}{signature}: {error}; give arguments as they would stand in a "
            'call: --args "x, y, key=1"'
        ) from None


def subject_of(target: str, read: Read) -> tuple[Any, dict[str, object]]:
    """The function or program that is meant, and the names for its arguments.

    Raises:
        Mistake: there is no such file, or no such function in it.
    """
    place, colon, path = target.rpartition(":")
    if not colon:
        return saved(target, read), {}
    if not place or not path:
        raise Mistake("write script.py:function or package.module:function")
    if place.endswith(".py"):
        folder = os.path.dirname(os.path.abspath(place))
        if folder not in sys.path:
            sys.path.insert(0, folder)
        if not Path(place).is_file():
            raise Mistake("there is no such script")
        names = runpy.run_path(place, run_name=NAME)
        home: object = SimpleNamespace(**names)
    else:
        home = imported(place)
        names = vars(home)
    try:
        return reduce(getattr, path.split("."), home), names
    except AttributeError:
        known = ", ".join(sorted(functions(vars(home)))) or "none"
        raise Mistake(f"{place} has no function {path}; it has {known}") from None


def functions(names: Mapping[str, object]) -> Iterator[str]:
    """The names of functions that a script or module may be explored by."""
    for name, value in names.items():
        if callable(value) and not name.startswith("_") and not isinstance(value, type):
            yield name


def saved(path: str, read: Read) -> ClosedJaxpr:
    """A saved program.

    Raises:
        Mistake: it cannot be read.
    """
    if path.endswith(".py"):
        raise Mistake(f"this is a script: say which function, as in {path}:loss")
    if not Path(path).is_file():
        raise Mistake("there is no such file; write script.py:function for a function")
    try:
        return read(path)
    except (OSError, ValueError, TypeError) as error:
        raise Mistake(
            f"{error}; write script.py:function to explore a function"
        ) from error


def imported(name: str) -> ModuleType:
    """A module by its name.

    Raises:
        Mistake: there is none.
    """
    try:
        return module_named(name)
    except ModuleNotFoundError as error:
        raise Mistake(str(error)) from error


def called_with(
    text: str, names: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """The arguments in a text, as they would stand in a call.

    Raises:
        Mistake: it is not an expression in the names that there are.
    """

    def collect(
        *args: object, **kwargs: object
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        return args, kwargs

    given_names = {
        "np": np,
        "vnp": vnp,
        "random": random,
        "ShapeDtypeStruct": ShapeDtypeStruct,
        "symbolic_shape": symbolic_shape,
    }
    known = given_names | names | {"__call": collect}
    try:
        given: tuple[tuple[object, ...], dict[str, object]] = eval(
            f"__call({text})", known
        )
    except (NameError, SyntaxError) as error:
        raise Mistake(f"--args {text!r}: {error.args[0]}") from error
    except Exception as error:
        error.add_note(f"while --args {text!r} was evaluated")
        raise
    return given


def written(made: Exploration, output: str | None) -> str:
    """The path of the page, which is written or opened now."""
    path = made.open() if output is None else made.save(output)
    return str(path)
