"""The folder whose `sitecustomize` takes the mode into the processes below."""
