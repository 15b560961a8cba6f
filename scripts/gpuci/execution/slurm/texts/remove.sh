# shellcheck shell=sh
# remove SHARED OWNER NAME...: job directories whose results are here, if they are still ours.
cd -- "$1/jobs" || exit 3
owner=$2
shift 2
for name; do
  for file in "$name"/owner.*; do :; done
  read -r holder <"$file" && [ "$holder" = "$owner" ] && rm -rf -- "$name"
done
exit 0
