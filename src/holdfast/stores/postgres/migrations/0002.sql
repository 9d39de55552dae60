-- Leases of several names on one session, each with an owner.
-- Applications from schema 2 on can work with it.

ALTER TABLE holdfast.leases ADD COLUMN name text COLLATE "C" NOT NULL DEFAULT 'compaction';
ALTER TABLE holdfast.leases ALTER COLUMN name DROP DEFAULT;
ALTER TABLE holdfast.leases DROP CONSTRAINT leases_pkey;
ALTER TABLE holdfast.leases ADD PRIMARY KEY (session, name);
