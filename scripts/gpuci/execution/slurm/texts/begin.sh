# shellcheck shell=sh
# In front of each text: sshd starts no login shell, and many sites put Slurm on PATH in /etc/profile.d.
# shellcheck disable=SC1091 # the login node's own
command -v squeue >/dev/null 2>&1 || ! [ -r /etc/profile ] || . /etc/profile >/dev/null 2>&1
