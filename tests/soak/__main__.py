"""The soak: mixed work for minutes, every result checked, memory flat at the end.

python -m tests.soak --seconds 300 --seed 0
"""

import argparse
import sys

from tests.soak.harness import soak


def main() -> int:
    """0 if memory stayed flat; a wrong result raises."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    report = soak(chosen.seconds, chosen.seed, tell=print)
    print(report)
    return 0 if report.flat else 1


if __name__ == "__main__":
    sys.exit(main())
