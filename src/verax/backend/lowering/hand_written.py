"""Modules that a program builds by hand, with MLIR's bindings (floor 4).

One idea: the program writes the body of a function between its arguments and its
results; what comes out is text, as all modules here are::

    module_text((f32[3],), lambda values: [stablehlo.AddOp(*values * 2).result])
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from verax.backend.lowering.mlir_text import mlir_type
from verax.backend.lowering.stablehlo_io import new_context
from verax.ir.avals import ShapedArray
from verax.rules.values.lazy import loaded

IR: Final = "jaxlib.mlir.ir"
FUNC: Final = "jaxlib.mlir.dialects.func"


def ir_type(aval: ShapedArray) -> Any:
    """The type of a value, in the context of MLIR that is current."""
    return loaded(IR, "Type").parse(mlir_type(aval))


def module_text(
    avals: Sequence[ShapedArray], body: Callable[[Sequence[Any]], Sequence[Any]]
) -> str:
    """The module whose function `main` has this body.

    `body` gets MLIR's values for the arguments, and returns those of the results.

    Raises:
        ValueError: the module is not valid.
    """
    context = new_context()
    with context, loaded(IR, "Location").unknown(context):
        insert = loaded(IR, "InsertionPoint")
        module = loaded(IR, "Module").create()
        with insert(module.body):
            types = [ir_type(aval) for aval in avals]
            function = loaded(FUNC, "FuncOp")("main", (types, []))
            block = function.add_entry_block()
            with insert(block):
                results = list(body(list(block.arguments)))
                loaded(FUNC, "ReturnOp")(results)
            kinds = loaded(IR, "FunctionType").get(types, [x.type for x in results])
            function.attributes["function_type"] = loaded(IR, "TypeAttr").get(kinds)
        if not module.operation.verify():
            raise ValueError("the module that the lowering built is not valid")
        return str(module)
