-- purpose: what autovacuum needs and this server has switched off
SELECT name FROM (VALUES ('autovacuum'), ('track_counts')) AS needed (name) WHERE NOT current_setting(name)::boolean
