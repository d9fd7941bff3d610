"""A mutant loaded and held to the laws, in a process that was forked for it.

One idea: the parent has imported everything but verax itself, so a child is ready at
once and imports verax with one module changed; no child sees what another one saw::

    run_trial(Mutant("verax.ops.trig", site), calls)     # "caught by jvp", ...
"""

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from types import CodeType, ModuleType

from attrs import frozen

from property_tests.mutants.kinds import NOTHING, Site, mutated

SOURCE = Path(__file__).parents[2] / "src"


@frozen
class Mutant:
    """A module, and the change of it."""

    module: str
    site: Site

    @property
    def path(self) -> Path:
        return path_of(self.module)

    def __str__(self) -> str:
        place = f"{self.path.relative_to(SOURCE.parent)}:{self.site.line}"
        return f"{place} [{self.site.kind}] {self.site.before} -> {self.site.after}"


def path_of(module: str) -> Path:
    return SOURCE.joinpath(*module.split(".")).with_suffix(".py")


@frozen
class Call:
    """One case of one law: which row, which law, which seed."""

    row: str
    law: str
    seed: int


class Loader(importlib.abc.Loader, importlib.abc.MetaPathFinder):
    """Gives one module another syntax tree, and everything else as it is."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.code: CodeType = compile(tree, str(path_of(name)), "exec")

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.util.spec_from_loader(name, self, origin=str(path_of(name)))

    def exec_module(self, module: ModuleType) -> None:
        from verax.ir import dtypes  # noqa: PLC0415  # not before the fork

        module.__file__ = str(path_of(self.name))
        vars(module)[NOTHING] = lambda x: x - x
        vars(module)["verax_mutant_dtypes"] = dtypes
        exec(self.code, vars(module))


def load(mutant: Mutant | None) -> None:
    """Import verax, with the mutant in the place of its module."""
    if mutant is not None:
        tree = mutated(mutant.path.read_text(), mutant.site)
        sys.meta_path.insert(0, Loader(mutant.module, tree))


def tried(call: Call) -> bool:
    """Whether the law says something about the case; LawBroken if it does not hold."""
    from property_tests.mutants.calls import attempt  # noqa: PLC0415  # imports verax

    return attempt(call)


def hold(calls: Sequence[Call], seconds: float) -> Call | None:
    """The call that breaks its law first, or None."""
    end = time.monotonic() + seconds
    for call in calls:
        if time.monotonic() > end:
            return None
        try:
            tried(call)
        except Exception:
            return call
    return None


def run_trial(
    mutant: Mutant | None, calls: Sequence[Call], seconds: float
) -> Call | None:
    """What catches the mutant: a call, the import, or nothing."""
    try:
        load(mutant)
        import property_tests.mutants.calls  # noqa: F401, PLC0415  # imports verax
    except Exception:
        return Call("", "import", 0)
    return hold(calls, seconds)


def widened_calls(calls: Sequence[Call], random: Random, most: int) -> list[Call]:
    """Calls of the same rows under the same laws, with other seeds."""
    pairs = list(dict.fromkeys((c.row, c.law) for c in calls))
    random.shuffle(pairs)
    found = []
    for seed in range(100, 100 + most):
        found += [Call(row, law, seed) for row, law in pairs]
        if len(found) >= most:
            break
    return found[:most]
