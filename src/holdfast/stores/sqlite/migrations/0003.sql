-- The length of each lease, in seconds.
-- A lease that has longer to go was taken before the clock was set back.
ALTER TABLE leases ADD COLUMN seconds REAL;
