"""A process that measures cases of a library, or says their codes, a JSON line each.

python -m tests.benchmarks.compiled.worker jax sweep times numpy.sin/x
"""

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .cases import measured, sampled
from .libraries import Traced, of_name
from .suites import SUITES

type Line = dict[str, Any]
TURN = 0.01
"""Seconds of a sample where two processes take turns."""


def lines(
    library: str, suite: str, chosen: Sequence[str], codes: bool = False
) -> Iterator[Line]:
    """Measure the cases, or say their `codes`; a prime marks a gradient."""
    worded = SUITES[suite].worded
    measuring = of_name(library, SUITES[suite].wide)
    for case in (SUITES[suite].cases[name] for name in chosen):
        if library.startswith("torch") and not case.eager:
            continue
        for grad in [False] * case.value + [True] * bool(case.grads):
            name = f"{case.name}'" if grad and case.value else case.name
            try:
                if codes and isinstance(measuring, Traced):
                    yield {"case": name, "code": measuring.code(case, worded, grad)}
                    continue
                time = measured(measuring.call(case, worded, grad))
                yield {"case": name, **dataclasses.asdict(time)}
            except Exception as error:
                text = " ".join(f"{type(error).__name__}: {error}".split())[:160]
                yield {"case": name, "error": text}


def turns(library: str, suite: str, chosen: Sequence[str]) -> Iterator[Line]:
    """One sample of a case for each line of the input, until a line says "next".

    Before the first a line says which case it is.
    """
    worded = SUITES[suite].worded
    measuring = of_name(library, SUITES[suite].wide)
    for case in (SUITES[suite].cases[name] for name in chosen):
        for grad in [False] * case.value + [True] * bool(case.grads):
            sample = sampled(measuring.call(case, worded, grad), TURN)
            yield {"case": f"{case.name}'" if grad and case.value else case.name}
            while sys.stdin.readline().strip() == "sample":
                yield {"later": sample()}


def main() -> None:
    """Measure the cases named on the command line."""
    np.seterr(all="ignore")
    library, suite, what, *chosen = sys.argv[1:]
    for line in (
        turns(library, suite, chosen)
        if what == "turns"
        else lines(library, suite, chosen, what == "codes")
    ):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
