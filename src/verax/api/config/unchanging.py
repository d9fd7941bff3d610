"""Floor 5: blocks of JAX's options that make no difference in verax.

A program may ask for what is always true here; asking for anything else is an error
that says why::

    with thread_guard(False): ...    # nothing changes
    with thread_guard(True): ...     # ValueError
"""

from verax.api.config.config import OptionBlock, override


def allow_f16_reductions(new_val: bool = True) -> OptionBlock:
    """Sums over narrow floats accumulate in wider ones: always so in verax.

    Raises:
        ValueError: `new_val` is False.
    """
    return override("allow_f16_reductions", new_val)


def array_garbage_collection_guard(new_val: str | None) -> OptionBlock:
    """The reaction to the garbage collector freeing an array: none.

    Raises:
        ValueError: `new_val` is not None.
    """
    return override("array_garbage_collection_guard", new_val)


def jax2tf_associative_scan_reductions(new_val: bool = True) -> OptionBlock:
    """Programs as TensorFlow's, which verax does not make: always False.

    Raises:
        ValueError: `new_val` is True.
    """
    return override("jax2tf_associative_scan_reductions", new_val)


def softmax_custom_jvp(new_val: bool = True) -> OptionBlock:
    """The derivative of `nn.softmax` is stable, whatever the value of this option.

    >>> import verax
    >>> with verax.softmax_custom_jvp(False):
    ...     print(verax.config.softmax_custom_jvp)
    False
    """
    return override("softmax_custom_jvp", new_val)


def thread_guard(new_val: bool = True) -> OptionBlock:
    """Whether other threads may not use arrays: never, since they always may.

    Raises:
        ValueError: `new_val` is True.
    """
    return override("thread_guard", new_val)
