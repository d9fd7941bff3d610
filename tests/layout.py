"""The order of the packages inside each floor, as a table.

One idea: floors say what may import what from far, and inside a floor its packages say
it again: each line may import the lines above it, never one below, and what stands on
one line does not know of each other::

    level("ops", "control") > level("ops", "calls")    # so control may import calls
"""

ORDER = {
    "ir": (
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
        "calls contraction parallel sorting",
        "control linalg windows",
        "conv core fft references",
        "custom",
        "table hoisting",
    ),
    "backend": (
        "runtime pytrees",
        "processes results",
        "lowering placement",
        "arrays xla",
        "programs",
        "calls",
        "eager",
    ),
    "api": (
        "trees",
        "tracing sharding_args",
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
        "passes patterns nans references",
        "pipeline",
        "tables",
        "checks",
        "public",
    ),
    "jax": (
        "names record inert startup flattree",
        "views primitives distribution",
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
        "page replay",
        "__main__",
        "plugin",
    ),
}

PACKAGE_FILES = 16
"""So many files a reader looks through to find the right one."""


def level(floor: str, name: str) -> int | None:
    """The line on which a package or a lone module of a floor stands."""
    for number, line in enumerate(ORDER[floor]):
        if name in line.split():
            return number
    return None
