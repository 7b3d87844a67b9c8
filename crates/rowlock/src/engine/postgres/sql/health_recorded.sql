-- purpose: what the schema consisted of when it was made
SELECT thing, content FROM rowlock.schema_part
