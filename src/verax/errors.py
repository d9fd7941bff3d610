"""The errors of tracing, compiling and running, with JAX's names for them (floor 6).

A program that catches `jax.errors.X` catches `verax.errors.X`: the classes have JAX's
names and bases, and are raised where JAX raises them. `AbstractValueError` is the base
of those for a tracer that was asked for its value, however it was asked::

    except verax.errors.TracerBoolConversionError: ...    # if x > 0:
    except verax.errors.AbstractValueError: ...           # and float(x), np.asarray(x)

>>> import verax
>>> try:
...     verax.jit(bool)(1.0)
... except verax.errors.TracerBoolConversionError as error:
...     print(type(error))
<class 'verax.errors.TracerBoolConversionError'>
"""

from verax.api.inspect.purity import ImpureFunction as ImpureFunction
from verax.api.memory.budgets import MemoryBudgetExceeded as MemoryBudgetExceeded
from verax.backend.runtime.cluster import ProcessFailed as ProcessFailed
from verax.backend.runtime.errors import (
    CompileError as CompileError,
    ExecutionError as ExecutionError,
)
from verax.ir.deprecation import (
    VeraxDeprecationWarning as VeraxDeprecationWarning,
)
from verax.ir.promotion import TypePromotionError as TypePromotionError
from verax.ir.reports.check import IllTyped as IllTyped
from verax.numpy.indexing.parse import (
    JAXIndexError as JAXIndexError,
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
)
from verax.ops.special.erf_gamma import NoDerivative as NoDerivative
from verax.rules.programs.host import (
    CallbackError as CallbackError,
    JaxRuntimeError as JaxRuntimeError,
)
from verax.rules.rows.leaks import (
    LeakedTracer as LeakedTracer,
    UnexpectedTracerError as UnexpectedTracerError,
)
from verax.rules.rows.row import (
    ForeignDerivative as ForeignDerivative,
    IrreversibleLoop as IrreversibleLoop,
    MissingRule as MissingRule,
)
from verax.rules.values.conversions import (
    AbstractValueError as AbstractValueError,
    ConcretizationTypeError as ConcretizationTypeError,
    JAXTypeError as JAXTypeError,
    NotAnArray as NotAnArray,
    ShardingTypeError as ShardingTypeError,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
)
from verax.rules.values.sizes import (
    AxisError as AxisError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    ShapeError as ShapeError,
)
from verax.transforms.nans import NonFinite as NonFinite
from verax.transforms.passes.key_reuse import KeyReuseError as KeyReuseError

JaxprTypeError = IllTyped
XlaError = JaxRuntimeError
