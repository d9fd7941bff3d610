"""Random programs, what is derived from them, and what they are lowered to, as digests.

    python -m property_tests.histories 0 100 forwards

prints one line for each seed. Another hash seed, or another order, must print the same
lines: nothing depends on what the process did before.
"""

import sys
from hashlib import sha256

from verax.backend.lowering.lower import lower
from verax.ir.text.printer import print_jaxpr
from verax.ops.special.erf_gamma import NoDerivative
from verax.ops.table import ROWS
from verax.transforms.passes.cse import cse
from verax.verify.cases.growing import pool_of
from verax.verify.checking.functions import ENGINE
from verax.verify.laws.invariance import derived
from verax.verify.random_programs import composable, seed_case

POOL = pool_of(composable(ROWS, "jvp", "batch", "lower"))
MOST = 4


def digest(seed: int) -> str:
    """Of the program of a seed: printed, derived and lowered."""
    case = seed_case(POOL, seed, most=MOST)
    try:
        programs = [case.jaxpr, cse(case.jaxpr), *derived(ENGINE, case)]
    except NoDerivative:
        programs = [case.jaxpr]
    texts = [print_jaxpr(program) for program in programs]
    texts.append(lower(ENGINE, case.jaxpr, "f", platforms=("cpu",)).text)
    return sha256("\n".join(texts).encode()).hexdigest()[:16]


def main() -> None:
    first, count, order = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    seeds = range(first, first + count)
    for seed in seeds if order == "forwards" else reversed(seeds):
        print(seed, digest(seed))


if __name__ == "__main__":
    main()
