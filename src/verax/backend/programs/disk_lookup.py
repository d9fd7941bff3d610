"""Whether the compilation cache on disk holds a program, and why not (floor 4).

One idea: nothing is read or compiled to answer; the name of the file follows from the
text of the program, and a file is there or not::

    stored(recipe, lowered)     # DiskAnswer(True, "/tmp/cache/5e...verax")
"""

from verax.backend.lowering.result import Lowered
from verax.backend.programs.placed_program import placed_options
from verax.backend.programs.program import Recipe
from verax.backend.runtime.client import default_client, local_devices
from verax.backend.xla.compile_options import jaxlib_options
from verax.backend.xla.disk_cache import DiskAnswer, entry_for


def stored(recipe: Recipe, lowered: Lowered) -> DiskAnswer:
    """Whether the file of a program is there."""
    client, devices = default_client(), local_devices()[:1]
    options = recipe.options.settled(lowered.small)
    if recipe.placement is not None:
        devices = list(recipe.placement.devices)
        client = devices[0].client
        options = placed_options(options, recipe.placement)
    how = jaxlib_options(devices, options)
    entry = entry_for(client, lowered.text, devices, options, how, lowered.calls)
    if isinstance(entry, DiskAnswer):
        return entry
    return DiskAnswer(entry.path.exists(), str(entry.path))
