"""Several processes that run one program, on one machine or many (floor 6).

Each process calls `initialize` before its first array; from then on `verax.devices()`
are the devices of all processes, and arrays and programs spread over them::

    verax.distributed.initialize("10.0.0.1:7777", num_processes=2, process_id=0)
    verax.process_index(), verax.local_devices(), verax.devices()

`python -m verax.distributed run -n 4 script.py` starts processes on this machine, and
`run` does in a program; `train` goes on from its last save when they are started again.
`pipeline` puts the blocks of a model on the devices of an axis, one after the other.

>>> import verax
>>> verax.distributed.is_initialized()
False
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {
        "verax.api.distributed.initialize": "initialize is_initialized shutdown",
        ".launch": "run",
        ".pipelines": "pipeline pipeline_value_and_grad",
        ".training": "train",
    },
)
