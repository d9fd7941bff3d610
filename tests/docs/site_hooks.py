"""What `make docs` adds to the pages of docs/: the changelog and the reference.

MkDocs loads this file by its path, and calls its functions by name::

    hooks:
      - tests/docs/site_hooks.py
"""

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tests.docs.reference_pages import Links, entries, menu, pages

ROOT = Path(__file__).parents[2]
PAGE = re.compile(r"`docs/([\w/-]+\.md)`")
LOADED = re.compile(
    r"<(?:script|img|iframe|link)\b[^>]*(?:src|href)=\"?((?:https?:)?//[^\s\">]+)"
)
IMPORTED = re.compile(r"(?:@import|url\()\s*[\"']?((?:https?:)?//[^\s\"')]+)")


FOUND = entries()
LINKS = Links(FOUND)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The menu, with the modules below the reference; versions only if mike builds."""
    (reference,) = (entry for entry in config.nav if "Reference" in entry)
    reference["Reference"].append({"verax": menu(FOUND)})
    if "MIKE_DOCS_VERSION" not in os.environ:
        config.extra.pop("version")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of docs/, the reference, and the changelog with links to pages."""
    changes = PAGE.sub(r"[\1](\1)", (ROOT / "CHANGELOG.md").read_text())
    for path, text in {"changelog.md": changes, **pages(FOUND)}.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Names in backticks, as links to what the reference says of them."""
    path = page.file.src_uri
    return markdown if path.startswith("api/") else LINKS.linked(markdown, path)


def on_post_build(config: MkDocsConfig) -> None:
    """Nothing that a browser loads comes from another host."""
    site = Path(config.site_dir)
    kinds = ((".html", LOADED), (".css", IMPORTED))
    for suffix, pattern in kinds:
        for path in site.rglob(f"*{suffix}"):
            for address in pattern.findall(path.read_text()):
                where = path.relative_to(site)
                raise PluginError(f"{where} loads {address} from another host")
