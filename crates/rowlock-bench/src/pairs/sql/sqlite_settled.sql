UPDATE databases SET state = 'ready'
