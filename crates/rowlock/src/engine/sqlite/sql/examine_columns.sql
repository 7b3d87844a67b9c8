-- purpose: the columns of table ?1
SELECT name FROM pragma_table_info(?1)
