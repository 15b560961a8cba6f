# shellcheck shell=sh
# submit SHARED NAMES [NAME KEY]...: submit each job that the queue does not know by its key, and that did not
# begin before the queue forgot it (NAMES: all, joined by commas).
shared=$1 names=$2
shift 2
# SBATCH_* would go before the script's own lines; SSH_* says where we come from, and jobs inherit it.
for variable in $(env | sed -n 's/^\(SBATCH_[A-Za-z0-9_]*\)=.*/\1/p; s/^\(SSH_[A-Z_]*\)=.*/\1/p'); do
  unset "$variable"
done
known=$(squeue -h -u "$(id -un)" -t all -n "$names" -o '%j|%i|%k' 2>&1) || {
  printf 'queue %s\n' "$known" | tr '\n' '\036'
  exit 0
}
while [ $# -gt 1 ]; do
  name=$1 key=$2
  shift 2
  read -r claim 2>/dev/null <"$shared/jobs/$name/claim/job" || claim=
  case $claim,$known in
    withdrawn,*"key=$key"* | ,*"key=$key"* | [0-9]*) printf 'known %s\n' "$name" ;;
    *)
      answer=$(sbatch --parsable "$shared/jobs/$name/job.sh" 2>&1 </dev/null)
      printf 'answer %s %s %s\n' "$name" "$?" "$(printf '%s' "$answer" | tr '\n' '\036')"
      ;;
  esac
done
