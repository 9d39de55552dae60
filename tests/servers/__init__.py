"""Servers that tests bring along: real ones, from wheels, without root and without containers."""
