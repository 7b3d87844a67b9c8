-- purpose: the number that stands for a worker in the rows it holds
SELECT number FROM rowlock.worker WHERE id = $1
