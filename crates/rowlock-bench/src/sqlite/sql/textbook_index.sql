-- purpose: the index that the textbook's dequeue would need
CREATE INDEX jobs_ready ON jobs (status, priority DESC, scheduled_at)
