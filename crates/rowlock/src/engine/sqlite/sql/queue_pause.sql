-- purpose: stop claims from a queue; ?2 why
INSERT INTO rowlock_queue (queue, switch, switch_reason) VALUES (?1, 'pause', ?2)
ON CONFLICT (queue) DO UPDATE SET
    switch = 'pause', switch_reason = ?2, switch_by = NULL, switch_until = NULL, switch_rejected = 0
