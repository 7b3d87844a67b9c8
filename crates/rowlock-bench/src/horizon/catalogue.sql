CREATE TEMP TABLE report (id integer, total bigint);
DROP TABLE report;
