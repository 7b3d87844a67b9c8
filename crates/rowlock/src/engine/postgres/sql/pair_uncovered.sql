-- purpose: note the states that nobody claims
UPDATE rowlock.pair SET uncovered = $2::text::json WHERE name = $1
