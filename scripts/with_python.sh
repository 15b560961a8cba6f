#!/bin/sh
# with_python.sh python3 -I PROGRAM ...: becomes that program, under python3 or a newer one on PATH (>= 3.10).
# The first line of every step of our actions. `exec` keeps the step's process id: the runner signals no other
# (actions/runner, ProcessInvoker.cs). A runner brings its own Python: ubuntu-latest, which is 26.04, has 3.14
# (actions/runner-images).
set -u

new_enough() {
    "$1" -I -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1
}

wanted=$1
shift
for candidate in "$wanted" python3.14 python3.13 python3.12 python3.11 python3.10; do
    if new_enough "$candidate"; then
        exec "$candidate" "$@"
    fi
done
found=$("$wanted" -I -c 'import platform; print("is Python", platform.python_version())' 2>/dev/null)
echo "::error title=gpuci::$wanted ${found:-is missing}, and gpuci needs Python 3.10 or newer on the runner: install it, or use actions/setup-python before this step"
exit 2
