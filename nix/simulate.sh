# One simulation with a real Batsim: both sides are started, and the outputs decide whether it went well.
# Usage: simulate SCHEDULER PLATFORM.xml WORKLOAD.json PREFIX [Batsim's other options]
if [ "$#" -lt 4 ]; then
  echo "usage: simulate SCHEDULER PLATFORM.xml WORKLOAD.json PREFIX [Batsim's other options]" >&2
  exit 2
fi
scheduler=$1 platform=$2 workload=$3 prefix=$4
shift 4
socket=$(mktemp -d)
endpoint=ipc://$socket/conversation
batsched-py serve -s "$scheduler" --endpoint "$endpoint" --timeout 3600 &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$socket"' EXIT
batsim -q -s "$endpoint" -p "$platform" -w "$workload" -e "$prefix" "$@"
wait "$server"
test -s "${prefix}_schedule.csv"
