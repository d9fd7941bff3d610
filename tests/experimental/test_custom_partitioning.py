"""`custom_partitioning` on one device, and the rules that say what goes together."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.api.custom.sharding_rules import rule_text, str_to_sdy_sharding_rule
from verax.experimental.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def whole(mesh: Any, args: Any, result: Any) -> Any:
    raise AssertionError("on one device nothing is partitioned")


def test_on_one_device_it_means_the_function() -> None:
    @custom_partitioning
    def f(x: Any, *, by: Any = 2) -> Any:
        """Multiplied."""
        return {"out": x * by}

    f.def_partition(whole, sharding_rule="... -> ...")
    assert f.__doc__ == "Multiplied."
    for call in (f, verax.jit(f), verax.jit(lambda x: f(x))):
        assert np.array_equal(call(VALUES)["out"], VALUES * 2)
    text = verax.jit(f).lower(VALUES).as_text()
    assert "custom_call" not in text
    assert "custom_partitioning[" in str(verax.make_jaxpr(f)(VALUES))
    assert isinstance(f(VALUES)["out"], verax.Array)
    with pytest.raises(TypeError, match="could not be resolved to positions"):
        f(VALUES, by=3)


def test_no_results_and_empty_arrays() -> None:
    f = custom_partitioning(lambda x: ())
    f.def_partition(whole, sharding_rule="i ->")
    assert verax.jit(f)(vnp.zeros(3)) == ()
    g = custom_partitioning(lambda x: x + 1)
    g.def_partition(whole, sharding_rule="i -> i")
    assert verax.jit(g)(vnp.zeros(0)).shape == (0,)


def test_what_is_missing_or_out_of_date() -> None:
    f = custom_partitioning(lambda x: x)
    with pytest.raises(AttributeError, match="def_partition"):
        f(1.0)
    f.def_partition(whole, infer_sharding_from_operands=lambda *args: None)
    with pytest.raises(NotImplementedError, match="provide sharding_rule to migrate"):
        verax.jit(f)(1.0)
    with pytest.raises(ValueError, match=r"arguments: \{'i': 2\}"):
        f.def_partition(whole, i=2)
    with pytest.raises(ValueError, match="Unknown keyword arguments"):
        f.def_partition(whole, reduction_factors=("i",))
    f.def_partition(whole)
    assert verax.jit(f)(1.0) == 1


def test_static_arguments() -> None:
    f = custom_partitioning(lambda x, name: x, static_argnums=1)
    f.def_partition(whole, sharding_rule="->")
    assert verax.jit(f, static_argnums=1)(1.0, "anything") == 1
    with pytest.raises(verax.errors.UnexpectedTracerError, match="static_argnums"):
        verax.jit(f)(1.0, 2)
    g = custom_partitioning(lambda x: x, static_argnums=(2,))
    g.def_partition(whole)
    with pytest.raises(ValueError, match="static_argnums names argument 2"):
        g(1.0)
    with pytest.raises(ValueError, match="static_argnums must hold"):
        custom_partitioning(lambda x: x, static_argnums=(-1,))


GOOD = {
    "i j, j k -> i k": (
        ((2, 3), (3, 4)),
        ((2, 4),),
        "([i, j], [j, k])->([i, k]) {i=2, j=3, k=4}",
    ),
    "...,... -> ...": (((2, 3), (2, 3)), ((2, 3),), "([i, j], [i, j])->([i, j])"),
    "...1 a, ... -> ...1": (((2, 3), (4,)), ((2,),), "([i, j], [k])->([i])"),
    "a b -> (a b)": (((2, 3),), ((6,),), "([i, j])->([ij]) {i=2, j=3}"),
    "(a b) -> a b": (((6,),), ((2, 3),), "([ij])->([i, j]) {i=2, j=3}"),
    "->": (((),), ((),), "([])->([])"),
    "a, -> a, ": (((2,), ()), ((2,), ()), "([i], [])->([i], []) {i=2}"),
    "a -> a": (((4,),), ((2,),), "([i])->([i]) {i=2}"),
}


@pytest.mark.parametrize("text", GOOD)
def test_rules_for_shapes(text: str) -> None:
    operands, results, expected = GOOD[text]
    rule = str_to_sdy_sharding_rule(text)
    assert expected in rule_text(rule, operands, results)


def test_many_factors_have_names_of_two_parts() -> None:
    names = [f"d{i}" for i in range(20)]
    rule = str_to_sdy_sharding_rule(
        f"{' '.join(names)} -> d18 d19", permutation_factors=("d19",)
    )
    text = rule_text(rule, [(1,) * 20], [(1, 1)])
    assert "->([z_1, z_2])" in text
    assert text.endswith(" permutation={z_2}, custom>")


BAD_TEXTS = {
    "i": "There is no ->",
    "i -> j -> k": "There is no ->",
    "2i -> j": "have to start with a letter",
    "_i -> j": "have to start with a letter",
    "i; j -> j": "Unknown character ';'",
    "…j -> j": "Unknown character",
    ".i -> j": "must be used inside ellipsis",
    "i ... -> j": "Ellipsis can only be used",
    "(... i) -> i": "Ellipsis can only be used",
    "(i (j k)) -> i": "nested brackets",
    "(i -> i": "Brackets are not balanced",
    "i) -> i": "Brackets are not balanced",
    "(i) -> i": "at least two factors",
    "() -> i": "at least two factors",
}


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_rules_that_are_not_well_formed(text: str) -> None:
    with pytest.raises(ValueError, match=BAD_TEXTS[text]):
        str_to_sdy_sharding_rule(text)


BAD_SHAPES = {
    "i -> i": (((2,), (2,)), ((2,),), "1 operands, but the operation has 2"),
    "i -> i, i": (((2,),), ((2,),), "2 results, but the operation has 1"),
    "i j -> i": (((2,),), ((2,),), "0th operand has rank 2"),
    "... i j -> i": (((2,),), ((2,),), "0th operand has rank 2"),
    "..., ... -> ...": (((2,), (2, 3)), ((2,),), "different number of leading"),
    "... -> ...": (((2,),), ((3,),), "Batching dimension 0_0 corresponds to two"),
    "a b -> (a b)": (((2, 3),), ((7,),), "actual size 7 doesn't match the size 6"),
}


@pytest.mark.parametrize("text", BAD_SHAPES)
def test_rules_that_do_not_fit(text: str) -> None:
    operands, results, message = BAD_SHAPES[text]
    with pytest.raises(ValueError, match=message):
        rule_text(str_to_sdy_sharding_rule(text), operands, results)


def test_rules_are_values() -> None:
    text = "... (i j) k -> ... k"
    rule = str_to_sdy_sharding_rule(text, reduction_factors=("i",), i=2, j=3)
    mapping = ArrayMapping(f"{BATCHING}0", CompoundFactor("i", "j"), "k")
    same = SdyShardingRule(
        (mapping,),
        (ArrayMapping(f"{BATCHING}0", "k"),),
        reduction_factors=("i",),
        i=2,
        j=3,
    )
    assert rule == same
    assert hash(rule) == hash(same)
    assert rule != str_to_sdy_sharding_rule(text, i=2, j=3)
    assert repr(rule).endswith("{'i': 2, 'j': 3} reduction_factors=('i',))")
    for factors in (("i", 3), ("i",), (BATCHING, "i"), ("i", "2")):
        with pytest.raises(ValueError, match=r"factor|Factor|str|Ellipsis"):
            CompoundFactor(*factors)
    with pytest.raises(ValueError, match="beginning of a dimension"):
        ArrayMapping("i", BATCHING)
    with pytest.raises(ValueError, match="must be a tuple"):
        SdyShardingRule((("i",),), (("i",),), reduction_factors="i")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ValueError, match="only be in one of"):
        SdyShardingRule(
            (("i",),), (("i",),), reduction_factors=("i",), permutation_factors=("i",)
        )


@pytest.mark.usefixtures("few_objects")
def test_rules_do_not_keep_what_they_hold() -> None:
    """The program of a function is kept by its jaxpr, and dies with it."""

    class Big:
        pass

    def use() -> weakref.ref[Big]:
        big = Big()
        f = custom_partitioning(lambda x: x + 1)
        f.def_partition(
            lambda mesh, args, result: (big, mesh), sharding_rule="... -> ..."
        )
        verax.jit(f)(VALUES)
        return weakref.ref(big)

    actual = use()
    gc.collect()
    assert actual() is None
