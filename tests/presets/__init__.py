"""Every preset, with a model behind a real server."""
