-- purpose: classes that were declared before get their places
UPDATE rowlock.budget SET max = max
