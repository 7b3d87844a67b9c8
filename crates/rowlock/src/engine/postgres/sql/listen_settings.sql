-- purpose: what a listener writes is a hint: its answer waits neither for the disk nor for a standby
SET synchronous_commit = off
