"""Floor 6: `verax.nn`: activations, softmax and its relatives, initializers.

>>> import verax
>>> verax.nn.relu(verax.numpy.array([-1.0, 2.0]))
Array([0., 2.], dtype=float32)
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {
        ".activations": (
            "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity "
            "leaky_relu log1mexp log_sigmoid mish relu relu6 selu sigmoid silu "
            "soft_sign softplus sparse_plus sparse_sigmoid squareplus swish tanh"
        ),
        ".attention": "dot_product_attention one_hot standardize",
        ".reductions": (
            "get_scaled_dot_general_config log_softmax logmeanexp logsumexp "
            "scaled_dot_general scaled_matmul softmax"
        ),
    },
    modules="initializers",
)
