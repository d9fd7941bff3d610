"""Floor 6: how a program elsewhere can get at a value of this process.

One idea: what has a name in an imported module can be imported again; for the rest, a
comment says what to define::

    import_lines("log_cosh_p", row)     # ["from mylib.rows import log_cosh_p"]
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from attrs import frozen

from verax.ir.records import ReprMixin

OWN = "verax"
INSTALLED = ("site-packages", "dist-packages")


@frozen(repr=False)
class Place(ReprMixin):
    """A name in a module, and the folder that must be on the path to import it."""

    module: str
    name: str
    root: str | None


def find(value: object) -> Place | None:
    """Where `value` can be imported from, or None.

    Of several modules that hold it, the one that was imported last is taken: whoever
    imports a value from its home enters the list of modules before that home.
    """
    home = home_of(value)
    if home is not None:
        return home
    found: Place | None = None
    for module_name, module in list(sys.modules.items()):
        if module_name == "__main__" or not isinstance(module, ModuleType):
            continue
        for name, held in list(vars(module).items()):
            if held is value and name.isidentifier() and root_of(module) is not None:
                found = Place(module_name, name, root_of(module))
    return found


def described(value: object) -> str:
    """The description of a value, without the place in memory that it may show."""
    return str(getattr(value, "__qualname__", None) or repr(value))


def home_of(value: object) -> Place | None:
    """The place that a function says it has, if it is there."""
    name = getattr(value, "__qualname__", None)
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if not isinstance(name, str) or module is None or module.__name__ == "__main__":
        return None
    root = root_of(module)
    if root is None or getattr(module, name, None) is not value:
        return None
    return Place(module.__name__, name, root)


def root_of(module: ModuleType) -> str | None:
    """The folder to put on the path: "" where none is needed, None if there is none."""
    file = getattr(module, "__file__", None)
    if file is None or not str(file).endswith(".py"):
        return None
    name = module.__name__
    if name.split(".")[0] == OWN or any(part in str(file) for part in INSTALLED):
        return ""
    steps = len(name.split(".")) - (Path(file).name != "__init__.py")
    return str(Path(file).resolve().parents[steps])


def import_lines(values: Mapping[str, Any]) -> Sequence[str]:
    """Lines of Python that bind each name to its value, or say what to define.

    >>> import_lines({"f": import_lines})
    ['from verax.verify.cases.naming import import_lines as f']
    >>> import_lines({"p": object()})[0].startswith("p = ...  # define")
    True
    """
    places = {name: find(value) for name, value in values.items()}
    roots = dict.fromkeys(p.root for p in places.values() if p is not None and p.root)
    lines = ["import sys"] if roots else []
    lines += [f"sys.path.insert(0, {root!r})" for root in roots]
    for name, place in places.items():
        if place is None:
            lines.append(
                f"{name} = ...  # define {described(values[name])} as your program "
                "does: no imported module has a name for it"
            )
        else:
            alias = "" if place.name == name else f" as {name}"
            lines.append(f"from {place.module} import {place.name}{alias}")
    return lines
