"""Records: frozen attrs classes that share equality, hash and text."""

import copy
import gc
import pickle

from attrs import evolve, field, frozen

from verax.ir.records import Record
from verax.rules.guards import keeping


@frozen(eq=False, repr=False)
class Pair(Record):
    left: int
    right: tuple[int, ...] = ()


@frozen(eq=False, repr=False)
class Wider(Pair):
    third: str = field(default="", eq=False)
    value: float = field(default=0.0, eq=repr, repr=False)


@frozen(eq=False, repr=False)
class Empty(Record):
    pass


@frozen(eq=False, repr=False)
class Holder(Record):
    held: list[object]


def test_equal_in_class_and_fields() -> None:
    assert Pair(1, (2,)) == Pair(1, (2,))
    assert hash(Pair(1, (2,))) == hash(Pair(1, (2,)))
    assert Pair(1) != Pair(2)
    assert Pair(1) != Wider(1)
    assert Pair(1) != (1, ())
    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    assert len({Pair(1), Pair(1), Wider(1), Empty(), Empty()}) == 3


def test_fields_say_how_they_compare() -> None:
    assert Wider(1, third="a") == Wider(1, third="b")
    assert hash(Wider(1, third="a")) == hash(Wider(1, third="b"))
    assert Wider(1, value=0.0) != Wider(1, value=-0.0)
    nan = float("nan")
    assert Wider(1, value=nan) == Wider(1, value=-nan)


def test_text_copies_and_pickles() -> None:
    record = Wider(1, (2,), "x")
    assert repr(record) == "Wider(left=1, right=(2,), third='x')"
    assert evolve(record, left=3) == Wider(3, (2,), "x")
    for copied in (copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert copied == record
        assert repr(copied) == repr(record)


def test_keeping_leaves_the_collector_as_it_was() -> None:
    before = gc.isenabled()
    frozen_before = gc.get_freeze_count()
    with keeping():
        assert not gc.isenabled()
        made = [Pair(i, ()) for i in range(10)]
    assert gc.isenabled() is before
    assert gc.get_freeze_count() <= frozen_before
    assert any(found is made for found in gc.get_objects(generation=2))


def test_text_of_what_holds_itself_ends() -> None:
    record = Holder([])
    record.held.append(record)
    assert repr(record) == "Holder(held=[...])"
