"""Input and output shared by all parts: atomic files, JSON lines, shell commands, signals, secrets, safe text."""
