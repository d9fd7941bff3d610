"""Tests as calls: what holds rows that have no draw of their own.

One idea: a test function with its parameters is a function of nothing that raises if a
rule is wrong, so a mutant can be held to it like to a law::

    EXAMPLES["test_collectives.test_all_gather"][0]()
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from types import MappingProxyType, ModuleType
from typing import Any

import hypothesis

hypothesis.settings.register_profile(
    "mutants",
    max_examples=6,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile("mutants")  # before the tests are made

from property_tests import (  # noqa: E402  # see above
    test_checkpointed_loops,
    test_control_flow,
    test_control_flow_costs,
    test_costs,
    test_custom,
    test_derived,
    test_effects,
    test_indexing_modes,
    test_weak_types,
)
from tests.api.custom import test_checkpoint, test_custom_jvp, test_custom_vjp  # noqa: E402
from tests.api.host import test_callbacks, test_effects as test_order  # noqa: E402
from tests.api.tracing import test_tracers  # noqa: E402
from tests.backend.arrays import test_protocols  # noqa: E402
from tests.lax import (  # noqa: E402
    test_checkpointed,
    test_collectives,
    test_control_flow as test_loops,
    test_found_by_programs,
    test_sequential,
    test_solving,
)
from tests.ops import test_found_by_laws  # noqa: E402
from tests.ops.contraction import test_dot, test_dot_types, test_ragged_dot  # noqa: E402
from tests.ops.conv import test_conv  # noqa: E402
from tests.ops.elementwise import (  # noqa: E402
    test_arith,
    test_bits,
    test_convert,
    test_exp_log,
    test_select,
)
from tests.ops.indexing import test_indexing  # noqa: E402
from tests.ops.linalg import test_lapack_calls, test_linalg, test_linalg_options  # noqa: E402
from tests.ops.parallel import test_sharding_constraint  # noqa: E402
from tests.ops.random import test_blank_keys, test_threefry, test_typed_keys  # noqa: E402
from tests.ops.reductions import test_reductions  # noqa: E402
from tests.ops.sorting import test_sort  # noqa: E402
from tests.ops.special import test_incomplete  # noqa: E402
from tests.ops.windows import test_general_reduce, test_windows  # noqa: E402
from tests.random import test_keys, test_numbers_of_jax, test_rbg  # noqa: E402
from tests.verify import test_public  # noqa: E402

FILES: tuple[ModuleType, ...] = (
    test_checkpointed_loops,
    test_control_flow,
    test_control_flow_costs,
    test_costs,
    test_custom,
    test_derived,
    test_effects,
    test_indexing_modes,
    test_weak_types,
    test_protocols,
    test_callbacks,
    test_checkpoint,
    test_custom_jvp,
    test_custom_vjp,
    test_order,
    test_tracers,
    test_checkpointed,
    test_collectives,
    test_loops,
    test_sequential,
    test_found_by_programs,
    test_solving,
    test_found_by_laws,
    test_reductions,
    test_general_reduce,
    test_conv,
    test_indexing,
    test_sort,
    test_dot,
    test_ragged_dot,
    test_threefry,
    test_typed_keys,
    test_windows,
    test_arith,
    test_sharding_constraint,
    test_bits,
    test_blank_keys,
    test_select,
    test_convert,
    test_dot_types,
    test_exp_log,
    test_incomplete,
    test_lapack_calls,
    test_linalg,
    test_linalg_options,
    test_numbers_of_jax,
    test_keys,
    test_rbg,
    test_public,
)
MOST = 8
"""So many sets of parameters of one test are tried, or all if it is about rows."""
OTHER = ("wrong", "error", "budget", "messages", "refused", "docs", "goldens")
"""Words in the names of tests that are about arguments, or about text."""


def choices(mark: Any) -> list[dict[str, Any]]:
    """The sets of parameters of one `parametrize`."""
    given, values = mark.args[0], mark.args[1]
    names = given.replace(" ", "").split(",") if isinstance(given, str) else given
    actual = []
    for value in values:
        named = hasattr(value, "marks")  # pytest.param, which holds several values
        single = len(names) == 1 and not named
        parts = value.values if named else [value] if single else value
        actual.append(dict(zip(names, parts, strict=True)))
    return actual


def cases_of(test: Callable[..., Any]) -> Iterator[Callable[[], Any]]:
    """A test with its parameters, or nothing if it asks for fixtures."""
    marks = [m for m in getattr(test, "pytestmark", []) if m.name == "parametrize"]
    every = [
        {name: x for part in parts for name, x in part.items()}
        for parts in product(*map(choices, marks))
    ]
    of_rows = any(mark.args[0] == "row" for mark in marks)
    most = len(every) if of_rows else MOST
    step = max(1, len(every) // max(most, 1))
    drawn = hasattr(test, "hypothesis")
    for params in every[::step][:most]:
        if drawn or set(inspect.signature(test).parameters) <= set(params):
            yield partial(test, **params)


def examples(files: Sequence[ModuleType]) -> Iterator[tuple[str, Any]]:
    for file in files:
        for name, test in vars(file).items():
            expected = name.startswith("test_") and callable(test)
            if expected and not any(word in name for word in OTHER):
                cases = tuple(cases_of(test))
                if cases:
                    yield f"{file.__name__.split('.')[-1]}.{name}", cases


EXAMPLES: Mapping[str, Sequence[Callable[[], Any]]] = MappingProxyType(
    dict(examples(FILES))
)
