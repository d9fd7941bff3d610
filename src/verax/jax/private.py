"""The modules below `jax._src` that can be imported, and what shows them: a table.

One rule covers most: `verax.numpy` shows each `jax._src.numpy.X`, and so it is for
`lax`, `scipy` and what has a module of its own; `verax.jax.internals` has the few
names that only programs which reach below ask for::

    "jax._src.numpy.lax_numpy": ("verax.jax.internals.functions.numpy", "verax.numpy")
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

INTERNALS: Final = "verax.jax.internals."
FUNCTIONS: Final = f"{INTERNALS}functions."
TYPES: Final = f"{INTERNALS}types."
OVERLAYS: Final = "verax.jax.overlays."

NUMPY: Final = (
    "array_api_metadata array_constructors array_creation array_methods einsum error "
    "index_tricks indexing lax_numpy polynomial reductions scalar_types setops sorting "
    "tensor_contractions ufunc_api ufuncs util vectorize window_functions"
)
LAX: Final = (
    "ann control_flow control_flow.common control_flow.conditionals "
    "control_flow.loops control_flow.solves convolution erf fft lax lgamma other "
    "eval_jaxpr parallel scaled_dot slicing special utils windowed_reductions"
)
STATS: Final = (
    "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom "
    "gumbel_l gumbel_r laplace logistic multinomial multivariate_normal nbinom norm "
    "pareto poisson t truncnorm uniform vonmises wrapcauchy"
)
SCIPY: Final = (
    "cluster cluster.vq fft integrate linalg ndimage optimize signal sparse "
    "sparse.linalg spatial spatial.transform special stats "
    + " ".join([f"stats.{name}" for name in STATS.split()])
)
ALIKE: Final = (
    "custom_batching custom_derivatives dlpack errors ffi flatten_util "
    "monitoring nn nn.initializers ops profiler stages tree"
)
"""Modules that verax has in public under the same name."""

BY_RULE: Final[dict[str, tuple[str, ...]]] = {
    f"{package}.{name}": (f"{FUNCTIONS}{package}", f"verax.{package}")
    for package, names in (("numpy", NUMPY), ("lax", LAX))
    for name in names.split()
}
BY_NAME: Final[dict[str, tuple[str, ...]]] = {
    name: (f"verax.{name}",) for name in ALIKE.split()
}
IN_SCIPY: Final[dict[str, tuple[str, ...]]] = {
    f"scipy.{name}": (f"verax.scipy.{name}",) for name in SCIPY.split()
}

OTHERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "": (),
        "abstract_arrays": ("verax.core",),
        "ad_checkpoint": (
            "verax.ad_checkpoint",
            "verax.checkpoint_policies",
            f"{OVERLAYS}known_primitives",
        ),
        "ad_util": (f"{INTERNALS}ad_util", f"{OVERLAYS}ad"),
        "api": (f"{FUNCTIONS}api", "verax"),
        "api_util": (
            f"{FUNCTIONS}api_util",
            f"{OVERLAYS}api_util",
            "verax.api_util",
        ),
        "array": (f"{TYPES}array", "verax"),
        "basearray": ("verax",),
        "callback": ("verax", "verax.experimental"),
        "checkify": ("verax.experimental.checkify", f"{INTERNALS}checkify"),
        "clusters": (),
        "compilation_cache": (
            f"{INTERNALS}compilation_cache",
            "verax.experimental.compilation_cache",
        ),
        "compiler": (),
        "compute_on": ("verax.experimental.compute_on",),
        "config": (f"{INTERNALS}config",),
        "core": (
            f"{INTERNALS}core",
            "verax.core",
            "verax.extend.core",
            "verax.errors",
            "verax.ref",
            "verax.sharding",
            f"{OVERLAYS}known_primitives",
        ),
        "debugger": ("verax.debug",),
        "custom_partitioning": ("verax.experimental.custom_partitioning",),
        "debugging": (f"{FUNCTIONS}debugging", "verax.debug"),
        "dispatch": (f"{INTERNALS}dispatch",),
        "distributed": (f"{INTERNALS}distributed", "verax.distributed"),
        "dtypes": (f"{TYPES}dtypes", "verax.dtypes"),
        "earray": (),
        "effects": (f"{TYPES}effects",),
        "export": (),
        "export._export": ("verax.export",),
        "flattree": ("verax.jax.flattree",),
        "frozen_dict": (f"{TYPES}frozen_dict",),
        "hijax": (f"{TYPES}hijax", "verax.experimental.hijax"),
        "image": ("verax.image",),
        "image.scale": ("verax.image",),
        "indexing": ("verax.numpy.indexing.slices",),
        "interpreters": (),
        "interpreters.ad": (f"{OVERLAYS}ad", "verax.experimental.hijax"),
        "interpreters.batching": (f"{OVERLAYS}batching",),
        "interpreters.mlir": (f"{OVERLAYS}mlir",),
        "interpreters.partial_eval": (f"{OVERLAYS}partial_eval",),
        "interpreters.pxla": (f"{OVERLAYS}xla",),
        "layout": ("verax.experimental.layout",),
        "lax": (f"{FUNCTIONS}lax", "verax.lax"),
        "lax.linalg": (f"{FUNCTIONS}lax", "verax.lax.linalg", "verax.lax"),
        "lib": (f"{INTERNALS}lib", "jaxlib.version"),
        "lib.jax_mlir_ext": ("jaxlib.mlir._mlir_libs._jax_mlir_ext",),
        "lib.lapack": ("jaxlib.lapack",),
        "lib.mlir": ("jaxlib.mlir",),
        "lib.mlir.dialects": ("jaxlib.mlir.dialects",),
        "lib.mlir.ir": ("jaxlib.mlir.ir",),
        "lib.xla_client": (f"{INTERNALS}lib", "jaxlib.xla_client"),
        "linear_util": (f"{OVERLAYS}linear_util",),
        "literals": (f"{TYPES}literals",),
        "mesh": (f"{TYPES}sharding_impls", "verax.sharding"),
        "named_sharding": ("verax.sharding",),
        "nn.functions": ("verax.nn",),
        "numpy": ("verax.numpy",),
        "numpy.fft": ("verax.numpy.fft",),
        "numpy.linalg": ("verax.numpy.linalg",),
        "op_shardings": (f"{INTERNALS}op_shardings",),
        "ops.scatter": (f"{FUNCTIONS}numpy", "verax.ops"),
        "ops.special": ("verax.scipy.special", "verax.nn"),
        "partition_spec": ("verax.sharding",),
        "pjit": (f"{INTERNALS}pjit", "verax.experimental.pjit", "verax.sharding"),
        "pretty_printer": (f"{TYPES}pretty_printer",),
        "public_test_util": (f"{FUNCTIONS}public_test_util",),
        "random": (f"{TYPES}prng", "verax.random"),
        "random.core": (f"{TYPES}prng", "verax.random"),
        "random.prng": (f"{TYPES}prng", "verax.extend.random", "verax.random"),
        "random.rbg": ("verax.extend.random",),
        "random.threefry2x32": (f"{FUNCTIONS}threefry2x32",),
        "prng": (f"{TYPES}prng", "verax.extend.random", "verax.random"),
        "scipy": ("verax.scipy",),
        "shard_map": (f"{FUNCTIONS}shard_map", "verax.experimental.shard_map"),
        "sharding": ("verax.sharding",),
        "sharding_impls": (f"{TYPES}sharding_impls", "verax.sharding"),
        "source_info_util": (f"{OVERLAYS}source_info_util",),
        "state": (f"{TYPES}state", "verax.ref"),
        "state.discharge": (f"{TYPES}state",),
        "state.primitives": (f"{TYPES}state", "verax.ref"),
        "state.types": (f"{TYPES}state", "verax.ref"),
        "test_util": (f"{FUNCTIONS}public_test_util",),
        "third_party": (),
        "third_party.scipy": (),
        "third_party.scipy.linalg": ("verax.scipy.linalg",),
        "third_party.scipy.special": ("verax.scipy.special",),
        "third_party.scipy.interpolate": ("verax.scipy.interpolate",),
        "tpu": (),
        "tpu.linalg": (),
        "tpu.linalg.qdwh": ("verax.lax.linalg",),
        "traceback_util": (f"{INTERNALS}traceback_util",),
        "tree_util": (f"{FUNCTIONS}tree_util", "verax.tree_util"),
        "typing": (f"{TYPES}typing", "verax.typing"),
        "util": (f"{FUNCTIONS}util",),
        "xla_bridge": (f"{INTERNALS}xla_bridge", "verax.extend.backend", "verax"),
        "xla_metadata": ("verax.experimental.xla_metadata",),
    }
)

DIALECTS: Final = (
    "arith builtin cf chlo func gpu llvm math memref mhlo mpmd nvgpu nvvm scf sdy "
    "sparse_tensor stablehlo vector"
)

PRIVATE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        f"jax._src.{name}".rstrip("."): sources
        for name, sources in (BY_RULE | BY_NAME | IN_SCIPY | dict(OTHERS)).items()
    }
    | {
        f"{package}.{name}": (f"jaxlib.mlir.dialects.{name}",)
        for package in ("jax._src.lib.mlir.dialects", "jax.extend.mlir.dialects")
        for name in DIALECTS.split()
    }
    | {"jax._src.lib.mlir.dialects.hlo": ("jaxlib.mlir.dialects.stablehlo",)}
)
"""The modules of `jax._src` with the modules that show them, the first one first."""
