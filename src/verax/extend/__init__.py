"""Parts for extensions of your own, in one place (floor 6).

One idea: a primitive is a row, a transformation is a table, and both are values that
are passed along; nothing is registered and nothing in the library changes::

    my_p = composite("my", NoParams, lambda p, x: x * verax.numpy.tanh(x))
    bounds = Propagation("bounds", CONTROL) | {my_p: rule}
    with_rules(f, standard | {round_p: straight_p})

`docs/adding-a-primitive.md` and `docs/adding-a-transformation.md` go through it, and
`docs/examples/` has three whole extensions.
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {
        ".functions": "Opened opened propagate run with_passes",
        ".overriding": "with_rules",
        "verax.ir.jaxpr": "NO_PARAMS NoParams Params",
        "verax.ops.calls.call": "inlined thread_loop",
        "verax.ops.table": "PRIMITIVES",
        "verax.rules.families.elementwise": (
            "chlo composed elementwise parametric stablehlo"
        ),
        "verax.rules.programs.derived": "composite standard",
        "verax.rules.rows.bodies": "Parts Role thread_call Through Types Values",
        "verax.rules.rows.kernels": "Kernel",
        "verax.rules.rows.row": (
            "Domain MissingRule Narrow Row RuleTable Sample Zero Flops no_flops Traits "
            "traits_of Work"
        ),
        "verax.transforms.engine.engine": "STANDARD",
        "verax.transforms.tables": "CONTROL INSIDE Propagation Rule",
    },
    modules="backend core mlir random",
)
