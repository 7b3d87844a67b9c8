-- purpose: what is broken in the file, its indexes and constraints, at most ten lines, or ok
PRAGMA integrity_check(10)
