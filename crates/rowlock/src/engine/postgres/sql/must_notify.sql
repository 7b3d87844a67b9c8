-- purpose: whether an enqueue has to notify: a worker sleeps, and no notification was heard within the last 10 ms
-- An enqueue that isn't committed tells nobody, so it must not keep others from telling: only what was heard counts.
-- A time that is ahead says nothing either: the server's clock was set back, or a standby whose clock is behind was
-- promoted.
-- Its body becomes part of the callers' expressions. Times are the server's own: a case may stop rowlock.now().
CREATE FUNCTION rowlock.must_notify() RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(pg_sequence_last_value('rowlock.bell') = 1, false) OR coalesce(
        to_timestamp(pg_sequence_last_value('rowlock.asleep')::float8 / 1000) > clock_timestamp()
        AND abs(coalesce(pg_sequence_last_value('rowlock.heard'), 0) - date_part('epoch', clock_timestamp()) * 1000) > 10, false)
$$
