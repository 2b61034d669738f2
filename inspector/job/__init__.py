"""Opens a process, a core file or a whole job, and reads it."""
