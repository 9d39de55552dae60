"""Stress tests with real processes that race, are killed and run out of disk space."""
