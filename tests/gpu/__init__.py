"""GPUs: the kernels of their plugin, and the run that checks everything on one."""
