# shellcheck shell=sh
# queue NAMES: what of these jobs is not over yet.
exec squeue -h -u "$(id -un)" -n "$1" -o '%i|%j|%T|%r|%N|%k'
