SELECT payload ->> 'id' FROM plain ORDER BY id DESC LIMIT 1
