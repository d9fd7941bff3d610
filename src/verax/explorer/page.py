"""Floor 6: the stages of a program as one page of HTML that needs nothing else.

The page is a style sheet, JavaScript modules joined into one, and the document beside
them, compressed. It fetches nothing, and its own policy forbids it to::

    Path("loss.html").write_text(render(document), encoding="utf-8")
"""

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Final

MODULES: Final = (
    "elements",
    "document",
    "links",
    "colours",
    "hits",
    "linecosts",
    "view",
    "list",
    "ruler",
    "rows",
    "source",
    "clusters",
    "layout",
    "graph",
    "stagepane",
    "workspace",
    "search",
    "info",
    "costtable",
    "memory",
    "drawer",
    "story",
    "header",
    "main",
)
"""The modules of the page, each after all that it imports."""
POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline' blob:; worker-src blob:; "
    "style-src 'unsafe-inline'; img-src data:"
)
"""What the browser lets the page do: nothing that leaves it."""
TEMPLATE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{style}</style>
<script type="application/octet-stream" id="verax-data">{data}</script>
<script type="application/octet-stream" id="verax-layout">{layout}</script>
</head>
<body>
<noscript>This page shows a program with JavaScript, which is off.</noscript>
<script type="module">
{script}</script>
</body>
</html>
"""
IMPORT: Final = re.compile(r"^import [^;]*;\n", re.MULTILINE)
EXPORT: Final = re.compile(r"^export ", re.MULTILINE)


def render(document: Mapping[str, object]) -> str:
    """The page that shows a document of `verax.explore`, the same for equal documents.

    >>> page = render({"format": 1, "title": "a<b", "files": [], "stages": []})
    >>> "<title>a&lt;b · verax</title>" in page
    True
    """
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    title = f"{document.get('title', 'program')} · verax"
    return TEMPLATE.format(
        policy=POLICY,
        title=escape(title),
        style=asset("explorer.css"),
        data=packed(text),
        layout=packed(asset("vendor/dagre.min.js") + asset("layout_worker.js")),
        script="".join([joined(asset(f"{name}.js")) for name in MODULES]),
    )


def asset(name: str) -> str:
    """The text of a file beside this module."""
    place = files(__package__) / "assets"
    return place.joinpath(name).read_text(encoding="utf-8")


def joined(module: str) -> str:
    """A module as a part of one script: what it imports stands before it."""
    return EXPORT.sub("", IMPORT.sub("", module))


def packed(text: str) -> str:
    """Text compressed, in letters that HTML leaves alone; equal for equal text."""
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()
