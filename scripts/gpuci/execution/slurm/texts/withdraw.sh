# shellcheck shell=sh
# withdraw SHARED NAME...: a job that did not begin by now is not to begin.
cd -- "$1/jobs" || exit 3
shift
for name; do
  mkdir "$name/claim" 2>/dev/null && printf 'withdrawn\n' >"$name/claim/job" && rm -f -- "$name/pull-auth"
done
exit 0
