-- purpose: begin a look: only indexes are walked, a plan that seems dear is not compiled, and what isn't over in time is ended
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL jit = off; SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off; SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL statement_timeout = '15s'
