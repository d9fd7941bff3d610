"""What the laws of derivatives do with indices that are promised to be in bounds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.verify.cases.case import Case, Skipped
from verax.verify.checking.functions import ENGINE
from verax.verify.laws.derivatives import transpose_is_dual, vjp_is_difference

LAWS = [transpose_is_dual, vjp_is_difference]
X = np.linspace(1.0, 2.0, 6)


def read(x: Any, i: Any) -> Any:
    """The rows of a computed index, which is promised to be in bounds."""
    return x.at[i + i].get(mode="promise_in_bounds") ** 2


def added(x: Any, i: Any) -> Any:
    return x.at[i + i].add(x[:2], mode="promise_in_bounds") ** 2


def read_in_a_loop(x: Any, i: Any) -> Any:
    return lax.fori_loop(0, 2, lambda _, y: y.at[:2].set(read(y, i)), x)


def case_of(fun: Callable[..., Any], index: list[int]) -> Case:
    i = np.array(index, np.int32)
    with verax.enable_x64():
        jaxpr = verax.make_jaxpr(fun)(vnp.asarray(X), i).jaxpr
    return Case(jaxpr, (X[None], i[None]))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("fun", [read, added, read_in_a_loop])
def test_programs_that_keep_the_promise_are_looked_at(
    fun: Callable[..., Any], law: Callable[..., None]
) -> None:
    law(ENGINE, case_of(fun, [0, 2]))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("fun", [read, added, read_in_a_loop])
def test_programs_that_break_it_are_skipped(
    fun: Callable[..., Any], law: Callable[..., None]
) -> None:
    with pytest.raises(Skipped, match="promise"):
        law(ENGINE, case_of(fun, [0, 3]))
