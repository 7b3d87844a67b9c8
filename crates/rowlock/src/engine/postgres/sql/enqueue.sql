-- purpose: stage a job from any language, in its own transaction
CREATE FUNCTION rowlock.enqueue(
    kind text, payload jsonb DEFAULT '{}', queue text DEFAULT NULL, priority integer DEFAULT NULL,
    scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL, unique_key text DEFAULT NULL,
    unique_until text DEFAULT NULL, tags text[] DEFAULT NULL, OUT id bigint, OUT status text)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
SELECT staged.id, staged.status FROM rowlock.stage(json_build_array(json_build_object(
    'kind', $1, 'payload', coalesce($2, '{}')::text, 'queue', $3, 'priority', $4, 'scheduled_at', $5,
    'max_attempts', $6, 'unique_key', $7, 'unique_until', $8, 'tags', $9))::text) AS staged
$$
