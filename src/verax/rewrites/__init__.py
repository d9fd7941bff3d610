"""Rewrite rules for programs: write your own, apply them, or take the shipped sets.

A rule is two functions of the same variables, and applying rules is a transformation
like any other::

    @rewrite(lambda x: vnp.log(1 + x))
    def log_of_one_plus(x):
        return vnp.log1p(x)

    verax.jit(apply([log_of_one_plus, *stable()])(f))
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {
        ".algebraic": "algebra",
        ".applying": "apply cheaper",
        ".scaling": "DynamicScale dynamic_scale loss_scale",
        ".narrowing": "narrow narrow_report",
        ".stabilising": "Repair Stabilised stabilise stable",
        ".stepping": "RewriteTrace trace",
        "verax.transforms.narrowing.report": "NarrowLine NarrowReport",
        "verax.transforms.patterns.matching": "Step RewriteLoop",
        "verax.transforms.patterns.rewrite_rules": (
            "Operand Rewrite rewrite RewriteError"
        ),
    },
)
