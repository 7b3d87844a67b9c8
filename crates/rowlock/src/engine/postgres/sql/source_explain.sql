-- purpose: how a statement would be run
EXPLAIN (VERBOSE, COSTS off, FORMAT JSON) {statement}
