# shellcheck shell=sh
# prepare SHARED: make the folders of a run and say what is here. Empty: below the user's home.
umask 077
shared=${1:-$HOME/.local/share/gpuci}
refused() {
  printf '%s\n' "$shared" "$(id -un)"
  exit 3
}
LC_ALL=C mkdir -p -- "$shared/jobs" "$shared/trees" "$shared/nodes" || refused
cd -- "$shared" || refused
printf 'shared=%s\n' "$(pwd)"
printf 'host=%s\n' "$(uname -n)"
for program in sbatch squeue scontrol scancel sha256sum tar; do
  command -v "$program" >/dev/null || printf 'missing=%s\n' "$program"
done
