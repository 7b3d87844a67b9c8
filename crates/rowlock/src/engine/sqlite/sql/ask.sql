-- purpose: whether a user's query has a row with this key
SELECT {pieces} FROM (
{query}
) AS q
WHERE ({columns}) = ({marks})
