"""What is deprecated says so, at the user's line, and does not stay for ever."""

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import verax
from verax.errors import VeraxDeprecationWarning
from verax.ir.deprecation import deprecated, numbers, removal, warn_deprecated

SOURCE = Path(verax.__file__).parent
MARKS = ("deprecated", "warn_deprecated")


def since(tree: ast.AST) -> Iterator[str]:
    """The versions since which something in a module is deprecated."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), keywords=words) if name in MARKS:
                for word in words:
                    if word.arg == "since" and isinstance(word.value, ast.Constant):
                        yield str(word.value.value)


def overdue(tree: ast.AST, version: str) -> list[str]:
    """Those of them that a release of this version should not have any more."""
    return [s for s in since(tree) if numbers(version) >= numbers(removal(s))]


def test_a_call_warns_at_the_line_of_the_user() -> None:
    @deprecated("verax.old", since="1.2", instead="verax.new")
    def old(x: int, *, y: int = 1) -> int:
        """What it did."""
        return x + y

    with pytest.warns(VeraxDeprecationWarning) as caught:
        assert old(1, y=2) == 3
    (warning,) = caught
    assert warning.filename == __file__
    assert str(warning.message) == (
        "verax.old is deprecated since verax 1.2 and goes in 2.0: use verax.new"
    )
    assert (old.__name__, old.__doc__) == ("old", "What it did.")


def test_an_argument_warns_at_the_line_of_the_user() -> None:
    def f(n: int | None = None) -> None:
        if n is not None:
            warn_deprecated("the argument n of verax.f", since="0.3")

    with pytest.warns(
        VeraxDeprecationWarning, match=r"n of verax\.f .* goes in 0\.5$"
    ) as (caught):
        f(3)
    assert caught[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        f()


def test_it_is_a_deprecation_warning_that_filters_can_name() -> None:
    assert issubclass(VeraxDeprecationWarning, DeprecationWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=VeraxDeprecationWarning)
        with pytest.raises(VeraxDeprecationWarning):
            warn_deprecated("verax.f", since="1.0")
        warnings.warn("of JAX's", DeprecationWarning, stacklevel=1)


@pytest.mark.parametrize("version", ["1", "", "one.two", "1.x"])
def test_a_version_that_is_none_is_an_error_where_it_is_written(version: str) -> None:
    with pytest.raises(ValueError, match=r"as in '1\.2'"):
        deprecated("verax.f", since=version)


def test_what_is_overdue_is_seen() -> None:
    tree = ast.parse(
        "@deprecated('a', since='0.1')\ndef a(): warn_deprecated('b', since='1.2')\n"
        "other('c', since='0.0')"
    )
    assert list(since(tree)) == ["0.1", "1.2"]
    assert overdue(tree, "0.2.9") == []
    assert overdue(tree, "0.3.0") == ["0.1"]
    assert overdue(tree, "2.0.0") == ["0.1", "1.2"]


def test_nothing_in_the_package_is_overdue() -> None:
    late = {
        str(path.relative_to(SOURCE)): versions
        for path in SOURCE.rglob("*.py")
        if "deprecated(" in (text := path.read_text())
        and (versions := overdue(ast.parse(text), verax.__version__))
        and path.name != "deprecation.py"
    }
    assert late == {}
