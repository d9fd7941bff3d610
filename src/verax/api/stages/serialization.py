"""Floor 5: compiled functions as bytes.

One idea: a file is the program with the interface of its function; structures are in
it where they have a form in files, and else stay with the caller, as JAX has it::

    deserialize(compiled.serialize())(x)
    deserialize_and_load(*serialize(compiled))(x)
"""

from collections.abc import Sequence
from typing import Any

from verax.api.stages.interfaces import Interface
from verax.api.tracing.wrapping import Callee
from verax.api.trees.serialization import read_tree, write_tree
from verax.backend.programs.program import Program
from verax.backend.programs.serialize import (
    FRAME,
    check_devices,
    loaded,
    pack,
    saved,
    unpack,
)
from verax.backend.pytrees import PyTreeDef
from verax.backend.runtime.client import Device, check_backend, check_not_forked
from verax.ir.text.tokens import aval_of_word, filed_text


def written(interface: Interface, program: Program, *, trees: bool) -> bytes:
    """A compiled function as bytes, with its structures if `trees`.

    Raises:
        TypeError: a structure holds a class or a key without a serialised form.
        ValueError: the program cannot leave the process.
    """
    described: dict[str, object] = {
        "name": interface.name,
        "parameters": list(interface.callee.parameters),
        "donated": interface.donated,
        "in_avals": list(map(filed_text, interface.in_avals)),
        "out_avals": list(map(filed_text, interface.out_avals)),
    }
    if trees:
        described["in_tree"] = write_tree(interface.in_tree)
        described["out_tree"] = write_tree(interface.out_tree)
    description, parts = saved(program)
    return pack({"interface": described, "program": description}, parts)


def read(
    data: object,
    trees: tuple[PyTreeDef, PyTreeDef] | None,
    backend: str | None,
    devices: Sequence[Device] | None,
) -> tuple[Interface, Program]:
    """The compiled function that `written` wrote.

    Raises:
        TypeError: `data` is not bytes, or one of `devices` is not a device.
        ValueError: it is not a compiled function, a damaged one, one that cannot run
            here, or the structures are not there or have other numbers of leaves.
    """
    description, parts = unpack(data)
    check_not_forked()
    check_backend(backend)
    check_devices(devices)
    with FRAME.understanding():
        return understood(description, parts, trees, backend, devices)


def understood(
    description: dict[str, Any],
    parts: Sequence[bytes],
    trees: tuple[PyTreeDef, PyTreeDef] | None,
    backend: str | None,
    devices: Sequence[Device] | None,
) -> tuple[Interface, Program]:
    """Reads a description and parts, which are those of a whole file."""
    described = description["interface"]
    ins = tuple(map(aval_of_word, described["in_avals"]))
    outs = tuple(map(aval_of_word, described["out_avals"]))
    if trees is None:
        if "in_tree" not in described:
            raise ValueError(
                f"the file of {described['name']} does not contain the structures of "
                "arguments and results: load it with deserialize_and_load(data, "
                "in_tree, out_tree)"
            )
        trees = read_tree(described["in_tree"]), read_tree(described["out_tree"])
    for word, tree, avals in (("in", trees[0], ins), ("out", trees[1], outs)):
        if not isinstance(tree, PyTreeDef) or tree.num_leaves != len(avals):
            raise ValueError(
                f"{described['name']} was compiled with {len(avals)} {word}put leaves, "
                f"which {word}_tree={tree} does not have"
            )
    program = loaded(description["program"], parts, backend, devices)
    donated = tuple(described["donated"])
    callee = Callee(described["name"], tuple(described.get("parameters", ())))
    interface = Interface(callee, trees[0], ins, donated, trees[1], outs)
    return interface, program
