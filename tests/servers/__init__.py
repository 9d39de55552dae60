"""Real PostgreSQL and Valkey servers for tests, from wheels, without root and without containers."""
