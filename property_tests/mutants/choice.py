"""Which calls a mutant is held to, those first that see such a mistake soonest.

One idea: calls that are known to run the line come first, one of each row and law, and
then other seeds of the rows that stand next to the changed function::

    likely, further, dear = batches(mutant, reach)
"""

import ast
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from random import Random
from types import MappingProxyType

from property_tests.mutants.patch import name_in_verax
from property_tests.mutants.reach import Place, Reach
from property_tests.mutants.scope import SOURCE, above, strings_in
from property_tests.mutants.trial import Call, Mutant, widened_calls

CALLS = 24
"""So many calls are tried first; most mutants are caught by these."""
MORE = 240
DEAR = 0.1
"""Calls that take so many seconds have a time of their own, after all others."""
NEAR = 8
"""Further seeds are tried of so many rows, the nearest to the function."""
WEAK_TYPES = Path(__file__).parents[1] / "weak_types.txt"
ABOUT_WEAKNESS = "test_weak_types.test_weak_results_are_those_written_down"
FIRST = MappingProxyType(
    {
        "batch": ("vmap", "vmap twice", "promises"),
        "over_": ("vmap", "vmap twice", "promises"),
        "jvp": ("jvp", "special", "linear", "vjp"),
        "tangent": ("jvp", "special", "linear", "vjp"),
        "transpose": ("adjoint", "linear", "vjp"),
        "split": ("linear", "vjp", "loops"),
        "dce": ("dce",),
        "typing": ("typed", "vmap", "compiled", "examples"),
        "lower": ("compiled",),
        "emit": ("compiled",),
        "evaluate": ("typed", "compiled", "vmap", "jvp"),
        "reference": ("compiled", "digits", "jvp"),
    }
)
"""The laws that see a mistake first, by a word in the name of the function."""


def places(mutant: Mutant) -> list[Place]:
    """The lines of a mutant."""
    site = mutant.site
    path = name_in_verax(str(mutant.path))
    return [(path, line) for line in range(site.line, site.end + 1)]


def first_laws(mutant: Mutant) -> set[str]:
    """The laws that see such a mistake first."""
    name = mutant.site.function
    return {law for word, laws in FIRST.items() if word in name for law in laws}


def about_types(mutant: Mutant) -> bool:
    """Whether what is weak may change, which the examples of each row hold."""
    site = mutant.site
    return "typing" in site.function or site.kind == "lost weak type"


def known_calls(mutant: Mutant, result: Reach) -> list[Call]:
    """The calls that run a mutant's lines, one of each row and law first."""
    calls = [call for place in places(mutant) for call in result.by_law.get(place, [])]
    likely = first_laws(mutant)
    pairs = Counter[tuple[str, str]]()
    ranked = list[tuple[float, int, Call]]()
    for call in sorted(dict.fromkeys(calls), key=lambda c: c.seed):
        pairs[call.row, call.law] += 1
        late = 0 if call.law in likely else 2
        cost = result.seconds.get(call, 1.0)
        rank = pairs[call.row, call.law] + late + cost
        if about_types(mutant) and call.law == "examples":
            rank = 1 + cost  # no two of them are of one row
        ranked.append((rank, len(ranked), call))
    return [call for _, _, call in sorted(ranked)]


def near_rows(mutant: Mutant, rows: set[str]) -> list[list[str]]:
    """Some rows whose statements are above the changed function, the nearest first.

    A statement that names a row makes it. Rows at one distance are together.
    """
    inside = sorted(strings_in(mutant.module, mutant.site.line) & rows)
    near, count = [inside] if inside else [], len(inside)
    for level in above(mutant.module, mutant.site.function.split(".")[0]):
        if count >= NEAR:
            break
        seen = {row for group in near for row in group}
        names = {row for home, line in level for row in strings_in(home, line)}
        fresh = sorted((names & rows) - seen)
        if fresh:
            near.append(Random(2).sample(fresh, min(len(fresh), NEAR - count)))
            count += len(near[-1])
    return near


def weakness_calls(mutant: Mutant, rows: set[str]) -> list[Call]:
    """The examples that know which results of the nearest rows are weak.

    They have a number for each line of the file. All of them run the rules of types
    that rows share, so those next to a rule are not among the few that are noted.
    """
    if mutant.site.kind != "lost weak type":
        return []
    names = [line.split()[0] for line in WEAK_TYPES.read_text().splitlines()]
    near = [name for group in near_rows(mutant, rows) for name in group]
    return [
        Call(ABOUT_WEAKNESS, "examples", names.index(name))
        for name in near
        if name in names
    ]


def near_calls(mutant: Mutant, result: Reach) -> tuple[list[Call], list[Call]]:
    """Calls of the rows next to the function, and of further ones, by row and law."""
    calls = [c for c in result.seconds if c.seed == 0 and c.law != "examples"]
    groups = near_rows(mutant, {call.row for call in calls})
    next_to = [c for c in calls if groups and c.row in groups[0]]
    return next_to, [c for c in calls if any(c.row in rows for rows in groups[1:])]


@cache
def imported_by(file: str) -> frozenset[str]:
    """The modules that the test files of a name import."""
    actual = set()
    for folder in ("tests", "property_tests"):
        for path in sorted((SOURCE.parent / folder).rglob(f"{file}.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ImportFrom) and node.module:
                    actual.add(node.module)
                    actual.update(f"{node.module}.{name.name}" for name in node.names)
    return frozenset(actual)


def examples_about(mutant: Mutant, result: Reach) -> list[Call]:
    """The examples of the files that import the changed module, whatever they run.

    Of the examples that run a line that many rules share, only some are noted.
    """
    calls = [c for c in result.seconds if c.law == "examples"]
    files = {c.row.partition(".")[0] for c in calls}
    about = {file for file in files if mutant.module in imported_by(file)}
    cheap = [c for c in calls if result.seconds[c] <= DEAR]
    return [c for c in cheap if c.row.partition(".")[0] in about]


def batches(mutant: Mutant, result: Reach) -> tuple[list[Call], list[Call], list[Call]]:
    """The calls to try first, those to try then, and those that take long.

    What an import runs is in every call: then the rows next to it are tried, and some
    of all calls. The first batch is empty if no call is known to run the line. All
    calls of the first and the last one pass without the mutant.
    """
    known = known_calls(mutant, result)
    nearest, near = near_calls(mutant, result)
    anywhere: list[Call] = []
    if not known and any(place in result.importing for place in places(mutant)):
        every = sorted(result.seconds, key=str)
        anywhere = Random(1).sample(every, min(MORE, len(every)))
        known = nearest + near or anywhere
    weak = weakness_calls(mutant, {c.row for c in nearest + near}) if known else []
    dear = [c for c in known if result.seconds.get(c, 0.0) > DEAR]
    cheap = [c for c in known if c not in dear] or known
    few = weak + cheap[:CALLS]
    few += [c for c in cheap[CALLS:] if c.law == "compiled"][: CALLS // 4]
    laws = first_laws(mutant)
    drawn = [c for c in known if c.law != "examples"]
    ways = (
        [c for c in cheap if c not in few],
        anywhere,
        examples_about(mutant, result),
        widened_calls([c for c in nearest if c.law in laws], Random(0), 2 * MORE),
        widened_calls(nearest, Random(1), 2 * MORE),
        widened_calls([c for c in near if c.law in laws], Random(4), MORE),
        widened_calls(near, Random(5), MORE),
        widened_calls([c for c in drawn if c.law in laws], Random(2), MORE // 2),
        widened_calls(drawn, Random(3), MORE),
    )
    return few, in_turn(ways), dear


def in_turn(ways: Sequence[Sequence[Call]]) -> list[Call]:
    """One call of each list after the other, no call twice."""
    mixed = [call for calls in zip_longest(*ways) for call in calls]
    return list(dict.fromkeys(call for call in mixed if call is not None))
