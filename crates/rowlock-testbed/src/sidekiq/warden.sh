# The life of one Sidekiq. Orders come on stdin; when they end, it goes.
# $1: its folder, $2: the URL of its Redis, then its arguments.

# Whoever reads the answers may be gone; the rest is still to be done.
trap '' PIPE
folder=$1
export REDIS_URL="$2" RAN="$1/ran" HOME="$1"
shift 2
pid=
while read -r order; do
  case $order in
    start)
      : >"$folder/log"
      sidekiq "$@" >"$folder/log" 2>&1 </dev/null &
      pid=$!
      echo "ok"
      ;;
    stop)
      kill -TERM "$pid"
      wait "$pid"
      code=$?
      pid=
      [ "$code" = 0 ] && echo "ok" || echo "exit code $code"
      ;;
  esac
done
[ -z "$pid" ] || kill -KILL "$pid"
wait
