"""`python -m verax.jax`: run a program with verax where it imports jax."""

import sys

from verax.jax.command import main

if __name__ == "__main__":
    main(sys.argv[1:])
