"""What libraries take from below the public names of jax."""

from pathlib import Path

from tests.jax.programs import output

PROGRAM = Path(__file__).parent / "private_program.py"
PICKLED = """
import cloudpickle, jax, jax.numpy as jnp, pickle, subprocess, sys
def f(x): return jnp.sin(x) + jax.nn.relu(x)
data = cloudpickle.dumps(f)
code = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read())(0.0))"
print(pickle.loads(data)(0.0), flush=True)
subprocess.run([sys.executable, "-c", code], input=data, check=True)
"""


def test_a_program_that_looks_below() -> None:
    assert output(PROGRAM) == "looked below\n"


def test_functions_that_mention_modules_are_pickled_by_value() -> None:
    assert output("-c", PICKLED) == "0.0\n0.0\n"
