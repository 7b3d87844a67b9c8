# The life of one PostgreSQL server. Orders come on stdin; when they end, the server and its files go.
# $1: the folder of the binaries, $2: the settings, $3: where the data goes, if elsewhere, $4: the primary of a standby.

# Whoever reads the answers may be gone; the cleaning is still to be done.
trap '' PIPE
home=$(mktemp -d "${TMPDIR:-/tmp}/rowlock-postgres-XXXXXX") || exit 1
data=$home/data
log=$home/log
[ -z "$3" ] || data=$(mktemp -d "$3/data-XXXXXX") || { rm -rf "$home"; echo "can't write to $3"; exit 1; }

tell() { # a command's outcome
  if "$@" >"$home/outcome" 2>&1 </dev/null; then echo "ok"; else echo $(cat "$home/outcome"); fi
}
pg_ctl() { "$bin/pg_ctl" -D "$data" -s -w -t 100 "$@"; }
create() {
  if [ -n "$primary" ]; then
    "$bin/pg_basebackup" -d "$primary" -D "$data" -R -X stream -c fast --no-sync
    return
  fi
  "$bin/initdb" -D "$data" -U postgres -A trust --no-locale -E UTF8 --no-sync &&
    printf '%s\n' "$settings" >>"$data/postgresql.conf"
}

bin=$1
settings=$2
primary=$4
tell create
echo "ok $data"
echo "ok $log"
while read -r order word; do
  case $order in
    start) tell pg_ctl start -l "$log" -o "-p $word" ;;
    stop) tell pg_ctl stop -m "$word" ;;
    reload) tell pg_ctl reload ;;
    promote) tell pg_ctl promote ;;
  esac
done
pg_ctl stop -m immediate >"$home/outcome" 2>&1
rm -rf "$data" "$home"
