-- purpose: prove that hearing works
NOTIFY "rowlock.ready", '{proof}'
