"""Floor 5: from Python callables to jaxprs and back; the public names are in `verax`.

Every function here traces, rewrites and applies::

    jit(vmap(grad(f)))     # traces f once; the rest is rewriting
"""
