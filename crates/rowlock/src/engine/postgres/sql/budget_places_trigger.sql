-- purpose: a class that is declared, by any program, has its places
CREATE OR REPLACE TRIGGER budget_places AFTER INSERT OR UPDATE ON rowlock.budget FOR EACH ROW
EXECUTE FUNCTION rowlock.budget_places()
