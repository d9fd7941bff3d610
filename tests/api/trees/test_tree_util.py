"""Pytrees behave as JAX documents them, and mistakes are told where they are."""

import dataclasses
import functools
import pickle
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any, NamedTuple

import pytest

import verax
import verax.numpy as vnp
from verax import tree, tree_util
from verax.api.trees.pytrees import broadcast_prefix
from verax.backend import pytrees
from verax.rules.rows.row import Linear, Zero
from verax.tree_util import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Partial,
    SequenceKey,
    keystr,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_structure,
)

Pair = namedtuple("Pair", "left right")  # the untyped form is tested
TREES: list[Any] = [
    1,
    None,
    (),
    [1, (2, {"b": 3, "a": 4}), None],
    Pair(1, [2]),
    OrderedDict(b=1, a=[2]),
    defaultdict(int, b=1, a=2),
    Partial(pow, 2, mod=3),
]


def is_none(value: object) -> bool:
    return value is None


@pytest.mark.parametrize("value", TREES, ids=repr)
def test_round_trip_and_pickle(value: Any) -> None:
    leaves, treedef = tree_flatten(value)
    rebuilt = treedef.unflatten(leaves)
    assert type(rebuilt) is type(value)
    assert tree_flatten(rebuilt) == (leaves, treedef)
    copy = pickle.loads(pickle.dumps(treedef))
    assert copy == treedef
    assert hash(copy) == hash(treedef)
    assert copy.unflatten(leaves).__class__ is value.__class__


def test_order_of_leaves() -> None:
    assert tree_leaves({"b": 1, "a": 2}) == [2, 1]
    assert tree_leaves(OrderedDict(b=1, a=2)) == [1, 2]
    assert tree_leaves(defaultdict(int, b=1, a=2)) == [2, 1]
    assert tree_leaves([None, 1], is_leaf=is_none) == [None, 1]
    assert pytrees.flatten_none_leaf([None, 1])[0] == [None, 1]


def test_defaultdict_keeps_its_factory() -> None:
    tree: Any = defaultdict(list, a=1)
    mapped = tree_map(lambda x: x + 1, tree)
    assert mapped == {"a": 2}
    assert mapped["new"] == []


def test_map_over_several_trees() -> None:
    assert tree_map(lambda x, y: (x, y), {"a": 1}, {"a": [2, 3]}) == {"a": (1, [2, 3])}
    assert tree_map(lambda x, y: (x, y), [1, None], [1, 2], is_leaf=is_none) == [
        (1, 1),
        (None, 2),
    ]


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            {"a": [1, 2]},
            {"a": [1, 2, 3]},
            "tree['a']: different lengths of list: expected 2",
        ),
        (
            {"a": 1},
            {"b": 1},
            "tree: different pytree metadata: the keys differ: 'a' is",
        ),
        ([1, None], [1, 2], "at tree[1]: different types: expected NoneType, got int"),
        ([1, [2]], (1, [2]), "at tree: different types: expected list, got tuple"),
        (
            Pair(1, [2]),
            Pair(1, 2),
            "at tree.right: different types: expected list, got int",
        ),
        (OrderedDict(a=1, b=2), OrderedDict(b=1, a=2), "same but in another order"),
        (defaultdict(int, a=1), defaultdict(float, a=1.0), "the metadata differ"),
        (
            [Partial(pow, 1)],
            [Partial(abs, 1)],
            "tree[0]: different pytree metadata: expected the",
        ),
    ],
)
def test_mismatch_names_the_place(first: Any, second: Any, text: str) -> None:
    with pytest.raises(ValueError, match="tree_map: tree 2 has another") as caught:
        tree_map(lambda *_: None, first, second)
    assert text in str(caught.value)


def test_second_of_three_trees_is_named() -> None:
    with pytest.raises(ValueError, match=r"tree_map: tree 3 .* at tree\[0\]\['a'\]"):
        tree_map(lambda *_: None, [{"a": [1]}], [{"a": [1]}], [{"a": 1}])
    with pytest.raises(ValueError, match="tree_map_with_path: tree 2"):
        tree_util.tree_map_with_path(lambda *_: None, [1], (1,))


def test_keys_that_cannot_be_sorted() -> None:
    with pytest.raises(ValueError, match="cannot be sorted"):
        tree_flatten({1: 0, "a": 1})
    with pytest.raises(ValueError, match="cannot be sorted"):
        tree_util.tree_flatten_with_path({1: 0, "a": 1})


def test_wrong_number_of_leaves() -> None:
    for leaves in ([1], [1, 2, 3]):
        with pytest.raises(ValueError, match="leaves"):
            tree_util.tree_unflatten(tree_structure([0, 0]), leaves)


def test_reductions() -> None:
    assert tree_util.tree_all({"a": True, "b": [1]})
    assert not tree_util.tree_all([True, 0])
    assert tree_util.tree_reduce(lambda x, y: x + y, [], None) is None
    assert tree_util.tree_reduce(lambda x, y: x - y, [1, (2, 3)]) == -4
    with pytest.raises(TypeError, match="initializer"):
        tree_util.tree_reduce(lambda x, y: x + y, [])
    joined = [
        tree_util.tree_reduce_associative(lambda x, y: x + y, list("abcdefg"[:count]))
        for count in range(1, 8)
    ]
    assert joined == ["abcdefg"[:count] for count in range(1, 8)]
    assert tree_util.tree_reduce_associative(max, [], identity=0) == 0
    with pytest.raises(TypeError, match="identity"):
        tree_util.tree_reduce_associative(max, [])


def test_transpose() -> None:
    outer, inner = tree_structure([0, 0]), tree_structure({"a": 0, "b": 0})
    value = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    expected = {"a": [1, 3], "b": [2, 4]}
    assert tree_util.tree_transpose(outer, inner, value) == expected
    assert tree_util.tree_transpose(outer, None, value) == expected
    with pytest.raises(TypeError, match="Mismatch: the tree has the structure"):
        tree_util.tree_transpose(tree_structure([0, 0, 0]), inner, value)


def test_transpose_of_a_node_whose_metadata_depend_on_what_it_holds() -> None:
    @tree_util.register_pytree_node_class
    class Counted(list[Any]):
        def tree_flatten(self) -> Any:
            return list(self), len(tree_util.tree_leaves(list(self)))

        @classmethod
        def tree_unflatten(cls, _: Any, children: Any) -> Any:
            return cls(children)

    outer, inner = tree_structure(Counted([0, 0])), tree_structure((0, 0))
    value = Counted([(1, 2), (3, 4)])
    expected = (Counted([1, 3]), Counted([2, 4]))
    assert tree_util.tree_transpose(outer, inner, value) == expected


def test_a_partial_of_a_partial_has_a_stable_structure() -> None:
    function = functools.partial(max, 1)
    one, other = (tree_util.Partial(function, 2) for _ in range(2))
    assert [one.func, one.func] == [function, other.func]
    assert function == one.func
    assert hash(one.func) == hash(other.func)
    assert tree_structure(one) == tree_structure(other)
    assert tree_structure(one) != tree_structure(tree_util.Partial(min, 2))


def test_the_default_registry_is_the_one_of_every_function() -> None:
    leaves, treedef = tree_util.default_registry.flatten({"a": [1, None]})
    assert (leaves, treedef) == tree_util.tree_flatten({"a": [1, None]})
    kind: Any = tree_util.PyTreeDef
    saved = kind.serialize_using_proto(treedef)
    registry = tree_util.default_registry
    assert kind.deserialize_using_proto(registry, saved) == treedef


def test_broadcast() -> None:
    full = {"a": [0, 0], "b": (0, {"z": 0})}
    assert tree_util.tree_broadcast({"a": 1, "b": 2}, full) == {
        "a": [1, 1],
        "b": (2, {"z": 2}),
    }
    assert broadcast_prefix(None, None) == []
    assert broadcast_prefix([None, 1], [(2, 3), 4], is_leaf=is_none) == [None, None, 1]
    with pytest.raises(
        ValueError, match="at tree: different types: expected list, got tuple"
    ):
        tree_util.tree_broadcast([1, 2], (1, 2))


def test_paths() -> None:
    value = {"a": [1, Pair(2, 3)]}
    paths = [path for path, _ in tree_util.tree_leaves_with_path(value)]
    assert paths[0] == (DictKey("a"), SequenceKey(0))
    assert [keystr(path) for path in paths] == [
        "['a'][0]",
        "['a'][1].left",
        "['a'][1].right",
    ]
    assert keystr(paths[2], simple=True, separator="/") == "a/1/right"
    assert keystr((FlattenedIndexKey(3),), simple=True) == "3"
    assert str(GetAttrKey("x")) == ".x"
    named = tree_util.tree_map_with_path(
        lambda path, x, y: (keystr(path), x, y), [1, {"q": 2}], [3, {"q": [4]}]
    )
    assert named == [("[0]", 1, 3), {"q": ("[1]['q']", 2, [4])}]


def test_leaf_predicates_with_and_without_path() -> None:
    value = {"a": [1, 2], "b": [3]}
    by_value = tree_util.tree_leaves_with_path(value, lambda x: x == [3])
    by_path = tree_util.tree_leaves_with_path(
        value, lambda path, _: path == (DictKey("b"),), is_leaf_takes_path=True
    )
    assert by_value == by_path
    assert [leaf for _, leaf in by_path] == [1, 2, [3]]


def test_all_leaves() -> None:
    assert tree_util.all_leaves([1, "a"])
    assert not tree_util.all_leaves([1, None])
    assert tree_util.all_leaves([1, [2]], is_leaf=lambda x: isinstance(x, list))
    assert not tree_util.all_leaves([1, ()], is_leaf=lambda x: isinstance(x, list))


def test_structures() -> None:
    one = tree_structure(1)
    assert tree_util.treedef_is_leaf(one)
    assert not tree_util.treedef_is_leaf(tree_structure(None))
    both = tree_util.treedef_tuple([one, tree_structure([2])])
    assert both == tree_structure((1, [2]))
    assert tree_util.treedef_children(both) == [one, tree_structure([2])]
    assert tree_util.flatten_one_level(None) == ((), None)
    with pytest.raises(ValueError, match="can't tree-flatten type int"):
        tree_util.flatten_one_level(3)


def test_register_node_once() -> None:
    class Node:
        def __init__(self, *items: int) -> None:
            self.items = items

    tree_util.register_pytree_node(
        Node, lambda x: (x.items, None), lambda _, c: Node(*c)
    )
    assert tree_leaves(Node(1, 2)) == pytrees.flatten_none_leaf(Node(1, 2))[0] == [1, 2]
    paths = tree_util.tree_leaves_with_path(Node(5))
    assert paths == [((FlattenedIndexKey(0),), 5)]
    for node in (Node, list, type(None), dict, OrderedDict):
        with pytest.raises(ValueError, match="already a pytree node"):
            tree_util.register_pytree_node(node, lambda _: ((), None), max)
    with pytest.raises(TypeError, match="must be a class"):
        tree_util.register_pytree_node(3, len, max)  # type: ignore[arg-type]  # what is tested


def test_register_with_keys() -> None:
    @tree_util.register_pytree_with_keys_class
    class Node:
        def __init__(self, x: int) -> None:
            self.x = x

        def tree_flatten_with_keys(self) -> tuple[Any, None]:
            return ((GetAttrKey("x"), self.x),), None

        @classmethod
        def tree_unflatten(cls, _: None, children: tuple[int]) -> "Node":
            return cls(*children)

    assert tree_util.tree_leaves_with_path(Node(5)) == [((GetAttrKey("x"),), 5)]
    assert tree_map(lambda x: x + 1, Node(5)).x == 6


def test_register_node_class_and_subclasses() -> None:
    @tree_util.register_pytree_node_class
    class Node:
        def __init__(self, x: int) -> None:
            self.x = x

        def tree_flatten(self) -> tuple[tuple[int], str]:
            return (self.x,), "aux"

        @classmethod
        def tree_unflatten(cls, aux: str, children: tuple[int]) -> "Node":
            assert aux == "aux"
            return cls(*children)

    class Child(Node):
        pass

    assert tree_map(lambda x: x + 1, Node(5)).x == 6
    assert len(tree_leaves([Child(1)])) == 1
    assert isinstance(tree_leaves([Child(1)])[0], Child)


def test_register_dataclass() -> None:
    @dataclasses.dataclass
    class Layer:
        weight: int
        name: str = tree.static(default="dense", metadata={"unit": "m"})
        size: int = dataclasses.field(init=False, default=7)

    with pytest.raises(ValueError, match=r"Unexpected fields: {'size'}.*drop_fields"):
        tree_util.register_dataclass(Layer)
    tree_util.register_dataclass(Layer, drop_fields=["size"])
    assert tree.static(metadata={"static": False}).metadata == {"static": False}
    assert tree_util.tree_leaves_with_path(Layer(1)) == [((GetAttrKey("weight"),), 1)]
    assert tree_map(lambda x: 2 * x, Layer(3, "a")) == Layer(6, "a")
    assert tree_structure(Layer(1, "a")) != tree_structure(Layer(1, "b"))
    metadata = dataclasses.fields(Layer)[1].metadata
    assert dict(metadata) == {"unit": "m", "static": True}


def test_register_dataclass_with_lists() -> None:
    @dataclasses.dataclass
    class Point:
        x: int
        y: int = 0

    register = tree_util.register_dataclass
    with pytest.raises(TypeError, match="must both be specified"):
        register(Point, ["x"])
    with pytest.raises(ValueError, match=r"fields of .*Point.* Missing fields: {'y'}"):
        register(Point, ["x"], [])
    with pytest.raises(ValueError, match=r"Overlapping fields: {'x'}"):
        register(Point, ["x"], ["x", "y"])
    with pytest.raises(ValueError, match=r"Unexpected fields: {'q'}"):
        register(Point, ["x", "y", "q"], [])
    assert register(Point, ["x"], [], drop_fields=["y"]) is Point
    assert tree_map(lambda x: x + 1, Point(1, 5)) == Point(2, 0)


def test_register_plain_class_as_dataclass() -> None:
    class Plain:
        def __init__(self, a: int, b: str) -> None:
            self.a, self.b = a, b

    with pytest.raises(TypeError, match="is not a dataclass"):
        tree_util.register_dataclass(Plain)
    tree_util.register_dataclass(Plain, data_fields=["a"], meta_fields=["b"])
    assert tree_map(lambda x: x + 1, Plain(1, "b")).a == 2


def test_register_static() -> None:
    @tree_util.register_static
    class Mode(str):
        pass

    assert tree_leaves([Mode("train"), 1]) == [1]
    assert tree_structure(Mode("train")) != tree_structure(Mode("eval"))


def test_partial() -> None:
    power = Partial(pow, 2, mod=5)
    assert power(3) == 3
    assert tree_leaves(power) == [2, 5]
    assert tree_map(lambda x: x + 1, power)(2) == pow(3, 2, 6)
    assert tree_structure(power) == tree_structure(Partial(pow, 3, mod=7))
    nested = Partial(power, 3)
    assert tree_leaves(nested) == [3]
    assert nested() == 3
    outside = Partial(functools.partial(pow, 2), 3)
    assert (tree_leaves(outside), outside()) == ([3], 8)
    assert repr(nested) == repr(Partial(power, 3))


def test_short_names_are_the_long_ones() -> None:
    for name in set(tree.__all__) - {"static"}:
        assert getattr(tree, name) is getattr(tree_util, f"tree_{name}")


def test_too_deep_a_tree_is_an_error() -> None:
    with pytest.raises(RecursionError, match="nested too deeply"):
        pytrees.advise(SystemError("returned a result with an exception set"))


# -------------------------------------------------------- namedtuples, and equal names


class Span(NamedTuple):
    """Explicitly a node: the unit belongs to the structure."""

    length: Any
    unit: Any


class Step(NamedTuple):
    size: Any
    kind: Any


tree_util.register_pytree_node(
    Span, lambda s: ((s.length,), s.unit), lambda unit, c: Span(c[0], unit)
)


def test_a_namedtuple_may_be_registered_once() -> None:
    before = tree_util.tree_structure(Step(1, 2))
    tree_util.register_pytree_with_keys(
        Step,
        lambda s: (((tree_util.GetAttrKey("size"), s.size),), s.kind),
        lambda kind, children: Step(children[0], kind),
    )
    after = tree_util.tree_structure(Step(1, "big"))
    assert tree_util.tree_leaves(Step(1, "big")) == [1]
    assert after != before
    assert after.unflatten([3]) == Step(3, "big")
    assert before.unflatten([3, 4]) == Step(3, 4)
    [(path, _)] = tree_util.tree_leaves_with_path(Step(1, None))
    assert tree_util.keystr(path) == ".size"
    with pytest.raises(ValueError, match="already a pytree node"):
        tree_util.register_pytree_node(
            Step, lambda s: ((), None), lambda _, c: Step(1, 2)
        )


def test_a_registered_namedtuple_in_programs_and_files() -> None:
    span = Span(vnp.ones(2), "m")
    doubled = verax.jit(lambda s: tree_util.tree_map(lambda x: 2 * x, s))(span)
    assert doubled.unit == "m"
    assert doubled.length.tolist() == [2, 2]
    treedef = tree_util.tree_structure({"a": Span(1, "m")})
    assert str(treedef) == "PyTreeDef({'a': CustomNode(Span[m], [*])})"
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert tree_util.tree_structure({"a": Span(1, "s")}) != treedef
    exported = verax.export.export(verax.jit(lambda s: s.length * 2))(span)
    with pytest.raises(TypeError, match="register_pytree_node_serialization"):
        exported.serialize()
    verax.export.register_pytree_node_serialization(
        Span,
        serialized_name="tests.Span",
        serialize_auxdata=str.encode,
        deserialize_auxdata=bytes.decode,
    )
    again = verax.export.deserialize(exported.serialize())
    assert again.in_tree == exported.in_tree
    assert again.call(span).tolist() == [2, 2]


def test_classes_of_one_name_are_different_nodes() -> None:
    def make(count: int) -> Any:
        class Same:
            def __init__(self, *children: Any) -> None:
                self.children = children

        tree_util.register_pytree_node(
            Same, lambda s: (s.children[:count], None), lambda _, c: Same(*c)
        )
        return Same

    one, two = make(1), make(2)
    assert tree_util.tree_leaves(one(1, 2)) == [1]
    assert tree_util.tree_leaves(two(1, 2)) == [1, 2]
    assert tree_util.tree_structure(one(1)) != tree_util.tree_structure(two(1))
    data = [dataclasses.make_dataclass("Point", ["x"]) for _ in range(2)]
    for cls in data:
        assert tree_util.register_dataclass(cls) is cls
        assert type(verax.jit(lambda p: p)(cls(1.0))) is cls


def test_tree_helpers() -> None:
    children, _ = tree_util.flatten_one_level_with_keys({"a": 1, "b": [2]})
    assert list(children) == [
        (tree_util.DictKey("a"), 1),
        (tree_util.DictKey("b"), [2]),
    ]
    assert tree_util.is_tree_node(dict)
    assert not tree_util.is_tree_node(int)
    with pytest.raises(ValueError, match="leaf"):
        tree_util.flatten_one_level_with_keys(3)


def test_zeros_and_linear_operands_of_rules_are_nodes_without_leaves() -> None:
    """Libraries pass them through `vmap` and `tree_map`, whose leaves are arrays."""
    aval = verax.typeof(vnp.ones(2))
    for node in (Zero(aval), Linear(aval)):
        assert tree_util.tree_leaves([node, 1]) == [1]
        assert tree_util.tree_map(lambda x: x + 1, [node, 1]) == [node, 2]
        assert [x for _, x in tree_util.tree_flatten_with_path((node, 2))[0]] == [2]
        ones, actual = verax.vmap(lambda x, node=node: (x, node))(vnp.ones(3))
        assert (ones.shape, actual) == ((3,), node)
