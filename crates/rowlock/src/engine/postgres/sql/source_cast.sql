-- purpose: whether a key can be read as its columns' types
SELECT {values}
