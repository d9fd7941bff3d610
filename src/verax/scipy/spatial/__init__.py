"""Floor 6: `verax.scipy.spatial`: rotations in three dimensions.

turn = verax.scipy.spatial.transform.Rotation.from_euler("z", 90, degrees=True)
"""

from verax.scipy.spatial import transform as transform
