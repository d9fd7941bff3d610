"""A worker: one process, one library, some cases; one JSON line for each.

The idea: the worker says which case it begins, so that the driver knows which one
took the process down; an exception is a line of its own, not the end.

    python -m tests.benchmarks.worker --library jax --seconds 0.2 trace/mlp
"""

import argparse
import dataclasses
import json
import traceback
from collections.abc import Iterator

from .catalog import CASES
from .measure import sample
from .namespace import FULL, QUICK, Namespace, Scale, load

type Line = dict[str, object]


def run_case(ns: Namespace, name: str, scale: Scale, seconds: float) -> Line:
    """Measure one case; return its line, with the error if it failed."""
    case = next(case for case in CASES if case.name == name)
    try:
        result = sample(case.build(ns, scale), seconds)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        message = " ".join(str(error).split())[:200]
        where = f"{last.filename}:{last.lineno}"
        text = f"{type(error).__name__}: {message} ({where})"
        return {"case": name, "error": text}
    return {"case": name, **dataclasses.asdict(result)}


def lines(arguments: argparse.Namespace) -> Iterator[Line]:
    """Yield a line at the begin and at the end of every case."""
    scale = QUICK if arguments.quick else FULL
    ns = load(arguments.library)
    for name in arguments.cases:
        yield {"begin": name}
        yield run_case(ns, name, scale, arguments.seconds)


def main() -> None:
    """Run the cases named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("cases", nargs="+")
    for line in lines(parser.parse_args()):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
