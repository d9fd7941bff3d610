"""Whether the compilation cache on disk holds a program, and why not (floor 4).

One idea: nothing is read or compiled to answer; the name of the file follows from the
text of the program, and a file is there or not::

    stored(recipe, lowered)     # Stored(True, "/tmp/cache/5e...verax")
"""

from attrs import frozen

from verax.backend.lowering.result import Lowered
from verax.backend.programs.placed_program import placed_options
from verax.backend.programs.program import Recipe
from verax.backend.runtime.client import default_client, local_devices
from verax.backend.xla.compile_options import jaxlib_options
from verax.backend.xla.disk_cache import entry_for
from verax.ir.records import ReprMixin
from verax.rules.values.state import STATE


@frozen(repr=False)
class Stored(ReprMixin):
    """The answer; `hit` is None where the cache is not asked, and `note` says why."""

    hit: bool | None
    note: str = ""


def stored(recipe: Recipe, lowered: Lowered) -> Stored:
    """Whether the file of a program is there."""
    if not STATE.compilation_cache_dir:
        return Stored(None, "compilation_cache_dir is not set")
    if not STATE.enable_compilation_cache:
        return Stored(None, "enable_compilation_cache is off")
    if lowered.calls.functions:
        return Stored(None, "the program calls functions of this process")
    if lowered.calls.partitions:
        return Stored(None, "rules of this process partition the program")
    client, devices = default_client(), local_devices()[:1]
    options = recipe.options.settled(lowered.small)
    if recipe.placement is not None:
        devices = list(recipe.placement.devices)
        client = devices[0].client
        options = placed_options(options, recipe.placement)
    how = jaxlib_options(devices, options)
    entry = entry_for(client, lowered.text, devices, how)
    if entry is None:
        return Stored(None, "the program runs in several processes")
    return Stored(entry.path.exists(), str(entry.path))
