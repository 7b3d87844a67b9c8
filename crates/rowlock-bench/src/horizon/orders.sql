-- purpose: a table of the application's own: every job changes a row of it
DROP TABLE IF EXISTS public.orders;
CREATE TABLE public.orders (id integer PRIMARY KEY, seen bigint NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO public.orders SELECT n, 0 FROM generate_series(0, 9999) AS n;
