"""Floor 6: the verification kit: every law of the library as a generated test.

One idea: a law is a plain function on a case (a program and values), so it can be tried
on a row of a table, on a random program, or on a function of a user alike::

    verify.check_primitive(my_p).raise_if_broken()
    verify.check_function(loss, weights, batch).raise_if_broken()
    verify.check_sharded(loss, weights, batch, mesh=mesh, in_specs=(P(), P("m")))

`assert_same_program` holds a function to what it was: to its program in a file.
`prove_rewrite` and `prove_jvp` prove what can be proved, with SymPy.

Importing `verax` does not import this package. It needs hypothesis, which comes with
`pip install 'verax[verify]'`.
"""

try:
    import hypothesis as _hypothesis
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "verax.verify draws and shrinks with hypothesis, which is not installed; "
        "install it with: pip install 'verax[verify]'"
    ) from error

from verax.verify import laws, strategies
from verax.verify.cases.case import Case, LawBroken, Skipped, read_case
from verax.verify.checking.check import check_function, check_primitive, row_of
from verax.verify.checking.check_rewrites import check_rewrite, check_transformation
from verax.verify.checking.check_sharded import check_sharded
from verax.verify.checking.equality import Counterexample, Proof, Refuted
from verax.verify.checking.report import Finding, LawsBroken, Report
from verax.verify.checking.row_proofs import prove_jvp, prove_transpose
from verax.verify.checking.rule_proofs import prove_rewrite
from verax.verify.pinned import NotPinned, assert_same_program
from verax.verify.random_programs import programs
from verax.verify.replay import hold

del _hypothesis

__all__ = [
    "Case",
    "Counterexample",
    "Finding",
    "LawBroken",
    "LawsBroken",
    "NotPinned",
    "Proof",
    "Refuted",
    "Report",
    "Skipped",
    "assert_same_program",
    "check_function",
    "check_primitive",
    "check_rewrite",
    "check_sharded",
    "check_transformation",
    "hold",
    "laws",
    "programs",
    "prove_jvp",
    "prove_rewrite",
    "prove_transpose",
    "read_case",
    "row_of",
    "strategies",
]
