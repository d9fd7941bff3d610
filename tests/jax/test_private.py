"""What libraries take from below the public names of jax."""

from importlib import import_module
from pathlib import Path

import pytest

from tests.jax.programs import output
from verax.jax.private import PRIVATE

PROGRAM = Path(__file__).parent / "private_program.py"
PICKLED = """
import cloudpickle, jax, jax.numpy as jnp, pickle, subprocess, sys
def f(x): return jnp.sin(x) + jax.nn.relu(x)
data = cloudpickle.dumps(f)
code = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read())(0.0))"
print(pickle.loads(data)(0.0), flush=True)
subprocess.run([sys.executable, "-c", code], input=data, check=True)
"""
JOBS = """
import jax, jax.numpy as jnp, sys
from joblib import Parallel, delayed
scale = jnp.arange(3.0)
@jax.jit
def f(x): return jnp.cos(x) * scale
@jax.custom_jvp
def g(x): return x * 3
g.defjvp(lambda xs, ts: (g(xs[0]), 5 * ts[0]))
def slope(x): return float(jax.grad(lambda x: g(x) * scale[1])(x))
if __name__ == "__main__":
    run = Parallel(n_jobs=2, backend="loky")
    print([x.tolist() for x in run(delayed(f)(jnp.zeros(3)) for _ in range(2))])
    print(run(delayed(slope)(float(x)) for x in range(2)))
"""


@pytest.mark.slow
def test_a_program_that_looks_below() -> None:
    assert output(PROGRAM) == "looked below\n"


@pytest.mark.slow
def test_functions_that_mention_modules_are_pickled_by_value() -> None:
    assert output("-c", PICKLED) == "0.0\n0.0\n"


@pytest.mark.slow
def test_jitted_functions_of_a_script_run_in_processes_of_joblib(
    tmp_path: Path,
) -> None:
    pytest.importorskip("joblib", reason="it comes with scikit-learn")
    script = tmp_path / "jobs.py"
    script.write_text(JOBS)
    assert output(script) == "[[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]\n[5.0, 5.0]\n"


@pytest.mark.slow
def test_modules_of_jaxlib_that_views_show_are_there() -> None:
    """Who walks all modules of jax, as treescope does, asks each for its names."""
    shown = {source for sources in PRIVATE.values() for source in sources}
    for source in sorted(shown):
        if source.startswith("jaxlib."):
            import_module(source)
