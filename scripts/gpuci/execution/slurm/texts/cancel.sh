# cancel ID...: end these jobs.
exec scancel -- "$@"
