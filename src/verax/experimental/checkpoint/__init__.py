"""`verax.experimental.checkpoint`: pytrees of sharded arrays on the disk.

Each process writes its own shards, a save that is killed leaves the checkpoint before
it, and what was written on one mesh is restored on another::

    checkpoint.save("run/step-100", state)
    state = checkpoint.restore("run/step-100", like=state)
"""

from verax.experimental.checkpoint.folder import Checkpoints as Checkpoints
from verax.experimental.checkpoint.leaves import CheckpointError as CheckpointError
from verax.experimental.checkpoint.restoring import restore as restore
from verax.experimental.checkpoint.saving import (
    Saving as Saving,
    read_metadata as read_metadata,
    save as save,
    save_async as save_async,
)
