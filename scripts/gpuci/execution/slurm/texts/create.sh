# shellcheck shell=sh
# create SHARED TREE NODE OWNER NAME...: make job directories, whole or not at all, from a tar on standard input.
# Behind one of another runner no more are made, so that of two that begin at once one gets all.
shared=$1 tree=$2 node=$3 owner=$4
shift 4
umask 077
cd -- "$shared/jobs" || exit 3
incoming=$(mktemp -d .incoming.XXXXXX) || exit 3
trap 'rm -rf -- "$incoming"' EXIT
trap 'exit 4' HUP INT PIPE TERM
tar -xf - -C "$incoming" || exit 3
: >"$incoming/now" || exit 3
met=''
for name; do
  new=$incoming/$name
  if [ -n "$met" ] && [ ! -d "$name" ]; then
    printf 'left %s\n' "$name"
    continue
  fi
  mkdir "$new/out" && ln "../trees/$tree.tar" "$new/tree.tar" && ln "../nodes/$node.pyz" "$new/gpuci_node.pyz" &&
    printf '%s\n' "$owner" >"$new/owner.01" && printf '%012d' 0 >"$new/lease" || exit 3
  if mv -T -- "$new" "$name" 2>/dev/null; then
    printf 'created %s\n' "$name"
  elif [ -d "$name" ]; then
    for file in "$name"/owner.*; do :; done
    read -r holder <"$file"
    age=$(($(stat -c %Y "$incoming/now") - $(stat -c %Y "$name/lease")))
    read -r token <"$name/token"
    [ "$holder" = "$owner" ] || met=1
    printf 'exists %s %s %s %s\n' "$name" "$holder" "$age" "$token"
  else
    exit 3
  fi
done
