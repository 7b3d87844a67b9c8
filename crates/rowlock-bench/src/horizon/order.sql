UPDATE public.orders SET seen = seen + 1 WHERE id = $1
