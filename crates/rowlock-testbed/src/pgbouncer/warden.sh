# The life of one PgBouncer. Orders come on stdin; when they end, it and its files go.
# $1: the program, $2: its settings.

# Whoever reads the answers may be gone; the cleaning is still to be done.
trap '' PIPE
home=$(mktemp -d "${TMPDIR:-/tmp}/rowlock-pgbouncer-XXXXXX") || exit 1
echo "ok $home/log"
pid=
while read -r order port; do
  printf '%s\nlisten_port = %s\n' "$2" "$port" >"$home/pgbouncer.ini"
  "$1" "$home/pgbouncer.ini" >"$home/log" 2>&1 </dev/null &
  pid=$!
  echo "ok"
done
[ -z "$pid" ] || kill "$pid"
wait
rm -rf "$home"
