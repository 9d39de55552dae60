"""Integrations, run in the frameworks' own agent loops against a local server that refuses what the provider would."""
