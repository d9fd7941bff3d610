"""The page as text: the same for equal documents, and nothing in it that gets out."""

import gzip
import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from importlib.resources import files
from pathlib import Path

import pytest

from tests.browser.documents import small
from verax.explorer.exploration import MODULES, asset, joined, render

ASSETS = files("verax.explorer") / "assets"
PYTEST = (sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider")


def test_equal_documents_make_equal_pages() -> None:
    assert render(small()) == render(small())
    assert render(small()) != render(small(story=True))


def test_the_document_is_in_the_page_and_its_text_is_not() -> None:
    page = render({**small(), "title": "</title><script>alert(1)</script>"})
    packed = re.search(r'id="verax-data">([^<]*)</script>', page)
    assert packed is not None
    document = json.loads(gzip.decompress(b64decode(packed[1])))
    assert document["title"] == "</title><script>alert(1)</script>"
    assert "alert(1)</script>" not in page
    assert "&lt;/title&gt;" in page
    assert len(re.findall("<script", page)) == len(re.findall("</script>", page)) == 3


def test_nothing_is_linked_or_allowed_from_outside() -> None:
    page = render(small())
    assert "default-src 'none'" in page
    assert re.findall(r"<(?:link|img|iframe|script)[^>]*(?:src|href)=", page) == []
    urls = set(re.findall(r"https?://[^\s\"'`]*", page))
    assert urls == {"http://www.w3.org/2000/svg"}


def test_every_module_is_joined_after_what_it_imports() -> None:
    present = {place.name for place in ASSETS.iterdir() if place.name.endswith(".js")}
    assert present == {f"{name}.js" for name in MODULES} | {"layout_worker.js"}
    for number, name in enumerate(MODULES):
        text = asset(f"{name}.js")
        imported = re.findall(r'^import .* from "\./(\w+)\.js";$', text, re.MULTILINE)
        assert set(imported) <= set(MODULES[:number]), name
        rest = joined(text)
        assert not re.search("^(import|export) ", rest, re.MULTILINE), name


def test_modules_do_not_share_names() -> None:
    text = "".join([joined(asset(f"{name}.js")) for name in MODULES])
    declared = r"^(?:async )?(?:function\*?|class|const|let) (\w+)"
    names = re.findall(declared, text, re.MULTILINE)
    assert len(names) > 60
    assert len(names) == len(set(names))


def test_the_layout_library_comes_with_its_licence() -> None:
    assert "Permission is hereby granted" in asset("vendor/dagre.LICENSE.txt")
    assert asset("vendor/dagre.min.js").startswith(('"use strict";', "/*"))


@pytest.mark.slow
def test_without_playwright_modules_are_skipped_with_a_reason(tmp_path: Path) -> None:
    package = tmp_path / "playwright"
    package.mkdir()
    missing = "raise ModuleNotFoundError('No module named playwright')"
    (package / "__init__.py").write_text(missing)
    paths = [str(tmp_path), *sys.path]
    actual = subprocess.run(
        [*PYTEST, "tests/browser/test_explorer.py", "tests/browser/test_pictures.py"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "2 skipped" in actual.stdout
    assert "playwright is not installed: it comes with the extra dev" in actual.stdout
    assert "Traceback" not in actual.stdout + actual.stderr
