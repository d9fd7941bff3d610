"""The errors of tracing, compiling and running, with JAX's names for them (floor 6).

One idea: a program that catches `jax.errors.X` catches `verax.errors.X`. JAX has four
names for what is one error here, a tracer asked for its value::

    except verax.errors.ConcretizationTypeError: ...      # is AbstractValueError

>>> import verax
>>> try:
...     verax.jit(bool)(1.0)
... except verax.errors.TracerBoolConversionError as error:
...     print(type(error).__name__)
AbstractValueError
"""

from verax.api.inspect.purity import ImpureFunction as ImpureFunction
from verax.backend.runtime.errors import (
    CompileError as CompileError,
    ExecutionError as ExecutionError,
    XlaError as XlaError,
)
from verax.ir.check import IllTyped as IllTyped
from verax.ir.promotion import TypePromotionError as TypePromotionError
from verax.numpy.indexing.parse import (
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
)
from verax.ops.special.erf_gamma import NoDerivative as NoDerivative
from verax.rules.programs.host import CallbackError as CallbackError
from verax.rules.rows.leaks import (
    AbstractValueError as AbstractValueError,
    LeakedTracer as LeakedTracer,
)
from verax.rules.rows.row import MissingRule as MissingRule
from verax.transforms.nans.report import NonFinite as NonFinite

ConcretizationTypeError = AbstractValueError
TracerArrayConversionError = AbstractValueError
TracerBoolConversionError = AbstractValueError
TracerIntegerConversionError = AbstractValueError
UnexpectedTracerError = LeakedTracer
JaxprTypeError = IllTyped
JaxRuntimeError = XlaError
