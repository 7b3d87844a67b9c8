/* class:analytics */ SELECT count(*), sum(seen)::bigint FROM public.orders
