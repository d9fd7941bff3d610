"""`python -m verax.jax`: run a program with verax where it imports jax."""

import os
import runpy
import sys

from verax.jax.finder import install

USAGE = """usage: python -m verax.jax script.py [args]
       python -m verax.jax -m module [args]
       python -m verax.jax -c code [args]
       python -m verax.jax --doctor script.py
"""


def main(args: list[str]) -> None:
    if not args or args[0] in ("-h", "--help"):
        sys.exit(USAGE)
    install()
    os.environ["VERAX_AS_JAX"] = "1"
    first, rest = args[0], args[1:]
    if first == "-m":
        sys.argv = rest
        sys.path.insert(0, os.getcwd())
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = args
        sys.path.insert(0, os.path.dirname(os.path.abspath(first)))
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
