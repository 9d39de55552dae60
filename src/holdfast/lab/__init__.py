"""The lab: measures on real sessions how much of what is needed later each compaction method retains."""
