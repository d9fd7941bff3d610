"""Floor 5: why a call was traced or compiled again.

One idea: the keys of caches are taken apart (`keys`), compared (`differences`),
and what differs is told in a report or a log.
"""
