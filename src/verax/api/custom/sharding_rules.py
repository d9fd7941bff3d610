"""Floor 5: sharding rules: which dimensions of operands and results go together.

A dimension has a factor, or several; what splits a factor splits every dimension that
has it. The rule of a matrix product is `"i j, j k -> i k"`, where `j` is summed over::

    rule = str_to_sdy_sharding_rule("i j, j k -> i k", reduction_factors=("j",))
    rule_text(rule, [(4, 8), (8, 2)], [(4, 2)])     # '#sdy.op_sharding_rule<...>'
"""

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from verax.ir.avals import Shape
from verax.rules.values.conversions import shown

__all__ = [
    "BATCHING",
    "ArrayMapping",
    "CompoundFactor",
    "SdyShardingRule",
    "rule_text",
    "str_to_sdy_sharding_rule",
]

BATCHING: Final = "…"
"""Stands for any number of leading dimensions, as `...` does in a string."""
BETWEEN: Final = re.compile(r",(?![^(]*\))")
"""A comma outside of brackets."""
DIMENSION: Final = re.compile(r"\s*(\.\.\.\d*|\([^)]*\)|\w+|\S)")
LETTERS: Final = "ijklmnopqrstuvwxyz"
KINDS: Final = ("reduction", "need_replication", "permutation")

type Mapped = Sequence["str | CompoundFactor"]
"""The content of an `ArrayMapping`: factors by dimension."""


def check_factor(factor: str) -> None:
    """Raise unless a factor is a name that begins with a letter.

    Raises:
        ValueError: it is not.
    """
    if not factor[:1].isalpha():
        raise ValueError(
            f"Factor names have to start with a letter, but got {factor[:1]!r}"
        )
    for char in factor:
        if char != "_" and not char.isdigit() and not char.isalpha():
            raise ValueError(f"Unknown character {char!r} in the factor {factor!r}")


def batching_group(factor: object) -> str | None:
    """The number after an ellipsis, "0" if there is none; None for other factors."""
    if not isinstance(factor, str) or factor[:1] != BATCHING:
        return None
    number = factor[1:] or "0"
    return number if number.isdigit() else None


class CompoundFactor(tuple[str, ...]):
    """Two factors or more that one dimension has, the first outermost.

    Raises:
        ValueError: there are fewer, or one is not the name of a factor.
    """

    __module__ = "verax.experimental.custom_partitioning"
    __slots__ = ()

    def __new__(cls, *factors: str) -> "CompoundFactor":
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        for factor in factors:
            if not isinstance(factor, str):
                raise ValueError(
                    "Each element of CompoundFactor must be a str, but got "
                    f"{shown(factor)}"
                )
            if batching_group(factor) is not None:
                raise ValueError("Ellipsis can't be used in a compound factor")
            check_factor(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple["str | CompoundFactor", ...]):
    """The factors of one operand or result, by dimension.

    The first element may be `BATCHING`.

    Raises:
        ValueError: an element is neither a factor nor a `CompoundFactor`.
    """

    __module__ = "verax.experimental.custom_partitioning"
    __slots__ = ()

    def __new__(cls, *dim_mappings: str | CompoundFactor) -> "ArrayMapping":
        for i, dim in enumerate(dim_mappings):
            if isinstance(dim, CompoundFactor):
                continue
            if not isinstance(dim, str):
                raise ValueError(
                    "Each element of ArrayMapping must be a str or CompoundFactor, "
                    f"but got {shown(dim)}"
                )
            if batching_group(dim) is None:
                check_factor(dim)
            elif i:
                raise misplaced()
        return super().__new__(cls, dim_mappings)


def misplaced() -> ValueError:
    """The error for an ellipsis behind a factor."""
    return ValueError("Ellipsis can only be used at the beginning of a dimension")


class SdyShardingRule:
    """The factors of all operands and results, in the terms of Shardy.

    Args:
        operand_mappings, result_mappings: an `ArrayMapping` for each.
        reduction_factors: those that are summed over, or reduced otherwise.
        need_replication_factors: those whose dimensions must be whole.
        permutation_factors: those along which the parts exchange values.
        factor_sizes: the sizes of factors that no dimension has alone.

    Raises:
        ValueError: a factor is named that no dimension has, or in two roles, or a
            size is missing or not needed.
    """

    __module__ = "verax.experimental.custom_partitioning"

    transient: ClassVar[bool] = False

    def __init__(
        self,
        operand_mappings: tuple[Mapped, ...],
        result_mappings: tuple[Mapped, ...],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> None:
        self.operand_mappings = operand_mappings
        self.result_mappings = result_mappings
        self.factor_sizes = factor_sizes
        self.reduction_factors = reduction_factors
        self.need_replication_factors = need_replication_factors
        self.permutation_factors = permutation_factors
        whole = self.whole_dimensions()
        check_sizes(whole, factor_sizes)
        used: set[str] = set()
        for kind in KINDS:
            check_special(f"{kind}_factors", self.special(kind), whole, used)
        mappings = (*operand_mappings, None, *result_mappings)
        special = tuple(map(self.special, KINDS))
        self.key = (mappings, special, tuple(sorted(factor_sizes.items())))
        """The key that compares rules, often those of calls of one function."""

    def special(self, kind: str) -> tuple[str, ...]:
        """The factors of a kind: "reduction", "need_replication" or "permutation"."""
        out: tuple[str, ...] = getattr(self, f"{kind}_factors")
        return out

    def whole_dimensions(self) -> dict[str, bool]:
        """The factors in order, and whether some dimension has this one alone."""
        out: dict[str, bool] = {}
        for mapping in (*self.operand_mappings, *self.result_mappings):
            for dim in mapping:
                for factor in factors_of(dim):
                    alone = isinstance(dim, str)
                    out[factor] = out.get(factor, False) or alone
        return out

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SdyShardingRule):
            return self is other or self.key == other.key
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        parts = [f"{kind}_factors={self.special(kind)}" for kind in KINDS]
        named = [
            part for part, kind in zip(parts, KINDS, strict=True) if self.special(kind)
        ]
        text = f"{self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}"
        return f"SdyShardingRule({' '.join([text, *named])})"

    __repr__ = __str__


def factors_of(dim: str | Sequence[str]) -> Sequence[str]:
    """The factors of a dimension."""
    return (dim,) if isinstance(dim, str) else dim


def check_sizes(whole: dict[str, bool], sizes: dict[str, int]) -> None:
    """Raise ValueError unless the sizes are those that no dimension tells."""
    for factor in sizes:
        if factor not in whole:
            raise ValueError(
                f"Factor {factor} is not used in the rule, but size is provided"
            )
    for factor, alone in whole.items():
        if not alone and factor not in sizes:
            raise ValueError(
                f"Factor {factor} is only used in compound factors; must specify its "
                "size"
            )
        if alone and factor in sizes:
            raise ValueError(
                f"Factor {factor} represents a whole dimension; do not specify its size"
            )


def check_special(
    what: str, factors: object, whole: dict[str, bool], used: set[str]
) -> None:
    """Raise ValueError unless these factors occur, once; `used` gets them."""
    if not isinstance(factors, tuple):
        raise ValueError(f"{what} must be a tuple of factors, not {shown(factors)}")
    if len(factors) != len(set(factors)):
        raise ValueError(f"{what} contains duplicated factors")
    for factor in factors:
        if factor not in whole:
            raise ValueError(f"Factor {factor} in {what} is not used in the rule")
        if factor in used:
            raise ValueError(
                f"Factor {factor} can only be in one of the reduction, need "
                "replication, or permutation factor sets."
            )
        used.add(factor)


def str_to_sdy_sharding_rule(
    rule: str,
    *,
    reduction_factors: tuple[str, ...] = (),
    need_replication_factors: tuple[str, ...] = (),
    permutation_factors: tuple[str, ...] = (),
    **factor_sizes: int,
) -> SdyShardingRule:
    """The rule that a string says, with factors as `einops` has names of dimensions.

    Raises:
        TypeError: `rule` is not a string, or a size not an integer.
        ValueError: it is not well formed; see also `SdyShardingRule`.

    >>> str_to_sdy_sharding_rule("... i j -> ... (i j)")
    SdyShardingRule((('…0', 'i', 'j'),), (('…0', ('i', 'j')),), {})
    """
    if not isinstance(rule, str):
        raise TypeError(f"rule must be a str, but got {shown(rule)}")
    if not all(isinstance(size, int) for size in factor_sizes.values()):
        raise TypeError(
            f"factor_sizes must be a dict of str to int, but got {factor_sizes}"
        )
    sides = rule.split("->")
    if len(sides) != 2:
        raise ValueError(f"There is no -> in rule, or more than one: {rule!r}")
    operands, results = map(parse_side, sides)
    return SdyShardingRule(
        operands,
        results,
        reduction_factors=reduction_factors,
        need_replication_factors=need_replication_factors,
        permutation_factors=permutation_factors,
        **factor_sizes,
    )


def parse_side(text: str) -> tuple[ArrayMapping, ...]:
    """The mappings on one side of the arrow; an empty one is that of a scalar."""
    check_brackets(text)
    return tuple([parse_mapping(part) for part in BETWEEN.split(text)])


def check_brackets(text: str) -> None:
    """Raise ValueError unless brackets are balanced, and none is within another."""
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth > 1:
            raise ValueError(
                "Compound factors should be one level, nested brackets are not allowed"
            )
        if depth < 0:
            break
    if depth:
        raise ValueError(f"Brackets are not balanced in rule: {text!r}")


def parse_mapping(text: str) -> ArrayMapping:
    """The factors of one operand or result."""
    dims: list[str | CompoundFactor] = []
    for token in DIMENSION.findall(text):
        if token.startswith("..."):
            if dims:
                raise misplaced()
            dims.append(f"{BATCHING}{int(token[3:] or 0)}")
        elif token.startswith("("):
            inside = DIMENSION.findall(token[1:-1].replace(",", " "))
            if any(factor.startswith("...") for factor in inside):
                raise misplaced()
            if len(inside) < 2:
                raise ValueError("Brackets should contain at least two factors")
            dims.append(CompoundFactor(*map(as_factor, inside)))
        else:
            dims.append(as_factor(token))
    return ArrayMapping(*dims)


def as_factor(token: str) -> str:
    """A token that must be a factor."""
    if token == ".":
        raise ValueError("Character '.' must be used inside ellipsis '...'")
    if not token[0].isalnum() and token[0] != "_":
        raise ValueError(f"Unknown character {token!r}")
    check_factor(token)
    return token


# ------------------------------------------------------------------- for the compiler


class Factors:
    """The factors of a rule, numbered as they occur, with their sizes for some shapes.

    A factor that occurs with several sizes has the smallest.
    """

    def __init__(self) -> None:
        self.sizes: dict[str, int | None] = {}

    def add(self, factor: str, size: int | None, batching: bool = False) -> None:
        """Note one occurrence.

        Raises:
            ValueError: a dimension behind an ellipsis has two sizes.
        """
        known = self.sizes.get(factor)
        if batching and known is not None and known != size:
            raise ValueError(
                f"Batching dimension {factor[1:]} corresponds to two sizes: {known} "
                f"and {size}"
            )
        pair = [n for n in (known, size) if n is not None]
        self.sizes[factor] = min(pair, default=None)

    def symbol(self, factor: str) -> str:
        """The symbol in Shardy: a letter from i on, then z_1, z_2."""
        number = list(self.sizes).index(factor)
        extra = number - len(LETTERS) + 1
        return LETTERS[number] if extra <= 0 else f"z_{extra}"

    def symbols(self, factors: Sequence[str], between: str = "") -> str:
        """Several of them."""
        return between.join(map(self.symbol, factors))


def rule_text(
    rule: SdyShardingRule, operands: Sequence[Shape], results: Sequence[Shape]
) -> str:
    """The rule for operands and results of these shapes, as Shardy reads it.

    Raises:
        ValueError: it does not fit their number, their ranks or their sizes.
    """
    check_count("operands", len(rule.operand_mappings), len(operands))
    check_count("results", len(rule.result_mappings), len(results))
    factors, ranks = Factors(), dict[str, int]()
    mappings = (*rule.operand_mappings, *rule.result_mappings)
    shapes = (*operands, *results)
    names = list(value_names(len(operands), len(results)))
    values = []
    for mapping, shape, name in zip(mappings, shapes, names, strict=True):
        dims = dims_of(mapping, shape, name, ranks)
        values.append(dims)
        for dim, size in zip(dims, shape, strict=True):
            if isinstance(dim, str):
                factors.add(dim, size, dim.startswith("?"))
            else:
                for factor in dim:
                    factors.add(factor, rule.factor_sizes.get(factor))
    for dims, shape, name in zip(values, shapes, names, strict=True):
        check_compounds(factors, dims, shape, name)
    texts = [
        f"[{', '.join([factors.symbols(factors_of(dim)) for dim in dims])}]"
        for dims in values
    ]
    count = len(operands)
    sizes = ", ".join([f"{factors.symbol(f)}={n}" for f, n in factors.sizes.items()])
    special = [
        f" {kind}={{{factors.symbols(result, ', ')}}}"
        for kind in KINDS
        if (result := rule.special(kind))
    ]
    return (
        f"#sdy.op_sharding_rule<({', '.join(texts[:count])})->"
        f"({', '.join(texts[count:])}){f' {{{sizes}}}' if sizes else ''}"
        f"{''.join(special)}, custom>"
    )


def check_count(what: str, count: int, due: int) -> None:
    """Raise ValueError unless the rule is for as many values."""
    if count != due:
        raise ValueError(
            f"Sharding rule has {count} {what}, but the operation has {due} {what}"
        )


def value_names(operands: int, results: int) -> Iterator[str]:
    """The names of an operation's values in messages."""
    yield from [f"{i}th operand" for i in range(operands)]
    yield from [f"{i}th result" for i in range(results)]


def dims_of(
    mapping: Mapped, shape: Shape, name: str, ranks: dict[str, int]
) -> list[str | Sequence[str]]:
    """The factors of each dimension; those behind an ellipsis have names of their own.

    `ranks` says for how many dimensions each ellipsis stands.

    Raises:
        ValueError: the value has another number of dimensions.
    """
    dims: list[str | Sequence[str]] = list(mapping)
    group = batching_group(dims[0]) if dims else None
    if group is not None:
        count = max(0, len(shape) - len(dims) + 1)
        known = ranks.setdefault(group, count)
        if known != count:
            raise ValueError(
                f"Ellipsis represents different number of leading dimensions {known} "
                f"and {count}"
            )
        dims[:1] = [f"?{group}_{i}" for i in range(count)]
    if len(dims) != len(shape):
        raise ValueError(
            f"Sharding rule {name} has rank {len(dims)}, but the operation {name} has "
            f"rank {len(shape)}"
        )
    return dims


def check_compounds(
    factors: Factors, dims: Sequence[str | Sequence[str]], shape: Shape, name: str
) -> None:
    """Raise ValueError unless the factors of each dimension make up its size."""
    for dim, size in zip(dims, shape, strict=True):
        if isinstance(dim, str):
            continue
        derived = 1
        for factor in dim:
            derived *= factors.sizes[factor] or 0
        if derived != size:
            raise ValueError(
                f"{name} actual size {size} doesn't match the size {derived} derived "
                f"from the compound factors {tuple(dim)}"
            )
