#!/bin/sh
# Sourced by ../gpuci and by test: sets $python to a Python >= 3.10, or says what is missing and exits.
# One with ensurepip goes first (Debian's has none until python3-venv is installed). Give candidates
# that are preferred to PATH's in $prefer.

try_pythons() {
    for candidate in ${prefer:+"$prefer"} python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do
        if "$candidate" -I -c "import sys; assert sys.version_info >= (3, 10); $1" >/dev/null 2>&1; then
            # shellcheck disable=SC2034 # for the file that sources this one
            python=$candidate
            return 0
        fi
    done
    return 1
}

if ! try_pythons "import ensurepip" && ! try_pythons "pass"; then
    echo "error: gpuci needs Python 3.10 or newer; none of python3, python3.14 ... python3.10 on PATH is" >&2
    exit 2
fi
