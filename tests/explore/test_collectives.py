"""Groups of devices as XLA writes them, and the axes along which they lie."""

from itertools import combinations

import numpy as np
import pytest

from verax.explorer.rows.collectives import (
    Along,
    Grid,
    Groups,
    Talks,
    axes_of,
    groups_of,
    pairs_of,
)

MESHES = [
    (("x",), (8,)),
    (("x", "y"), (4, 2)),
    (("x", "y"), (2, 4)),
    (("x", "y", "z"), (2, 2, 2)),
    (("x", "y", "z"), (2, 3, 4)),
]


def groups_along(sizes: tuple[int, ...], axes: tuple[int, ...]) -> Groups:
    """The groups along some axes, made one by one."""
    places = np.arange(np.prod(sizes)).reshape(sizes)
    rest = [i for i in range(len(sizes)) if i not in axes]
    width = int(np.prod([sizes[i] for i in axes]))
    table = places.transpose((*rest, *axes)).reshape(-1, width)
    return tuple(tuple(row) for row in table.tolist())


@pytest.mark.parametrize(("names", "sizes"), MESHES)
def test_axes_of_groups_in_every_form(
    names: tuple[str, ...], sizes: tuple[int, ...]
) -> None:
    count, grid = int(np.prod(sizes)), Grid(names, sizes)
    for size in range(1, len(names) + 1):
        for axes in combinations(range(len(names)), size):
            known = groups_along(sizes, axes)
            along = tuple(names[i] for i in axes)
            listed = ",".join("{" + ",".join(map(str, g)) + "}" for g in known)
            rest = [i for i in range(len(names)) if i not in axes]
            shape = ",".join(map(str, sizes))
            order = ",".join(map(str, (*rest, *axes)))
            mesh = ",".join(f"'{n}'={s}" for n, s in zip(names, sizes, strict=True))
            texts = [
                f"replica_groups={{{listed}}}, dimensions={{0}}",
                f"replica_groups=[{len(known)},{len(known[0])}]<=[{shape}]T({order})",
                f"replica_groups=mesh[{mesh}] {{{','.join(map(repr, along))}}}, x=1",
            ]
            for text in texts:
                assert groups_of(text, count) == known, text
            assert axes_of(known, grid) == Along(along)


def test_devices_of_a_group_may_stand_in_any_order() -> None:
    grid = Grid(("x", "y"), (4, 2))
    assert axes_of(((6, 0, 4, 2), (1, 7, 5, 3)), grid) == Along(("x",))


def test_axes_of_one_device_are_not_named() -> None:
    grid = Grid(("x", "y", "z"), (4, 1, 2))
    assert axes_of(groups_along((4, 1, 2), (0,)), grid) == Along(("x",))


def test_meshes_of_devices_in_another_order() -> None:
    places = np.arange(8).reshape(2, 4).T
    grid = Grid(("x", "y"), (4, 2), tuple(places.reshape(-1).tolist()))
    assert axes_of(((0, 1, 2, 3), (4, 5, 6, 7)), grid) == Along(("x",))
    text = "replica_groups=mesh['x'=4,'y'=2], device_ids=(0,4,1,5,2,6,3,7) {'y'}"
    assert groups_of(text, 8) == ((0, 4), (1, 5), (2, 6), (3, 7))
    text = "replica_groups=mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0)) {'y'}"
    assert groups_of(text, 8) == ((0, 4), (1, 5), (2, 6), (3, 7))


def test_parts_of_axes() -> None:
    grid = Grid(("x",), (8,))
    inner = groups_of("replica_groups=mesh['x'=8] {'x':(4)2}", 8)
    outer = groups_of("replica_groups=mesh['x'=8] {'x':(1)4}", 8)
    assert inner == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert outer == ((0, 2, 4, 6), (1, 3, 5, 7))
    assert axes_of(inner, grid) == Along(("x",), whole=False)


def test_plain_and_empty_groups() -> None:
    assert groups_of("replica_groups=[4,2]<=[8]", 8) == groups_along((4, 2), (1,))
    assert groups_of("replica_groups={}, use_global_device_ids=true", 3) == ((0, 1, 2),)
    assert groups_of("dimensions={0}", 3) is None


def test_pairs_of_a_ring() -> None:
    grid = Grid(("x", "y"), (4, 2))
    along_x = pairs_of("source_target_pairs={{0,2},{2,4},{4,6},{6,0},{1,3}}, x=1")
    along_y = pairs_of("source_target_pairs={{0,1},{1,0},{4,4}}")
    both = pairs_of("source_target_pairs={{0,3}}")
    assert along_x is not None
    assert along_y is not None
    assert both is not None
    assert axes_of(along_x, grid, pairs=True) == Along(("x",))
    assert axes_of(along_y, grid, pairs=True) == Along(("y",))
    assert axes_of(both, grid, pairs=True) == Along(("x", "y"))
    assert pairs_of("replica_groups={{0}}") is None


STARTED = """\
HloModule m

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

%scattered (p: f32[8]) -> f32[2] {
  %p = f32[8]{0} parameter(0)
  ROOT %r = f32[2]{0} reduce-scatter(%p), replica_groups={{0,1,2,3}}, to_apply=%add
}

%branch (q: f32[2]) -> f32[2] {
  %q = f32[2]{0} parameter(0)
  ROOT %t = f32[2]{0} collective-broadcast(%q), replica_groups={{0,1}}
}

%other (q2: f32[2]) -> f32[2] {
  ROOT %q2 = f32[2]{0} parameter(0)
}

ENTRY %main (x: f32[8], i: s32[]) -> f32[2] {
  %x = f32[8]{0} parameter(0)
  %i = s32[] parameter(1)
  %s = f32[8]{0} all-reduce-start(%x), replica_groups={{0,1,2,3}}, to_apply=%add
  %d = f32[8]{0} all-reduce-done(%s)
  %u = ((f32[8]{0}), f32[2]{0}, u32[]) async-start(%d), calls=%scattered
  %v = f32[2]{0} async-done(%u), calls=%scattered
  ROOT %w = f32[2]{0} conditional(%i, %v, %v), branch_computations={%branch, %other}
}
"""


def test_collectives_that_start_and_end_count_once() -> None:
    found = Talks(STARTED).all()
    assert [(t.kind, t.bytes, t.known) for t in found] == [
        ("all-reduce", 32, True),
        ("reduce-scatter", 32, True),
        ("collective-broadcast", 8, False),
    ]
