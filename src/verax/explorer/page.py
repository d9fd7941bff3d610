"""The page of a document: one HTML file that needs no network (floor 6).

render(document.to_json())      # '<!doctype html>...'
"""

import html
import json
from collections.abc import Mapping
from typing import Any

from verax.explorer.sources import Json


def render(document: Mapping[str, Json]) -> str:
    """The HTML of a document."""
    found: Any = document
    stages = "".join([stage_text(stage) for stage in found["stages"]])
    title = html.escape(str(found["title"]))
    data = json.dumps(document, separators=(",", ":")).replace("</", "<\\/")
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f"<h1>{title}</h1>{stages}"
        f'<script type="application/json" id="verax-data">{data}</script></html>'
    )


def stage_text(stage: Any) -> str:
    """One stage as printed lines."""
    rows, strings = stage["rows"], stage["strings"]
    lines = []
    for depth, left, op, right in zip(
        rows["depth"], rows["left"], rows["op"], rows["right"], strict=True
    ):
        words = [strings[left], "=" if strings[op] else "", strings[op], strings[right]]
        lines.append("  " * depth + " ".join(filter(None, words)))
    text = html.escape("\n".join(lines))
    return f"<h2>{html.escape(stage['title'])}</h2><pre>{text}</pre>"
