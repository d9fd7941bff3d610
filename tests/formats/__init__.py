"""What verax writes to disk: files of each version, which every later version reads."""
