"""The order of the packages inside each floor, as a table.

One idea: floors say what may import what from far, and inside a floor its packages say
it again: each line may import the lines above it, never one below, and what stands on
one line does not know of each other::

    level("ops", "control") > level("ops", "calls")    # so control may import calls
"""

ORDER = {
    "ir": (
        "deprecation hints system",
        "locks",
        "facade records memos",
        "dtypes effects meshes",
        "avals",
        "promotion",
        "atoms",
        "text",
        "jaxpr",
        "library walk",
        "reports",
        "forms",
    ),
    "ops": (
        "base symbols",
        "elementwise",
        "structure",
        "reductions",
        "indexing random special",
        "calls parallel sorting",
        "contraction control windows",
        "core references",
        "custom",
        "linalg",
        "conv fft",
        "table hoisting",
    ),
    "backend": (
        "runtime pytrees",
        "processes",
        "lowering placement",
        "arrays xla",
        "programs",
        "calls",
        "eager",
    ),
    "api": (
        "trees",
        "tracing sharding_args memory",
        "arguments host vmap",
        "custom explain stages",
        "jit",
        "autodiff config parallel",
        "inspect export distributed",
    ),
    "numpy": (
        "arguments",
        "creation",
        "elementwise",
        "ranges reducing shaping",
        "grids matrices",
        "indexing linalg",
        "searching",
        "applying index_tools signal fft",
    ),
    "rules": (
        "guards",
        "values",
        "rows",
        "families programs",
    ),
    "transforms": (
        "engine",
        "backward_logs gradient_paths nans passes patterns references watching",
        "comparing memory narrowing",
        "pipeline",
        "precision tables",
        "checks",
        "public",
    ),
    "jax": (
        "private startup flattree colocated stand_ins",
        "names",
        "views primitives distribution identity",
        "finder doctor",
        "overlays",
        "internals",
        "command",
        "__main__",
    ),
    "verify": (
        "cases",
        "strategies",
        "random_programs",
        "laws",
        "checking",
        "page pinned replay",
        "__main__",
        "plugin",
    ),
}

LATE = {
    "beartype": "few functions check their annotations",
    "jaxtyping": "few functions check their annotations",
    "verax.api.explain.build": "few calls are explained",
    "verax.api.memory.search": "plans are seldom made, and load much of SciPy",
    "verax.lax.parallel": "few reductions run over axes by their names",
    "verax.transforms.memory.loops": "plans are seldom made, and load much of SciPy",
    "verax.transforms.memory.policy": "plans are seldom made, and load much of SciPy",
    "verax.backend.eager.guarded": "few programs guard transfers",
    "verax.backend.eager.key_checks": "few programs look for keys used twice",
    "verax.backend.eager.nan_checks": "few programs look for NaN",
    "verax.backend.runtime.background": "few compilations are shown",
    "verax.backend.runtime.log": "`logging` takes long to load",
    "verax.ir.text.html": "few values are shown in a notebook",
    "verax.backend.placement.views": "few meshes are shown in a notebook",
    "verax.ops.random.generators": "few keys are shown in a notebook",
    "verax.jax.distribution": "`importlib.metadata` takes long to load",
    "verax.ops.calls.metadata": "few programs tell the compiler anything",
    "verax.api.stages.on_references": "few functions take references",
    "verax.api.stages.serialization": "few programs go to a file",
    "verax.api.tracing.reference_checks": "few functions take references",
    "verax.backend.eager.stateful": "few operations are on references",
    "verax.transforms.references": "few functions make references",
    "verax.ops.hoisting": "it knows every primitive with a jaxpr",
    "verax.transforms.passes.chains": "most programs are short",
    "verax.transforms.passes.pieces": "it stores what is cut and joined",
    "verax.transforms.passes.partials": "it knows reductions and the library for them",
    "verax.transforms.passes.transposes": "it moves transposes",
    "verax.transforms.passes.kernels": "it knows the choices that kernels make",
    "verax.transforms.passes.outline": "most programs are short",
    "verax.backend.eager.single_op": "it compiles, which NumPy need not",
    "verax.backend.placement.abstract_mesh": "few meshes have no devices",
    "verax.backend.placement.mesh_context": "few programs have meshes",
    "verax.backend.processes.exchange": "most programs are one process",
    "verax.backend.runtime.cluster": "most programs are one process",
    "verax.backend.runtime.cuda": "not every machine has a GPU",
    "verax.backend.runtime.transfers": "few programs guard transfers",
    "verax.backend.xla.partition_calls": "few programs split calls by hand",
    "verax.backend.lowering.symbolic": "few programs have symbolic sizes",
    "verax.ops.parallel.collectives": "few programs have named axes",
    "verax.ops.structure.reshard": "few programs have explicit axes",
    "verax.numpy.applying.ufunc_loops": "few ufuncs go over rows by a loop",
    "verax.numpy.applying.vectorize_apply": "few programs make ufuncs",
    "verax.ops.elementwise.trig": "tests draw it",
    "verax.ops.random.keys": "few programs compare keys",
    "verax.random.shuffling": "few initializers are orthogonal",
    "difflib": "it takes long to load",
    "glob": "it takes long to load",
    "hashlib": "it takes long to load",
    "importlib": "`importlib.metadata` takes long to load",
    "jaxlib": "`jaxlib.xla_client` starts clients",
    "mpmath": "an extra installs it",
    "opt_einsum": "most products have two operands",
    "rich": "few compilations are shown",
    "scipy": "it takes as long to load as all of verax",
}
"""What functions may import when they run, and why it waits until then.

Everything else is imported at the top of a file. The other rules hold for these, too:
nothing is imported from a floor above, and there are no circles."""

PACKAGE_FILES = 16
"""So many files a reader looks through to find the right one."""


def level(floor: str, name: str) -> int | None:
    """The line on which a package or a lone module of a floor stands."""
    for number, line in enumerate(ORDER[floor]):
        if name in line.split():
            return number
    return None
