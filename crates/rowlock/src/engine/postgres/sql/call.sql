-- purpose: call one of the functions that are defined here
SELECT * FROM rowlock.{function}({arguments})
