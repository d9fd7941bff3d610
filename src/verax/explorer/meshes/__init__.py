"""What a program would take on a mesh that is not there: `verax.debug.plan`."""
