-- purpose: one process migrates at a time
LOCK TABLE rowlock.migration IN SHARE ROW EXCLUSIVE MODE
