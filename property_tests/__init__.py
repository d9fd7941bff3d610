"""Laws: each holds for every row of the table and for generated programs."""
