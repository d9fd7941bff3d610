"""`jax._src.xla_bridge`: the backends that have been started."""

_backends = None
