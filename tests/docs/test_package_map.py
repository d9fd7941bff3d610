"""The map of the packages in docs/contributing.md is that of the tree."""

from pathlib import Path

from tests.docs.package_map import FLOORS, PAGE, SOURCE, package_map, parts


def test_the_map_is_up_to_date() -> None:
    _, actual, _ = parts(PAGE.read_text())
    assert actual == package_map(), (
        "packages have changed: run `make stubs`, which writes the map again"
    )


def test_every_package_of_a_floor_is_on_the_map() -> None:
    text = package_map()
    for floor in FLOORS:
        for package in folders(SOURCE / floor):
            assert f"| `{floor}/{package.name}/` | " in text, package
    assert "|  |" not in text


def folders(floor: Path) -> list[Path]:
    return [path.parent for path in floor.glob("*/__init__.py")]
