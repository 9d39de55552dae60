"""The lab: what a compaction keeps of what is needed later, measured on real sessions beside its peers."""
