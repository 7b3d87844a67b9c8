# The life of one tmux server with one terminal in it. When stdin ends, both go.
# $1: its socket, $2: its folder, $3: columns, $4: rows

# Whoever reads the answers may be gone; the cleaning is still to be done.
trap '' PIPE
tmux -S "$1" -f /dev/null new-session -d -s it -c "$2" -x "$3" -y "$4" "PS1='ready> ' exec sh" || exit 1
echo ok
cat >/dev/null
tmux -S "$1" kill-server
