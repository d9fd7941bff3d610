# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.nn import initializers as initializers
from verax.nn.activations import (
    celu as celu, elu as elu, gelu as gelu, glu as glu, hard_sigmoid as hard_sigmoid,
    hard_silu as hard_silu, hard_swish as hard_swish, hard_tanh as hard_tanh,
    identity as identity, leaky_relu as leaky_relu, log1mexp as log1mexp,
    log_sigmoid as log_sigmoid, mish as mish, relu as relu, relu6 as relu6,
    selu as selu, sigmoid as sigmoid, silu as silu, soft_sign as soft_sign,
    softplus as softplus, sparse_plus as sparse_plus, sparse_sigmoid as sparse_sigmoid,
    squareplus as squareplus, swish as swish, tanh as tanh,
)
from verax.nn.attention import (
    dot_product_attention as dot_product_attention, one_hot as one_hot,
    standardize as standardize,
)
from verax.nn.reductions import (
    get_scaled_dot_general_config as get_scaled_dot_general_config,
    log_softmax as log_softmax, logmeanexp as logmeanexp, logsumexp as logsumexp,
    scaled_dot_general as scaled_dot_general, scaled_matmul as scaled_matmul,
    softmax as softmax,
)
__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "get_scaled_dot_general_config",
    "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity",
    "initializers", "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax",
    "logmeanexp", "logsumexp", "mish", "one_hot", "relu", "relu6", "scaled_dot_general",
    "scaled_matmul", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh",
]
