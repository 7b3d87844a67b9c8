SET jit = off;
SET enable_seqscan = off;
SET plan_cache_mode = force_generic_plan
