# shellcheck shell=sh
# adopt SHARED NAME HOLDER OWNER: take a job directory over from a runner that is gone; only one can.
cd -- "$1/jobs/$2" || exit 3
umask 077
for file in owner.*; do :; done
read -r holder <"$file"
[ "$holder" = "$3" ] || exit 1
number=${file#owner.}
number=$((${number#0} + 1))
new=$(mktemp .owner.XXXXXX) || exit 3
printf '%s\n' "$4" >"$new" || exit 3
ln -- "$new" "$(printf 'owner.%02d' "$number")" 2>/dev/null
taken=$?
rm -f -- "$new"
exit "$taken"
