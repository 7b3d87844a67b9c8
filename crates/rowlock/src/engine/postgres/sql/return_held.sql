-- purpose: give back what a worker holds (return_rows), each row by itself when all at once is refused
-- A row that a trigger or a constraint of others refuses stays with its holder and keeps no other; among its errors is
-- why. Only what a row can be to blame for: not other transactions, the server's limits, or an operator.
CREATE FUNCTION rowlock.return_held(
    of_worker bigint, but_tokens bigint[], died boolean, suspect bigint, with_token bigint, wait_ms bigint,
    error text, errors_kept integer, now timestamptz, OUT returned integer, OUT ended integer)
LANGUAGE plpgsql AS $$
DECLARE
    others CONSTANT text[] := '{25,40,53,55,57,58}';
    unwritten CONSTANT text := 'the verdict could not be written';
    held record;
    one record;
BEGIN
    BEGIN
        SELECT r.* INTO one FROM rowlock.return_rows(
            NULL, of_worker, but_tokens, died, suspect, with_token, wait_ms, error, errors_kept, now) AS r;
        returned := one.returned;
        ended := one.ended;
        RETURN;
    EXCEPTION WHEN OTHERS THEN
        IF left(SQLSTATE, 2) = ANY (others) THEN
            RAISE;
        END IF;
    END;
    returned := 0;
    ended := 0;
    FOR held IN SELECT job.id, job.token, job.attempt FROM rowlock.job
                WHERE job.worker = of_worker AND job.token <> ALL (but_tokens) ORDER BY job.id LOOP
        BEGIN
            SELECT r.* INTO one FROM rowlock.return_rows(
                held.id, of_worker, but_tokens, died, suspect, with_token, wait_ms, error, errors_kept, now) AS r;
            returned := returned + one.returned;
            ended := ended + one.ended;
        EXCEPTION WHEN OTHERS THEN
            IF left(SQLSTATE, 2) = ANY (others) THEN
                RAISE;
            END IF;
            UPDATE rowlock.job AS job SET errors = rowlock.with_error(job.errors, jsonb_build_object(
                'attempt', held.attempt, 'at', now, 'kind', 'error', 'message', unwritten || ': ' || SQLERRM), 10)
            WHERE job.id = held.id AND job.token = held.token
              AND NOT starts_with(coalesce(job.errors -> -1 ->> 'message', ''), unwritten);
        END;
    END LOOP;
END $$
