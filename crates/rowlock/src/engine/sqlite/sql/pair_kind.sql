-- purpose: what a pair must know of its kind ?1
SELECT key_fields, unique_until FROM rowlock_kind WHERE kind = ?1
