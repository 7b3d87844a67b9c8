-- purpose: the call of budget_enter in a transaction of the application's
SELECT slot, max FROM rowlock.budget_enter($1)
