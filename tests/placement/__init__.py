"""Arrays and programs on several devices, in a process that has eight."""
