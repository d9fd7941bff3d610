"""Runs that repeat in a sequence: which is found, and that it is one."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from verax.transforms.passes.blocks import Repeat, Repeats, repeating


def repeats_of(text: str, least: int) -> Repeats:
    """A sequence of letters, of which none reads another."""
    symbols = np.array([ord(c) for c in text], np.int64)
    nothing = np.zeros(0, np.int64)
    return Repeats(symbols, nothing, np.zeros(len(text) + 1, np.int64), least)


def best(text: str, least: int) -> Repeat | None:
    return repeats_of(text, least).best(np.ones(len(text), bool), 1)


@pytest.mark.parametrize(
    ("text", "least", "runs"),
    [
        ("abcd" * 5, 4, ["abcd"] * 5),
        ("xabcdyabcdz", 3, ["abcd", "abcd"]),
        ("abababababab", 4, ["abab"] * 3),
        ("abcabcabc-abd", 3, ["abc"] * 3),
    ],
)
def test_the_run_that_saves_most(text: str, least: int, runs: list[str]) -> None:
    actual = best(text, least)
    assert actual is not None
    assert [text[i : i + actual.length] for i in actual.starts] == runs
    assert actual.saved == (len(runs) - 1) * len(runs[0])


@pytest.mark.parametrize("text", ["", "a", "ab", "abcdefgh", "aabbccdd"])
def test_nothing_repeats(text: str) -> None:
    assert best(text, 3) is None


def test_positions_that_are_taken_are_left_alone() -> None:
    text = "abcdabcdabcd"
    free = np.ones(len(text), bool)
    free[4:8] = False
    actual = repeats_of(text, 3).best(free, 1)
    assert actual == Repeat((0, 8), 4)
    # No run goes across what is taken.
    free[:] = True
    free[6] = False
    actual = repeats_of(text, 3).best(free, 1)
    assert actual is not None
    assert not any(start <= 6 < start + actual.length for start in actual.starts)


def test_runs_read_the_same_of_their_own() -> None:
    symbols = np.array([7, 8, 9] * 2, np.int64)
    first = np.arange(7)
    # Position 5 reads position 3, where 2 reads 1.
    defined = np.array([-1, 0, 1, -1, 3, 3], np.int64)
    free = np.ones(6, bool)
    assert Repeats(symbols, defined, first, 2).best(free, 1) == Repeat((0, 3), 2)
    assert Repeats(symbols, defined, first, 3).best(free, 1) is None


@pytest.mark.parametrize(
    ("text", "light", "last"),
    [
        # The last run lacks its end, or something before it.
        ("abcdefgh" * 2 + "abcdef", "gh", (0, 1, 2, 3, 4, 5)),
        ("abcdefgh" * 2 + "abcefg", "dh", (0, 1, 2, 4, 5, 6)),
        # More is lacking, or what takes time, or another symbol stands there.
        ("abcdefgh" * 2 + "abcde", "fgh", ()),
        ("abcdefgh" * 2 + "abcdex", "fgh", ()),
        ("abcdefgh" * 2 + "abcdef", "h", ()),
        ("abcdefgh" * 2 + "abxdefgh", "gh", ()),
    ],
)
def test_a_last_run_that_lacks_some(
    text: str, light: str, last: tuple[int, ...]
) -> None:
    free = np.ones(len(text), bool)
    repeats, actual = repeats_of(text, 4), Repeat((0, 8), 8)
    more = repeats.completed(actual, free, np.array([c in light for c in text]))
    assert more == (Repeat((0, 8, 16), 8, last) if last else actual)
    assert more.spans[2:] == ([(16, 16 + len(last))] if last else [])
    assert more.saved == 8 + len(last)
    free[18] = False
    assert repeats.completed(actual, free, np.ones(len(text), bool)) == actual


def test_a_last_run_reads_of_its_own_what_the_others_do() -> None:
    symbols = np.array([1, 2, 3, 4] * 2 + [1, 2, 3], np.int64)
    first = np.arange(12)
    free = light = np.ones(11, bool)
    # The third of a run reads the second; that of the last run does not.
    defined = np.array([-1, -1, 1, -1, -1, -1, 5, -1, -1, -1, 8], np.int64)
    run = Repeat((0, 4), 4)
    assert Repeats(symbols, defined, first, 2).completed(run, free, light) == run
    defined[10] = 9
    more = Repeats(symbols, defined, first, 2).completed(run, free, light)
    assert more == Repeat((0, 4, 8), 4, (0, 1, 2))


@pytest.mark.parametrize("seed", range(200))
def test_what_is_found_repeats(seed: int) -> None:
    random = Random(seed)
    parts = ["".join(random.choices("abc", k=random.randint(1, 6))) for _ in range(3)]
    text = "".join(random.choices(parts, k=random.randint(0, 12)))
    least = random.randint(1, 4)
    actual = best(text, least)
    if actual is None:
        longest = 2 * least
        starts = range(len(text) - longest + 1)
        seen = [text[i : i + longest] for i in starts]
        apart = [(i, j) for i in starts for j in starts if j >= i + longest]
        assert not any(seen[i] == seen[j] for i, j in apart)
        return
    assert actual.length >= least
    assert len(actual.starts) > 1
    assert len({text[i : i + actual.length] for i in actual.starts}) == 1
    assert all(j >= i + actual.length for i, j in pairwise(actual.starts))


def test_how_much_repeats_at_a_glance() -> None:
    assert repeating(np.array([1, 2, 3, 4] * 8, np.int64), 4) == 32 - 3 - 4
    assert repeating(np.arange(32), 4) == 0
    assert repeating(np.zeros(0, np.int64), 4) == 0
