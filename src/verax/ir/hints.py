"""Floor 0: what names of PyTorch and NumPy that verax lacks are called here.

One idea: one table for attributes of arrays and for functions of packages; the error
that says that there is no such name ends with what is meant::

    hint("cat")  # '; PyTorch's cat is verax.numpy.concatenate'
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

TORCH: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Conv2d": "verax.lax.conv_general_dilated, or a layer of flax or equinox",
        "Dropout": "verax.random.bernoulli, or a layer of flax or equinox",
        "Linear": "x @ w + b, or a layer of flax or equinox",
        "Module": "a pytree of arrays, or a module of flax or equinox",
        "Tensor": "verax.Array",
        "add_": "x + y: arrays are immutable",
        "addmm": "c + a @ b",
        "amax": "max(axis=...)",
        "amin": "min(axis=...)",
        "as_tensor": "verax.numpy.asarray",
        "autograd": "verax.grad, which takes a function",
        "backward": "verax.grad(f)(x): gradients are of functions, not of arrays",
        "baddbmm": "c + a @ b",
        "bmm": "a @ b",
        "bool": "x.astype(bool)",
        "cat": "verax.numpy.concatenate",
        "chunk": "verax.numpy.array_split, whose parts differ by one at most",
        "clamp": "verax.numpy.clip",
        "compile": "verax.jit",
        "contiguous": "x itself: arrays have no strides",
        "cpu": 'verax.device_put(x, verax.devices("cpu")[0])',
        "cuda": 'verax.device_put(x, verax.devices("cuda")[0])',
        "copy_": "y: arrays are immutable",
        "cross_entropy": "verax.nn.log_softmax, or a loss of optax",
        "detach": "verax.lax.stop_gradient(x)",
        "dim": "x.ndim",
        "div_": "x / y: arrays are immutable",
        "double": "x.astype(float) under verax.enable_x64",
        "element_size": "x.itemsize",
        "enable_grad": "verax.grad(f): only what is asked for is differentiated",
        "expand": "verax.numpy.broadcast_to",
        "expand_as": "verax.numpy.broadcast_to(x, y.shape)",
        "fill_": "verax.numpy.full_like(x, value)",
        "float": "x.astype('float32')",
        "from_numpy": "verax.numpy.asarray",
        "functional": "verax.nn and verax.lax",
        "gather": "verax.numpy.take_along_axis",
        "half": "x.astype('float16')",
        "index_add": "x.at[indices].add(values)",
        "index_copy": "x.at[indices].set(values)",
        "index_select": "verax.numpy.take",
        "int": "x.astype('int32')",
        "is_contiguous": "not needed: arrays have no strides",
        "is_cuda": "x.devices()",
        "is_floating_point": "verax.numpy.issubdtype(x.dtype, verax.numpy.floating)",
        "layer_norm": "verax.nn.standardize, or a layer of flax or equinox",
        "long": "x.astype(int)",
        "manual_seed": "verax.random.key(seed), an argument of every sampler",
        "masked_fill": "verax.numpy.where(mask, value, x)",
        "masked_select": "x[mask]",
        "mm": "a @ b",
        "mse_loss": "((x - y) ** 2).mean()",
        "mul_": "x * y: arrays are immutable",
        "multinomial": "verax.random.categorical, which takes logarithms",
        "mv": "a @ b",
        "narrow": "verax.lax.dynamic_slice_in_dim",
        "nelement": "x.size",
        "new_ones": "verax.numpy.ones",
        "new_zeros": "verax.numpy.zeros",
        "no_grad": "verax.lax.stop_gradient(x): nothing is recorded unless asked for",
        "numel": "x.size",
        "optim": "optax",
        "permute": "verax.numpy.transpose(x, axes)",
        "pow_": "x ** y: arrays are immutable",
        "rand": "verax.random.uniform",
        "rand_like": "verax.random.uniform(key, x.shape)",
        "randint": "verax.random.randint",
        "randn": "verax.random.normal",
        "randn_like": "verax.random.normal(key, x.shape)",
        "randperm": "verax.random.permutation",
        "relu_": "verax.nn.relu",
        "requires_grad": "verax.grad(f): functions are differentiated, not arrays",
        "requires_grad_": "verax.grad(f): functions are differentiated, not arrays",
        "register_hook": "verax.custom_vjp",
        "repeat_interleave": "verax.numpy.repeat",
        "reshape_as": "x.reshape(y.shape)",
        "rsqrt": "verax.lax.rsqrt",
        "scatter": "x.at[indices].set(values)",
        "scatter_": "x.at[indices].set(values)",
        "scatter_add": "x.at[indices].add(values)",
        "scatter_add_": "x.at[indices].add(values)",
        "softmax": "verax.nn.softmax",
        "sub_": "x - y: arrays are immutable",
        "t": "x.T",
        "tensor": "verax.numpy.array",
        "to": "x.astype(dtype), or verax.device_put(x, device)",
        "topk": "verax.lax.top_k",
        "type": "x.astype(dtype)",
        "type_as": "x.astype(y.dtype)",
        "unbind": "verax.numpy.unstack",
        "unfold": "verax.lax.conv_general_dilated_patches",
        "unsqueeze": "verax.numpy.expand_dims",
        "view_as": "x.reshape(y.shape)",
        "zero_grad": "not needed: verax.grad returns new gradients",
        "zero_": "verax.numpy.zeros_like(x)",
    }
)
"""Names of PyTorch's functions and of methods of its tensors."""

NUMPY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "asfarray": "asarray(x, dtype=float)",
        "base": "not needed: arrays own their values",
        "char": "numpy.char",
        "copyto": "verax.numpy.where(mask, values, x)",
        "cumproduct": "cumprod",
        "errstate": "verax.debug_nans and verax.debug.find_nans",
        "fill": "verax.numpy.full_like(x, value)",
        "flags": "not needed: arrays are immutable and have no strides",
        "flat": "x.flatten()",
        "float_": "float64, or float for the default",
        "genfromtxt": "numpy.genfromtxt, whose result verax.numpy.asarray takes",
        "in1d": "isin",
        "itemset": "x.at[index].set(value)",
        "loadtxt": "numpy.loadtxt, whose result verax.numpy.asarray takes",
        "ma": "where, and the argument where= of reductions",
        "memmap": "numpy.memmap, whose parts verax.numpy.asarray takes",
        "ndenumerate": "numpy.ndenumerate(x), or a function mapped by verax.vmap",
        "nditer": "a function mapped by verax.vmap",
        "partition": "verax.numpy.partition(x, kth)",
        "product": "prod",
        "put": "verax.numpy.put(x, indices, values, inplace=False)",
        "random": "verax.random, whose functions take a key",
        "resize": "verax.numpy.resize(x, shape)",
        "row_stack": "vstack",
        "savetxt": "numpy.savetxt, which takes arrays of verax",
        "seterr": "verax.debug_nans and verax.debug.find_nans",
        "setfield": "x.view(dtype)",
        "setflags": "not needed: arrays are immutable",
        "sometrue": "any",
        "strides": "not needed: arrays have no strides",
        "tofile": "verax.numpy.save, or numpy.asarray(x).tofile",
        "tostring": "x.tobytes()",
        "trapz": "trapezoid",
    }
)
"""Names of NumPy's functions and of methods of its arrays."""


def hint(name: str) -> str:
    """What a name of another library is here, to end an error with; "" if unknown.

    >>> hint("unsqueeze")
    "; PyTorch's unsqueeze is verax.numpy.expand_dims"
    >>> hint("in1d")
    "; NumPy's in1d is isin"
    >>> hint("other")
    ''
    """
    for library, table in (("PyTorch", TORCH), ("NumPy", NUMPY)):
        if name in table:
            return f"; {library}'s {name} is {table[name]}"
    return ""
