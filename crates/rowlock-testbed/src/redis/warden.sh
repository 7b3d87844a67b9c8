# The life of one Redis server. Orders come on stdin; when they end, the server and its files go.
# $1: the program, then its arguments; they come last, so that a test's word counts.

# Whoever reads the answers may be gone; the cleaning is still to be done.
trap '' PIPE
home=$(mktemp -d "${TMPDIR:-/tmp}/rowlock-redis-XXXXXX") || exit 1
program=$1
shift
echo "ok $home"
pid=
while read -r order port; do
  case $order in
    start)
      : >"$home/log"
      "$program" --bind 127.0.0.1 --port "$port" --dir "$home" --daemonize no "$@" \
        >"$home/log" 2>&1 </dev/null &
      pid=$!
      ;;
    kill)
      [ -z "$pid" ] || kill -KILL "$pid"
      wait
      pid=
      ;;
  esac
  echo "ok"
done
[ -z "$pid" ] || kill -KILL "$pid"
wait
rm -rf "$home"
