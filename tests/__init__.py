"""Fast examples and goldens, one folder for each floor of the library."""
