# shellcheck shell=sh
# poll SHARED OWNER COUNTER MOST NAMES [NAME OFFSET]...: renew the leases, then new bytes of the logs, then the
# queue, if NAMES is not empty.
shared=$1 owner=$2 counter=$3 most=$4 names=$5
shift 5
while [ $# -gt 1 ]; do
  dir=$shared/jobs/$1 offset=$2
  for file in "$dir"/owner.*; do :; done
  read -r holder <"$file" || holder=
  if [ "$holder" = "$owner" ]; then printf '%012d' "$counter" 1<>"$dir/lease"; fi
  read -r claim 2>/dev/null <"$dir/claim/job" || claim=-
  size=$(wc -c 2>/dev/null <"$dir/slurm.out") || size=0
  count=$((size - offset))
  [ "$count" -le "$most" ] || count=$most
  [ "$count" -gt 0 ] || count=0
  printf 'log %s %s %s %d %d\n' "$1" "${holder:--}" "${claim:--}" "$size" "$count"
  [ "$count" = 0 ] || tail -c "+$((offset + 1))" "$dir/slurm.out" | head -c "$count"
  printf '\n'
  shift 2
done
[ -n "$names" ] || exit 0
queue=$(squeue -h -u "$(id -un)" -t all -n "$names" -o '%i|%j|%T|%r|%N|%k' 2>&1)
printf 'queue %d\n%s\n' "$?" "$queue"
