"""`make fuzz`: random nested programs, and jax beside them where it is installed.

One idea: both libraries run the text of the same seeds, each in a process of its own;
verax runs it once more with rules that read the loop's variables from around them::

    python -m tests.fuzz --first 0 --count 200
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from tests.fuzz import running
from tests.fuzz.comparing import Results, contradictions, differences, is_same
from tests.fuzz.forms import FORMS
from tests.fuzz.programs import KINDS, source

NUDGE = 2e-6
"""Some units in the last place of floats of 32 bits."""
JAX = Path(".venv-bench/bin/python")


def streamed(python: str, library: str, texts: Sequence[str]) -> Iterator[Results]:
    """The results of a library in another process, program by program."""
    command = [python, running.__file__, library]
    with tempfile.TemporaryFile("w+") as given:
        given.write("".join([json.dumps(text) + "\n" for text in texts]))
        given.seek(0)
        with subprocess.Popen(
            command, stdin=given, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            yield from map(json.loads, process.stdout)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")


def sensitive(names: Mapping[str, Any], text: str, own: Results) -> bool:
    """Whether a program makes other numbers of nearly the same point.

    Loops may multiply an error so much that nothing can be compared.
    """
    if any(isinstance(x, str) for x in own.values()):
        return False
    return bool(differences(running.results(names, text, NUDGE), own))


def compared(
    seed: int, names: Mapping[str, Any], due: Results | None, counts: Counter[str]
) -> list[str]:
    """What is wrong with a program; `due` are the results of jax."""
    text, program = source(seed, late=False).text, source(seed, late=True)
    own = running.results(names, text)
    late = running.results(names, program.text)
    wrong = contradictions(own)
    wrong += [f"rules that read late: {x}" for x in differences(late, own)]
    if due is not None:
        counts["refused"] += any(isinstance(x, str) for x in due.values())
        wrong += [f"beside jax: {x}" for x in differences(own, due)]
    if wrong and sensitive(names, text, own):
        counts["sensitive"] += 1
        return []
    counts["exact"] += is_same(late["eager"], late["value"])
    if due is not None:
        counts["exact in jax"] += is_same(due["eager"], due["value"])
    if wrong:
        return [*wrong, text, program.text]
    counts["agree"] += 1
    counts.update(program.used)
    return []


def main(arguments: list[str]) -> int:
    """Compare; the exit status says whether all agreed."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=200, help="how many seeds")
    parser.add_argument("--jax", default=str(JAX), help="a Python that has jax")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.count)
    beside = Path(options.jax).exists()
    if not beside:
        print(f"no jax at {options.jax}: verax is compared with itself")
    names = running.space_of("verax")
    texts = [source(seed, late=False).text for seed in seeds]
    others = streamed(options.jax, "jax", texts) if beside else repeat(None)
    counts: Counter[str] = Counter()
    for seed, due in zip(seeds, others, strict=False):
        if wrong := compared(seed, names, due, counts):
            print(f"seed {seed}:", *wrong, sep="\n  ", flush=True)
    agree, unsteady = counts["agree"], counts["sensitive"]
    print(
        f"{agree} of {len(seeds)} programs agree in all ways that both libraries take"
    )
    print(f"{unsteady} are too sensitive to rounding for their numbers to say anything")
    # XLA compiles a loop with its derivative to other sums than the loop alone.
    print(
        f"{counts['exact']} have the same value, bit for bit, beside their gradient; "
        f"in jax {counts['exact in jax']}"
    )
    print(f"jax refused a way to run {counts['refused']}")
    print("programs that agree, by what is in them:")
    kinds = sorted([*KINDS, *FORMS], key=lambda kind: -counts[kind])
    print(*[f"{counts[kind]} {kind}" for kind in kinds], sep=", ")
    return int(agree + unsteady < len(seeds))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
