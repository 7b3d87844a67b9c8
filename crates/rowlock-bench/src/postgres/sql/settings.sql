-- purpose: the server's version, and the settings that figures depend on
SELECT current_setting('server_version') || ', shared_buffers ' || current_setting('shared_buffers')
       || ', fsync ' || current_setting('fsync') || ', synchronous_commit ' || current_setting('synchronous_commit')
