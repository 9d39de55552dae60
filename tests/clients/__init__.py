"""Published clients, run for real: directly against a strict upstream, and through `holdfast serve`.

python -m tests.clients                     # all; what cannot be installed is skipped
python -m tests.clients codex pi-chat --json
"""
