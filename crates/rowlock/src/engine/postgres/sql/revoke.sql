-- purpose: nobody but the owner may call anything, until it is granted
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA "rowlock" FROM PUBLIC
