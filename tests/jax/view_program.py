"""Run by test_views.py under `python -m verax.jax`: looks at modules named jax."""

import importlib
import importlib.metadata
import importlib.util
import pickle
import sys

import jax
import jax.numpy as jnp

import verax
import verax.numpy


def error_of(source: str) -> str:
    """The message of the error that a statement raises."""
    try:
        exec(source, {"jax": jax})
    except (ImportError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def starred(module: str) -> set[str]:
    """The names that `from module import *` gives."""
    names: dict[str, object] = {}
    exec(f"from {module} import *", names)
    return names.keys() - {"__builtins__"}


def check_versions() -> None:
    version = importlib.metadata.version("jax")
    assert version == jax.__version__ == jax.version.__version__
    assert jax.__version_info__ == tuple(map(int, version.split(".")))
    assert importlib.metadata.version("JAX") == version
    assert importlib.metadata.metadata("jax")["Name"] == "jax"
    assert importlib.metadata.version("jaxlib").count(".") >= 2
    assert importlib.import_module("jax.lib").__version__ == importlib.metadata.version(
        "jaxlib"
    )
    listed = [d.name for d in importlib.metadata.distributions()]
    assert "jax" in listed


def check_modules() -> None:
    spec = importlib.util.find_spec("jax")
    assert spec is not None
    assert importlib.util.find_spec("jax.scipy.stats") is not None
    assert importlib.util.find_spec("jax.no_module") is None
    assert importlib.reload(jax) is jax
    assert sys.modules["jax.numpy"] is jnp is jax.numpy
    assert jax.numpy.linalg is importlib.import_module("jax.numpy.linalg")
    for name in ("jit", "numpy", "tree_util"):
        assert name in dir(jax)
        assert name in starred("jax")
    assert not {"ir", "rewrites", "transforms", "wiring"} & {*dir(jax), *starred("jax")}
    assert {"primitive_jvps", "defjvp"} < starred("jax.interpreters.ad")
    assert not {"Any", "Callable"} & {*dir(jax.interpreters.ad), *dir(jax.core)}
    assert {"sin", "array", "float32"} < starred("jax.numpy")
    assert {"sin", "array", "float32"} < vars(jnp).keys()
    assert vars(jnp)["sin"] is jnp.sin
    assert dict(vars(jnp))["cos"] is {**vars(jnp)}["cos"] is jnp.cos
    assert "no_name" not in vars(jnp)
    before = set(sys.modules)
    for module in sys.modules.values():
        vars(module).get("__file__")
    assert set(sys.modules) == before
    vars(jax.nn)["mine"] = 3
    assert jax.nn.mine == 3
    vars(jax.nn).update(mine=4)
    assert jax.nn.mine == vars(jax.nn).pop("mine") == 4
    assert not hasattr(jax.nn, "mine")
    assert eval("tan", vars(jnp)) is jnp.tan
    assert all(callable(f) for name, f in vars(jax.nn).items() if name == "relu")


def check_values() -> None:
    values = (
        *(jax.jit, jnp.sin, jax.Array, jax.lax.add, jax.nn.relu, jax.core.ShapedArray),
        *(jax.tree_util.Partial, jax.sharding.NamedSharding, jax.tree_util.tree_map),
        *(jax.scipy.stats.norm.pdf, jax.extend.core.Primitive),
        jax.extend.random.define_prng_impl,
    )
    for value in values:
        assert pickle.loads(pickle.dumps(value)) is value
    assert pickle.loads(b"cjax.numpy\nsin\n.") is verax.numpy.sin
    assert jax.ad_checkpoint.checkpoint_policies is jax.checkpoint_policies
    assert "radians" in (jnp.sin.__doc__ or "")


def check_assignments() -> None:
    vars(jnp)["added"] = 3
    jax.numpy.also = 4
    assert jnp.added == 3
    assert not hasattr(verax.numpy, "added")
    assert not hasattr(verax.numpy, "also")


def check_errors() -> None:
    assert not hasattr(jax, "no_name")
    where = "(verax as jax; see docs/libraries.md)"
    assert error_of("jax.no_name") == (
        f"AttributeError: module 'jax' has no attribute 'no_name' {where}"
    )
    assert error_of("from jax import no_name") == (
        f"ImportError: cannot import name 'no_name' from 'jax' {where}"
    )
    assert error_of("import jax.no_name") == (
        f"ModuleNotFoundError: No module named 'jax.no_name' {where}"
    )
    assert not hasattr(jax, "rewrites")


if __name__ == "__main__":
    check_versions()
    check_modules()
    check_values()
    check_assignments()
    check_errors()
    print("looked at everything")
