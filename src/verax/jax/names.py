"""Which modules `jax` has here, and what shows them: a frozen table.

The first module that has a name answers for it: the overlays of this package stand
before the modules of verax::

    "jax.api_util": ("verax.jax.overlays.api_util", "verax.api_util"),
    "jax.core": ("verax.jax.overlays.core", "verax.core")
"""

from collections.abc import Mapping
from types import MappingProxyType

VERSION = "0.12.0"
"""The version of jax whose public surface verax follows."""

VERSION_INFO = (0, 12, 0)

SAME = (
    "ad ad_checkpoint checkpoint_policies custom_batching custom_derivatives "
    "debug dlpack dtypes errors example_libraries example_libraries.optimizers "
    "example_libraries.stax experimental.checkify experimental.compilation_cache "
    "experimental.compilation_cache.compilation_cache experimental.jet "
    "experimental.layout "
    "experimental.mesh_utils experimental.ode experimental.pjit "
    "experimental.serialize_executable experimental.shard_map experimental.topologies "
    "experimental.xla_metadata export extend extend.backend extend.mlir extend.random "
    "ffi flatten_util image lax.linalg memory monitoring nn nn.initializers numpy "
    "numpy.fft numpy.linalg ops profiler random ref scipy scipy.cluster "
    "scipy.cluster.vq scipy.fft "
    "scipy.integrate scipy.interpolate scipy.linalg scipy.ndimage scipy.optimize "
    "scipy.signal scipy.sparse scipy.sparse.linalg scipy.spatial "
    "scipy.spatial.transform scipy.special scipy.stats "
    + " ".join(
        f"scipy.stats.{name}"
        for name in [
            "bernoulli",
            "beta",
            "betabinom",
            "binom",
            "cauchy",
            "chi2",
            "dirichlet",
            "expon",
            "gamma",
            "gennorm",
            "geom",
            "gumbel_l",
            "gumbel_r",
            "laplace",
            "logistic",
            "multinomial",
            "multivariate_normal",
            "nbinom",
            "norm",
            "pareto",
            "poisson",
            "t",
            "truncnorm",
            "uniform",
            "vonmises",
            "wrapcauchy",
        ]
    )
    + " sharding stages test_util tree tree_util typing"
).split()
"""Modules that verax has under the same name."""

OVERLAID = {
    "jax": ("verax.jax.overlays.top", "verax"),
    "jax.api_util": ("verax.jax.overlays.api_util", "verax.api_util"),
    "jax.core": ("verax.jax.overlays.core", "verax.core", "verax.extend.core"),
    "jax.experimental": ("verax.jax.overlays.experimental", "verax.experimental"),
    "jax.export": ("verax.jax.overlays.export", "verax.export"),
    "jax.extend.core": ("verax.jax.overlays.core", "verax.extend.core", "verax.core"),
    "jax.extend.core.primitives": ("verax.jax.overlays.known_primitives",),
    "jax.extend.ifrt_programs": (),
    "jax.extend.linear_util": ("verax.jax.overlays.linear_util",),
    "jax.extend.source_info_util": ("verax.jax.overlays.source_info_util",),
    "jax.version": ("verax.jax.overlays.top",),
    "jax.lax": ("verax.lax", "verax.jax.overlays.known_primitives"),
    "jax.interpreters": (),
    "jax.lib": ("jaxlib.version",),
    "jax.interpreters.ad": ("verax.jax.overlays.ad",),
    "jax.interpreters.batching": ("verax.jax.overlays.batching",),
    "jax.interpreters.mlir": ("verax.jax.overlays.mlir",),
    "jax.interpreters.partial_eval": ("verax.jax.overlays.partial_eval",),
    "jax.interpreters.pxla": (),
    "jax.interpreters.xla": ("verax.jax.overlays.xla",),
    "jax._src": (),
    "jax._src.ad_util": ("verax.jax.internals.ad_util",),
    "jax._src.checkify": (
        "verax.experimental.checkify",
        "verax.jax.internals.checkify",
    ),
    "jax._src.compiler": (),
    "jax._src.core": ("verax.jax.internals.core", "verax.core"),
    "jax._src.dispatch": ("verax.jax.internals.dispatch",),
    "jax._src.distributed": ("verax.jax.internals.distributed",),
    "jax._src.dtypes": ("verax.jax.internals.dtypes", "verax.dtypes"),
    "jax._src.flatten_util": ("verax.flatten_util",),
    "jax._src.flattree": ("verax.jax.flattree",),
    "jax._src.interpreters": (),
    "jax._src.interpreters.ad": ("verax.jax.overlays.ad",),
    "jax._src.interpreters.pxla": (),
    "jax._src.state": (),
    "jax._src.state.types": ("verax.ref",),
    "jax._src.api_util": ("verax.jax.internals.api_util", "verax.api_util"),
    "jax._src.public_test_util": ("verax.jax.internals.public_test_util",),
    "jax._src.literals": ("verax.jax.internals.literals",),
    "jax._src.random": (),
    "jax._src.random.threefry2x32": ("verax.jax.internals.threefry2x32",),
    "jax._src.pjit": ("verax.jax.internals.pjit",),
    "jax._src.traceback_util": ("verax.jax.internals.traceback_util",),
    "jax._src.tree_util": ("verax.jax.internals.tree_util", "verax.tree_util"),
    "jax._src.xla_bridge": ("verax.jax.internals.xla_bridge",),
    "jax.experimental.sparse.linalg": ("verax.experimental.sparse.linalg",),
    "jax.experimental.sparse.util": ("verax.experimental.sparse.util",),
    **{
        f"jax.experimental.sparse{name}": ("verax.experimental.sparse",)
        for name in ("", ".ad", ".api", ".bcoo", ".bcsr", ".coo", ".csr", ".transform")
    },
    "jax.experimental.sparse.random": ("verax.experimental.sparse",),
    "jax.experimental.colocated_python": (),
    "jax.experimental.colocated_python.func": (),
    "jax.experimental.colocated_python.serialization": (),
    "jax.experimental.array_serialization": (),
    "jax.experimental.array_serialization.serialization": (),
    "jax.experimental.multihost_utils": ("verax.experimental.multihost_utils",),
    "jax.experimental.pallas": (),
    "jax.experimental.pallas.ops": (),
    "jax.experimental.pallas.triton": (),
    "jax.experimental.jax2tf": (),
    "jax.experimental.pallas.ops.tpu": (),
    "jax.experimental.pallas.ops.tpu.splash_attention": (),
    "jax.experimental.hijax": ("verax.jax.internals.hijax",),
}

MODULES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {f"jax.{name}": (f"verax.{name}",) for name in SAME} | OVERLAID
)
