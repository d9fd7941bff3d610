"""Counting StableHLO operations in the text of a lowered module.

The idea: a module may share code in private functions, which XLA inlines. So there
are two counts: operations written, and operations after inlining, which is what XLA
compiles.

    written(ns.api.jit(f).trace(x).lower().as_text())
"""

import re

OPERATION = re.compile(r"(?<![#!\w])stablehlo\.")
FUNCTION = re.compile(r"func\.func (?:public |private )?@([\w$.-]+)")
CALL = re.compile(r"\bcall @([\w$.-]+)")


def written(text: str) -> int:
    """Return how many StableHLO operations stand in the text.

    >>> written("%1 = stablehlo.add %0, %0 : tensor<#stablehlo.x>")
    1
    """
    return len(OPERATION.findall(text))


def inlined(text: str) -> int:
    """Return how many StableHLO operations `main` runs through all its calls.

    >>> inlined('''func.func public @main() { call @f() call @f() }
    ... func.func private @f() { stablehlo.add }''')
    2
    """
    pieces = FUNCTION.split(text)[1:]
    bodies = dict(zip(pieces[::2], pieces[1::2], strict=True))
    counts: dict[str, int] = {}

    def count(name: str) -> int:
        if name not in counts:
            body = bodies.get(name, "")
            inner = sum(count(callee) for callee in CALL.findall(body))
            counts[name] = written(body) + inner
        return counts[name]

    return count("main")
