"""`jax._src.earray`: arrays of an extended dtype, as keys are; all are plain arrays."""


class Never(type):
    """The type of classes that nothing is an instance of."""

    def __instancecheck__(cls, x: object) -> bool:
        return False


class EArray(metaclass=Never):
    """An array of an extended dtype that is of another class than the rest."""
