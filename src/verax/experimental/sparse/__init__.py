"""Sparse arrays: `verax.experimental.sparse`.

A sparse array is a pytree of dense buffers, so every transformation takes it; the
functions here compute with what it stores. `docs/sparse-matrices.md` is the guide::

    mat = BCOO.fromdense(dense)
    grad(lambda mat: f(mat @ v))(mat)

The arrays know operators and methods only by name: this module fills that place.
"""

from verax.experimental.sparse import linalg as linalg, transform, util as util
from verax.experimental.sparse.ad import (
    grad as grad,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
    value_and_grad as value_and_grad,
)
from verax.experimental.sparse.api import (
    empty as empty,
    eye as eye,
    random_bcoo as random_bcoo,
    todense as todense,
)
from verax.experimental.sparse.base import (
    JAXSparse as JAXSparse,
)
from verax.experimental.sparse.bcoo import (
    BCOO as BCOO,
    bcoo_eliminate_zeros as bcoo_eliminate_zeros,
    bcoo_extract as bcoo_extract,
    bcoo_fromdense as bcoo_fromdense,
    bcoo_sort_indices as bcoo_sort_indices,
    bcoo_sum_duplicates as bcoo_sum_duplicates,
    bcoo_todense as bcoo_todense,
    bcoo_transpose as bcoo_transpose,
)
from verax.experimental.sparse.bcsr import (
    BCSR as BCSR,
    bcsr_broadcast_in_dim as bcsr_broadcast_in_dim,
    bcsr_concatenate as bcsr_concatenate,
    bcsr_dot_general as bcsr_dot_general,
    bcsr_eliminate_zeros as bcsr_eliminate_zeros,
    bcsr_extract as bcsr_extract,
    bcsr_fromdense as bcsr_fromdense,
    bcsr_sum_duplicates as bcsr_sum_duplicates,
    bcsr_todense as bcsr_todense,
)
from verax.experimental.sparse.coo import (
    COO as COO,
    coo_fromdense as coo_fromdense,
    coo_matmat as coo_matmat,
    coo_matvec as coo_matvec,
    coo_todense as coo_todense,
)
from verax.experimental.sparse.csr import (
    CSC as CSC,
    CSR as CSR,
    csr_fromdense as csr_fromdense,
    csr_matmat as csr_matmat,
    csr_matvec as csr_matvec,
    csr_todense as csr_todense,
)
from verax.experimental.sparse.layouts import (
    bcoo_broadcast_in_dim as bcoo_broadcast_in_dim,
    bcoo_concatenate as bcoo_concatenate,
    bcoo_reshape as bcoo_reshape,
    bcoo_squeeze as bcoo_squeeze,
    bcoo_update_layout as bcoo_update_layout,
)
from verax.experimental.sparse.products import (
    bcoo_dot_general as bcoo_dot_general,
    bcoo_dot_general_sampled as bcoo_dot_general_sampled,
    bcoo_multiply_dense as bcoo_multiply_dense,
    bcoo_multiply_sparse as bcoo_multiply_sparse,
)
from verax.experimental.sparse.rules import (
    RULES as RULES,
    Rules as Rules,
    todense_p as todense_p,
)
from verax.experimental.sparse.structure import (
    bcoo_conv_general_dilated as bcoo_conv_general_dilated,
    bcoo_dynamic_slice as bcoo_dynamic_slice,
    bcoo_gather as bcoo_gather,
    bcoo_reduce_sum as bcoo_reduce_sum,
    bcoo_rev as bcoo_rev,
    bcoo_slice as bcoo_slice,
)
from verax.experimental.sparse.transform import (
    SparseTracer as SparseTracer,
    sparsify as sparsify,
)
from verax.experimental.sparse.util import (
    CuSparseEfficiencyWarning as CuSparseEfficiencyWarning,
    SparseEfficiencyError as SparseEfficiencyError,
    SparseEfficiencyWarning as SparseEfficiencyWarning,
)

JAXSparse.namespace = transform
