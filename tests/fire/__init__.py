"""Trial by fire: real processes that race, die and run out of room, and a log that must not mind."""
