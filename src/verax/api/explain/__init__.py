"""Floor 5: why a call was traced or compiled again.

The keys of caches are taken apart (`keys`) and compared (`differences`), and what
differs is shown in a report or a log.
"""
