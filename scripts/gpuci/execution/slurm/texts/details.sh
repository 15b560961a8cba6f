# shellcheck shell=sh
# details ID NAME: what Slurm knows of one job; accounting only when the controller has forgotten it.
answer=$(scontrol show job -o "$1" 2>&1)
code=$?
printf 'scontrol %d %s\n' "$code" "$(printf '%s' "$answer" | tr '\n' '\036')"
[ "$code" = 0 ] || sacct -n -P -X --name "$2" -S now-7days -o JobID,JobName%110,State,NodeList,Comment 2>/dev/null |
  sed 's/^/sacct /'
