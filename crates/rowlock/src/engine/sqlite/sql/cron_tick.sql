-- purpose: take tick ?2 of cron ?1, once
INSERT INTO rowlock_cron_tick (name, tick) VALUES (?1, ?2) ON CONFLICT DO NOTHING
