"""The part of jaxlib's search for plugins that `verax.backend` uses."""

from typing import Any

def import_from_plugin(plugin_name: str, submodule_name: str) -> Any | None: ...
