"""A mutant loaded and held to the laws, in a process that was forked for it.

One idea: the parent has imported everything but verax itself, so a child is ready at
once and imports verax with one module changed; no child sees what another one saw::

    run_trial(Mutant("verax.ops.elementwise.trig", site), calls)  # "caught by jvp"
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
from property_tests.mutants.patch import Key, name_in_verax, patched
from property_tests.mutants.scope import SOURCE, path_of, source_of, tree_of


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
        module.__file__ = str(path_of(self.name))
        helped(module)
        exec(self.code, vars(module))


def helped(module: ModuleType) -> None:
    """Put into a module what mutants need."""
    from verax.ir import dtypes  # not before the fork

    vars(module)[NOTHING] = lambda x: x - x
    vars(module)["verax_mutant_dtypes"] = dtypes


def own_module(name: str) -> bool:
    """Whether a module is verax, or uses it."""
    kept = ("kinds", "patch", "reach", "scope", "trial", "__main__", "report")
    if name.startswith("property_tests.mutants."):
        return not name.endswith(kept)
    return name.split(".")[0] in ("verax", "tests", "property_tests") and "." in name


def forget() -> None:
    """As if verax had not been imported."""
    names = [n for n in sys.modules if n == "verax" or own_module(n)]
    for name in names:
        if name not in ("property_tests.mutants",):
            del sys.modules[name]
            home, _, last = name.rpartition(".")
            if home in sys.modules:
                # `from package import module` would else give the module as it was.
                vars(sys.modules[home]).pop(last, None)


def load(mutant: Mutant, early: set[Key]) -> None:
    """Put the mutant in the place of its rule, or import all of verax anew with it."""
    tree = mutated(source_of(mutant.module), mutant.site)
    module = sys.modules.get(mutant.module)
    if module is not None:
        helped(module)
        old = tree_of(mutant.module)
        if patched(str(mutant.path), old, tree, early):
            return
        forget()
    sys.meta_path.insert(0, Loader(mutant.module, tree))


def prepared(call: Call) -> object:
    """The case that a law is held to, made by the draws."""
    from property_tests.mutants.calls import prepare  # imports verax

    return prepare(call)


def held(call: Call, case: object) -> bool:
    """Whether the law says something about the case; LawBroken if it does not hold."""
    from property_tests.mutants.calls import hold  # imports verax

    return hold(call, case)


def tried(call: Call) -> bool:
    """Make a case and hold the law to it."""
    return held(call, prepared(call))


def hold(calls: Sequence[Call], seconds: float) -> Call | None:
    """The call that breaks its law first, or None."""
    end = time.process_time() + seconds
    for call in calls:
        if time.process_time() > end:
            return None
        try:
            tried(call)
        except Exception:
            return call
    return None


def run_trial(
    mutant: Mutant | None, calls: Sequence[Call], seconds: float, early: set[Key]
) -> Call | None:
    """What catches the mutant: a call, the import, or nothing."""
    try:
        if mutant is not None:
            load(mutant, early)
        import property_tests.mutants.calls  # noqa: F401  # imports verax
    except Exception:
        return Call("", "import", 0)
    return hold(calls, seconds)


def search(
    mutant: Mutant, calls: Sequence[Call], seconds: float, early: set[Key]
) -> tuple[Call | None, bool]:
    """As `run_trial`, and whether any law ran the changed line: nobody knows of one."""
    from property_tests.mutants.reach import Place, watching  # a circle

    try:
        load(mutant, early)
        import property_tests.mutants.calls  # noqa: F401  # imports verax
    except Exception:
        return Call("", "import", 0), True
    site, end = mutant.site, time.process_time() + seconds
    path = name_in_verax(str(mutant.path))
    due = {(path, line) for line in range(site.line, site.end + 1)}
    met = False
    for call in calls:
        if time.process_time() > end:
            break
        lines: set[Place] = set()
        try:
            case = prepared(call)
            with watching(lines, set()):
                held(call, case)
        except Exception:
            return call, True
        met = met or bool(lines & due)
    return None, met


def widened_calls(calls: Sequence[Call], random: Random, most: int) -> list[Call]:
    """Calls of the same rows under the same laws, with other seeds."""
    pairs = list(dict.fromkeys((c.row, c.law) for c in calls))
    random.shuffle(pairs)
    actual = []
    for seed in range(100, 100 + most):
        actual += [Call(row, law, seed) for row, law in pairs]
        if len(actual) >= most:
            break
    return actual[:most]
