# shellcheck shell=sh
# cancel ID...: end these jobs.
exec scancel -- "$@"
