-- purpose: the end of such a call
COMMIT
