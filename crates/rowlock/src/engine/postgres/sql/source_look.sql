-- purpose: begin to look at plans: nothing is written, and an index is used where there is one
BEGIN READ ONLY; SET LOCAL enable_seqscan = off; SET LOCAL jit = off
