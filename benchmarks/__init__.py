"""Ratios of Holdfast to what it stands beside, measured in one run. Not tests: nothing here fails by the clock."""
