"""Floor 5: what goes into a program and comes out, and whether a call fits.

One idea: the structures and types of a function's arguments and results are one value
that all its stages share, and that is all a loaded program knows of its function::

    interface = Interface(Callee("f", ("x",)), in_tree, (f32[3],), (False,), ...)
    interface.check(leaves, tree)
"""

from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, Final

from attrs import frozen

from verax.api.tracing.structs import ArgInfo, struct_of
from verax.api.tracing.trace import misplaced
from verax.api.tracing.wrapping import (
    Callee,
    ParameterNames,
    describe_arguments,
    leaf_paths,
)
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import canonical
from verax.ir.records import ReprMixin, Unchanging, hiding
from verax.rules.rows.builder import Tracer
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import shown
from verax.rules.values.state import STATE

KEYWORDS: Final = "the keyword arguments"


@frozen(eq=False, repr=False)
class Interface(ReprMixin):
    """The arguments and results of a program.

    `in_tree` is the structure of (positional arguments, keyword arguments) without the
    static ones; `donated[i]` says whether the user donates leaf i.
    """

    callee: Callee
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    donated: tuple[bool, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.callee.__name__

    def names(self) -> Sequence[str]:
        """The names of the leaves of the arguments in messages."""
        return describe_arguments(self.callee, self.in_tree)()

    def arguments(self) -> list[tuple[str, str]]:
        """The name of each leaf of the arguments, and its type."""
        start, end = "argument ", f" of {self.name}"
        rows = []
        for i, name in enumerate(self.names()):
            short = name.removeprefix(start).removesuffix(end)
            note = ", donated" if self.donated[i] else ""
            rows.append((short, f"{self.in_avals[i]}{note}"))
        return rows

    def results(self) -> list[tuple[str, str]]:
        """The path to each leaf of the results, and its type."""
        paths = [f"result{''.join(map(str, p))}" for p in leaf_paths(self.out_tree)]
        return list(zip(paths, map(str, self.out_avals), strict=True))

    def check(
        self, leaves: Sequence[object], tree: PyTreeDef, *, traceable: bool = False
    ) -> None:
        """The arguments of a call must be those of the program.

        Raises:
            TypeError: they have another structure or other types, or are tracers and
                the program is not `traceable`.
        """
        if tree != self.in_tree:
            raise TypeError(self.mismatch(tree))
        wrong = []
        for i, (leaf, due) in enumerate(zip(leaves, self.in_avals, strict=True)):
            if isinstance(leaf, Tracer) and not traceable:
                raise TypeError(
                    "Cannot apply JAX transformations to a function lowered and "
                    f"compiled for a particular signature. Detected {self.names()[i]}, "
                    f"which is {shown(leaf)}. Call the jitted function instead"
                )
            try:
                given = aval_of(leaf)
            except TypeError as error:
                raise misplaced(self.names()[i], leaf, error) from None
            # Where an argument lies is checked with its place, or moved to it.
            if given.strong().with_explicit(None) is not due.strong().with_explicit(
                None
            ):
                name = self.names()[i].removesuffix(f" of {self.name}")
                name = name.removeprefix("keyword ").removeprefix("argument ")
                wrong.append(
                    f"Argument '{name}' compiled with "
                    f"{due.str_short()} and called with {given.str_short()}"
                )
        if wrong:
            advice = "Lower and compile the function for these types, or call the "
            advice += "jitted function"
            if not STATE.enable_x64 and any(map(is_wide, self.in_avals)):
                advice = "The program uses 64-bit types: call it with enable_x64 on"
            lines = "\n".join(wrong)
            raise TypeError(
                "Argument types differ from the types for which this computation was "
                f"compiled. The mismatches are:\n{lines}\n{advice}. It was compiled "
                f"from {self.name}"
            )

    def mismatch(self, tree: PyTreeDef) -> str:
        """The difference in the structure of the arguments."""
        start = (
            "Function compiled with input pytree does not match the input pytree it "
            f"was called with: in the arguments of {self.name}, "
        )
        (due, due_named), (given, given_named) = (
            self.in_tree.children(),
            tree.children(),
        )
        expected, got = due.children(), given.children()
        if len(expected) != len(got):
            hint = ""
            if len(got) > len(expected):
                hint = "; leave out static arguments, which are part of the program"
            return (
                f"{start}it takes {len(expected)} by position, but was called "
                f"with {len(got)}{hint}"
            )
        for i, pair in enumerate(zip(expected, got, strict=True)):
            if out := difference(*pair, ParameterNames(self.callee).label(i)):
                return start + out
        out = difference(due_named, given_named, KEYWORDS)
        return start + (out or f"expected {self.in_tree}, got {tree}")


def difference(due: PyTreeDef, given: PyTreeDef, place: str) -> str | None:
    """The first place where a structure differs from the expected one."""
    if due == given:
        return None
    left, right = due.node_data(), given.node_data()
    if left is None or right is None or left[0] is not right[0]:
        return f"{place} is {kind_text(right)}, but must be {kind_text(left)}"
    mine, others = parts(due), parts(given)
    told = [f"{key} is missing" for key in mine if key not in others]
    told += [f"{key} is not expected" for key in others if key not in mine]
    if told:
        return f"in {place}, {' and '.join(told)}"
    for key in mine:
        inner = f"keyword argument {key}" if place == KEYWORDS else f"{place}{key}"
        if out := difference(mine[key], others[key], inner):
            return out
    return f"{place} has the metadata {right[1]!r}, but must have {left[1]!r}"


def is_wide(aval: ShapedArray) -> bool:
    """Whether this is a type that exists only while x64 is on."""
    return canonical(aval.dtype, False) != aval.dtype


def kind_text(node: tuple[type, object] | None) -> str:
    """The kind of node at a place of a structure, in words."""
    if node is None:
        return "an array"
    return "None" if node[0] is NoneType else f"a {node[0].__name__}"


def parts(tree: PyTreeDef) -> dict[str, PyTreeDef]:
    """The children of a structure, under what a path calls them."""
    filled = tree.unflatten(range(tree.num_leaves))
    result = pytrees.flatten_one_level_with_keys(filled)
    keys = [str(key) for key, _ in result[0]] if result is not None else []
    return dict(zip(keys, tree.children(), strict=True))


class Stage(Unchanging):
    """A stage of a function, with what each tells of its arguments and results."""

    __dir__ = hiding(
        "closure_convert debugged direct donated evaluated input_places "
        "interface is_remembered keep_unused made module moves options "
        "output_places placement program remember slow_call stage statics "
        "traced whole"
    )

    interface: Interface

    def __repr__(self) -> str:
        ins, outs = self.interface.in_avals, self.interface.out_avals
        kind = type(self).__name__.removesuffix("Stage")
        types = f"{', '.join(map(str, ins))} -> {', '.join(map(str, outs))}"
        return f"{kind}({self.fun_name}: {types})"

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self.interface.name

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of (positional arguments, keyword arguments)."""
        return self.interface.in_tree

    @property
    def out_tree(self) -> PyTreeDef:
        """The structure of the output."""
        return self.interface.out_tree

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, in their structure."""
        return self.in_tree.unflatten(self.interface.in_avals)

    @property
    def out_avals(self) -> Any:
        """The types of the outputs, in the structure of the output."""
        return self.out_tree.unflatten(self.interface.out_avals)

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each leaf of the arguments, in their structure."""
        pairs = zip(self.interface.in_avals, self.interface.donated, strict=True)
        return self.in_tree.unflatten([ArgInfo(*pair) for pair in pairs])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The numbers of the leaves that are donated."""
        return tuple([i for i, flag in enumerate(self.interface.donated) if flag])

    @property
    def out_info(self) -> Any:
        """The types of the outputs as `ShapeDtypeStruct`s, in their structure."""
        return self.out_tree.unflatten(map(struct_of, self.interface.out_avals))


def stage_html(stage: Stage, facts: Sequence[tuple[str, str]], code: str | None) -> str:
    """What a notebook shows: arguments and results, facts, and the code folded.

    The types are those that the user of the function knows: a stage on the values of
    references has them in `whole`.
    """
    from verax.ir.text.html import folded, report, table

    interface = getattr(stage, "whole", stage).interface
    title = f"{type(stage).__name__.removesuffix('OnValues')} function {stage.fun_name}"
    parts = [table(title, ("argument", "type"), interface.arguments())]
    if interface.out_avals:
        parts.append(table("Results", ("result", "type"), interface.results()))
    parts.append(table("Program", (), facts))
    if code:
        parts.append(folded("Text of the program", code, "as_text()"))
    return report(*parts)


def asked[T](question: Callable[[], T]) -> T | None:
    """What it returns; None where there is no answer, for a view must not fail."""
    try:
        return question()
    except Exception:  # of the runtime, which need not know
        return None
