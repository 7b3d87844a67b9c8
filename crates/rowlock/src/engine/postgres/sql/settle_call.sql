-- purpose: apply verdicts; the accepted ones in one row, which is cheaper to send than one row each
SELECT array_agg(id) FROM rowlock.settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) AS id
