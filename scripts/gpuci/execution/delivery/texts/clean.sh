#!/bin/sh
# clean SHARED KEPT: remove what old runs left. In use is a job directory in which anything was written within
# the hour (a lease is rewritten all the time), and a file that a job directory links. Ages are told by the file
# server's clock: all are compared with a file that is touched now.
LC_ALL=C
CDPATH=
export LC_ALL
unset QUOTING_STYLE
umask 077
cd -- "$1" 2>/dev/null || exit 0
kept=$2
most=200
note() { printf 'gpuci-clean note %s\n' "$*"; }

# One cleaner at a time; what a killed one left goes after an hour.
work=.cleaning
if ! mkdir "$work" 2>/dev/null; then
  [ -d "$work" ] || note "$work can't be made"
  find "$work" -prune -mmin +60 -exec rm -rf {} \; 2>/dev/null
  exit 0
fi
trap 'rm -rf "$work"' EXIT
trap 'exit 4' HUP INT PIPE TERM
work=$(pwd)/$work

ages() {
  now=$(: >"$work/now" && stat -c %Y "$work/now") &&
    touch -d "@$((now - 3600))" "$work/hour" &&
    touch -d "@$((now - 86400))" "$work/day" &&
    touch -d "@$((now - 259200))" "$work/old"
}
if ! ages; then
  note "nothing removed: this login node can't compare ages"
  exit 0
fi

in_use() { [ -n "$(find "$1" -newer "$work/hour" 2>&1 | head -n 1)" ]; }
older() { [ -n "$(find "$1" -prune ! -newer "$work/$2" 2>/dev/null)" ]; }

enough() { [ "$1" -ge "$most" ] || [ "$(date +%s)" -ge "$end" ]; }

# Moved aside first, looked at again, then removed: who takes it over in this moment finds it whole or gone.
# What can't be removed goes back (a container can leave files of other users), or it would lock us out.
discard() {
  doomed=$work/job.$1
  mv -- "$1" "$doomed" 2>/dev/null || {
    note "$1 can't be moved"
    return 1
  }
  if in_use "$doomed"; then
    mv -- "$doomed" "$1"
    return 1
  fi
  rm -rf "$doomed" 2>/dev/null && return
  note "$1 can't be removed as a whole"
  mv -- "$doomed" "$1" 2>/dev/null
  return 1
}

clean_jobs() {
  count=0 gone=0
  while IFS= read -r name; do
    # Other names are not ours.
    case $name in -* | .* | *[!A-Za-z0-9_.-]*) continue ;; esac
    if [ ! -d "$name" ] || [ -L "$name" ]; then continue; fi
    count=$((count + 1))
    if [ "$count" -le "$kept" ] && ! older "$name" old; then continue; fi
    in_use "$name" && continue
    if enough "$gone"; then
      note "more is left for the next time"
      break
    fi
    discard "$name" && gone=$((gone + 1)) && printf 'gpuci-clean job %s\n' "$name"
  done
}

unused() { [ -n "$(find "$1" -prune -type f -links 1 ! -newer "$work/day" 2>/dev/null)" ]; }

ours() {
  case $1 in
    .partial-*[!A-Za-z0-9-]*) return 1 ;;
    .partial-*) return 0 ;;
    *.tar | *.pyz) [ ${#1} -eq 68 ] ;;
    *) return 1 ;;
  esac
}

clean_files() {
  gone=0
  while IFS= read -r name; do
    if ! ours "$name" || ! unused "$name"; then continue; fi
    enough "$gone" && break
    mv -- "$name" "$work/file" 2>/dev/null || {
      note "$1/$name can't be removed"
      continue
    }
    if unused "$work/file"; then
      rm -f "$work/file" && gone=$((gone + 1)) && printf 'gpuci-clean file %s\n' "$1/$name"
    else
      mv -f -- "$work/file" "$name"
    fi
  done
}

end=$(($(date +%s) + 60))
if cd jobs 2>/dev/null; then
  # shellcheck disable=SC2012 # find can't sort by age; names are checked, and each is looked at again
  ls -1t | clean_jobs
  for name in .incoming.*; do
    if [ -d "$name" ] && older "$name" day; then rm -rf "$name"; fi
  done
  cd ..
fi
for folder in trees nodes; do
  if cd "$folder" 2>/dev/null; then
    # shellcheck disable=SC2012
    ls -1A | clean_files "$folder"
    cd ..
  fi
done
exit 0
