-- purpose: begin a query of the user's: it can only read, and what else it does is undone
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SAVEPOINT before_query
