"""Before and after a compaction: veto, instructions, another plan, and events for whoever listens (G7, P11)."""
