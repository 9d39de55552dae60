"""Ratios of Holdfast to alternatives, measured in one run. Not tests: nothing here fails on timing."""
