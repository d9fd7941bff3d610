"""What a compiled program does, without its names, to compare it with another.

Two libraries that give XLA the same operations get the same code. A case that is slower
though its code is the same is slow to call, or was disturbed::

    same = code_of(verax_text) == code_of(jax_text)
"""

import hashlib
import re

# Names of instructions and computations, and of the parameters of the latter.
NAMES = re.compile(r"%[\w.\-]+")
PARAMETERS = re.compile(r"[\w.\-]+: (?=[a-z]+\d*\w*\[)")
# What stands behind an instruction without changing it; braces nest up to three deep.
NOTES = re.compile(
    r", (metadata|frontend_attributes|backend_config|stack_frame_id|sharding)="
    r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
)
# Sections on the lines of the source, which end where a computation begins.
SOURCES = re.compile(r"^(FileNames|FunctionNames|FileLocations|StackFrames)$", re.M)


def canonical(text: str) -> str:
    """The text of a compiled program with numbers for names, without its notes."""
    _, _, body = text.partition("\n")
    if SOURCES.search(body):
        begins = re.search(r"^(%|ENTRY)", body, re.M)
        body = body[begins.start() :] if begins else body
    numbers: dict[str, str] = {}
    body = NOTES.sub("", body)
    body = NAMES.sub(lambda m: numbers.setdefault(m[0], f"%{len(numbers)}"), body)
    body = PARAMETERS.sub("", body)
    return re.sub(r"\n\s*\n+", "\n", body).strip()


def code_of(text: str) -> str:
    """A digest of what a compiled program does."""
    return hashlib.sha256(canonical(text).encode()).hexdigest()[:16]
