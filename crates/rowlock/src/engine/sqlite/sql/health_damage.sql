-- purpose: what is broken in the file, at most ten lines, or ok
PRAGMA quick_check(10)
