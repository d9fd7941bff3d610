"""Every function of `verax.numpy` that NumPy has is NumPy's, but for what is said.

One idea: a table has for each function a draw of its arguments, and one law compares
the results; a function or a parameter that is missing from the table fails a test,
unless it is listed here with a reason.
"""

import inspect
from collections import defaultdict
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import verax
from property_tests import (
    numpy_table_elements,
    numpy_table_making,
    numpy_table_products,
    numpy_table_reductions,
    numpy_table_searching,
    numpy_table_shapes,
    numpy_table_sizes,
)
from property_tests.numpy_draws import Draw
from property_tests.numpy_law import Subject, holds

SUBJECTS: Sequence[Subject] = [
    *numpy_table_elements.SUBJECTS,
    *numpy_table_reductions.SUBJECTS,
    *numpy_table_shapes.SUBJECTS,
    *numpy_table_products.SUBJECTS,
    *numpy_table_making.SUBJECTS,
    *numpy_table_searching.SUBJECTS,
    *numpy_table_sizes.SUBJECTS,
]

TYPES = "works on dtypes, which tests/numpy/creation/test_dtypes.py compares"
TEXT = "text, which tests/numpy/creation/test_io.py compares"
FILES = "files and buffers, which tests/numpy/creation/test_io.py tries"
FUNCTIONS = (
    "makes functions, which tests/numpy/searching/test_select_piecewise.py tries"
)
ELSEWHERE = {
    **dict.fromkeys(
        ("can_cast", "finfo", "iinfo", "isdtype", "issubdtype", "promote_types"), TYPES
    ),
    **dict.fromkeys(("result_type", "isscalar", "iterable"), TYPES),
    **dict.fromkeys(("array_repr", "array_str", "get_printoptions"), TEXT),
    **dict.fromkeys(("printoptions", "set_printoptions"), TEXT),
    **dict.fromkeys(("from_dlpack", "fromfile", "load", "save", "savez"), FILES),
    **dict.fromkeys(("frompyfunc", "vectorize"), FUNCTIONS),
    "einsum_path": "a path of opt_einsum, which need not be NumPy's",
}
"""Functions that are not in the table, and why."""

PARAMETERS = {
    "out": "arrays are immutable",
    "device": "JAX's: where a result lies",
    "out_sharding": "JAX's: where a result lies",
    "precision": "JAX's: how exact a product is",
    "preferred_element_type": "JAX's: the dtype of a product",
    "size": "JAX's: how many elements there are at most",
    "fill_value": "JAX's: stands for what `size` leaves over",
    "overwrite_input": "arrays are immutable",
    "promote_integers": "JAX's: whether small integers are summed in wider ones",
    "unique_indices": "JAX's: a promise that changes no value",
    "indices_are_sorted": "JAX's: a promise that changes no value",
    "wrap_negative_indices": "JAX's: another meaning of negative indices",
    "trim_leading_zeros": "JAX's: needs concrete values",
    "unroll": "JAX's: how a loop is compiled",
    "batch_size": "JAX's: how much is sorted at once",
    "symmetrize_input": "JAX's: which triangle is read",
    "subset_by_index": "JAX's: which of the singular values",
    "numpy_resid": "JAX's: whether residuals are those of NumPy",
    "sorted": "unsorted values are sorted in JAX",
}
"""Parameters that draws need not give, and why."""

UFUNCS = (
    *("add", "subtract", "multiply", "negative", "maximum", "minimum"),
    *("logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor"),
    *("bitwise_and", "bitwise_or", "bitwise_xor"),
)
SOME_PARAMETERS = {
    **{(name, "where"): "JAX's: only None" for name in UFUNCS},
    ("ravel_multi_index", "dtype"): "JAX's own",
    ("einsum", "_dot_general"): "JAX's own, in tests/api/test_type_shardings.py",
    ("copy", "order"): "the memory layout is the compiler's",
    ("reshape", "copy"): "arrays are immutable",
    ("asarray", "copy"): "about memory, in tests/numpy/creation/test_creation.py",
    ("take_along_axis", "mode"): "JAX's modes of indices out of bounds",
    ("put_along_axis", "mode"): "JAX's modes of indices out of bounds",
    ("sort", "kind"): "there is one algorithm",
    ("sort", "order"): "there are no structured arrays",
    ("argsort", "kind"): "there is one algorithm",
    ("argsort", "order"): "there are no structured arrays",
    ("argsort", "dtype"): "JAX's: the dtype of places",
    ("digitize", "method"): "JAX's, as for searchsorted",
    ("isin", "method"): "JAX's: how members are found",
    ("histogram_bin_edges", "weights"): "changes no edge",
    ("corrcoef", "dtype"): "as for cov",
    (
        "polyfit",
        "full",
    ): "residuals and rank, in tests/numpy/signal/test_polynomials.py",
    ("linalg.cross", "axisa"): "JAX's, as for cross",
    ("linalg.cross", "axisb"): "JAX's, as for cross",
    ("linalg.cross", "axisc"): "JAX's, as for cross",
    ("linalg.slogdet", "method"): "JAX's: by lu or by qr",
    ("linalg.tensorsolve", "axes"): "in tests/numpy/linalg/test_linalg.py",
}
"""Parameters of one function that draws need not give, and why."""

EXAMPLES = 20


@pytest.mark.parametrize(
    "subject", SUBJECTS, ids=[f"{s.name}-{i}" for i, s in enumerate(SUBJECTS)]
)
def test_function_is_that_of_numpy(subject: Subject) -> None:
    @settings(max_examples=max(10, settings().max_examples // 2))
    @given(st.integers(0, 2**20))
    def search(seed: int) -> None:
        holds(subject, seed)

    search()


def public() -> list[str]:
    """The functions that both libraries have, with the module they are in."""
    actual = []
    for prefix in ("", "linalg.", "fft."):
        own, theirs = verax.numpy, np
        if prefix:
            own, theirs = (getattr(m, prefix[:-1]) for m in (own, theirs))
        actual += [
            prefix + name
            for name in dir(own)
            if not name.startswith("_")
            and callable(getattr(theirs, name, None))
            and not isinstance(getattr(theirs, name), type)
            and callable(getattr(own, name))
        ]
    return actual


def test_table_is_complete() -> None:
    known = {subject.name for subject in SUBJECTS}
    missing = [name for name in public() if name not in known | ELSEWHERE.keys()]
    assert not missing, f"neither in a table nor listed with a reason: {missing}"
    both = sorted(known & ELSEWHERE.keys())
    assert not both, f"in a table, and listed as missing: {both}"


CONSTANTS = ("e", "euler_gamma", "inf", "nan", "newaxis", "pi")
CATEGORIES = (
    *("character", "complexfloating", "flexible", "floating", "generic", "inexact"),
    *("integer", "number", "object_", "signedinteger", "unsignedinteger", "dtype"),
)
ARRAY_TYPES = {"ndarray": "verax.Array", "ufunc": "has other methods than NumPy's"}
INDEXED: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "mgrid": (lambda m: m[0:3, 1:5:2], lambda m: m[0:1:5j], lambda m: m[4:0:-1]),
    "ogrid": (lambda m: m[0:3, 1:5:2], lambda m: m[0:1:5j], lambda m: m[4:0:-1]),
    "r_": (
        lambda m: m[1:4, 0, 7],
        lambda m: m[np.arange(3), 0:1:3j],
        lambda m: m["-1", np.ones((2, 2)), np.zeros((2, 1))],
        lambda m: m["0,2", [1, 2], [3, 4]],
    ),
    "c_": (lambda m: m[np.arange(3), 4:7], lambda m: m[np.ones((2, 2)), [5, 6]]),
}
PLAIN = ("index_exp", "s_")


def test_names_that_are_no_functions() -> None:
    """Constants, scalar types, and what is indexed: equal to NumPy's."""
    own: Any = verax.numpy
    known = {*CONSTANTS, *CATEGORIES, *ARRAY_TYPES, *INDEXED, *PLAIN, "fft", "linalg"}
    known |= {name.split(".")[0] for name in public()} | ELSEWHERE.keys()
    for name in dir(own):
        theirs = getattr(np, name, None)
        if name.startswith("_") or name in known or theirs is None:
            continue
        if isinstance(theirs, ModuleType):
            continue
        assert np.dtype(getattr(own, name).dtype) == np.dtype(theirs), name
    for name in CONSTANTS:
        np.testing.assert_equal(getattr(own, name), getattr(np, name))
    for name in CATEGORIES:
        assert getattr(own, name) is getattr(np, name)
    for name, samples in INDEXED.items():
        for sample in samples:
            actual = sample(getattr(own, name))
            expected = sample(getattr(np, name))
            pairs = (
                zip(actual, expected, strict=True)
                if isinstance(expected, tuple)
                else [(actual, expected)]
            )
            for x, y in pairs:
                assert x.shape == y.shape, name
                np.testing.assert_allclose(x, y, 1e-6)
    for name in PLAIN:
        assert getattr(own, name)[1:3, ..., None] == getattr(np, name)[1:3, ..., None]


def test_every_parameter_is_drawn() -> None:
    given_to: dict[str, set[str]] = defaultdict(set)
    signatures = {s.name: inspect.signature(s.of(verax.numpy)) for s in SUBJECTS}
    for subject in SUBJECTS:
        names = list(signatures[subject.name].parameters)
        for seed in range(3 * EXAMPLES):
            call = subject.draw(Draw(seed))
            given_to[subject.name] |= set(names[: len(call.args)]) | set(call.kwargs)
    missing = [
        (name, p.name)
        for name, signature in signatures.items()
        for p in signature.parameters.values()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and p.name not in given_to[name] | PARAMETERS.keys()
        and (name, p.name) not in SOME_PARAMETERS
    ]
    assert not missing, f"neither drawn nor listed with a reason: {missing}"


def test_most_draws_are_compared() -> None:
    """A draw that is refused, or compared with nothing, is the exception."""
    for subject in SUBJECTS:
        calls = [subject.draw(Draw(seed)) for seed in range(3 * EXAMPLES)]
        skipped = [call for call in calls if subject.differs(call)]
        assert len(skipped) <= len(calls) * 0.6, f"{subject.name}: {len(skipped)}"
