"""Floor 6: `verax.scipy.cluster`: codes of observations.

code, distance = verax.scipy.cluster.vq.vq(observations, code_book)
"""

from verax.scipy.cluster import vq as vq
