"""Names that programs written for JAX ask for and verax itself has no use for."""
