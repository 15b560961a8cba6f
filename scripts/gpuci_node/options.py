"""Options of a project that would break our runs are taken away, and named; all others are kept.

Runs in the test process (Python >= 3.8, standard library only). Pure.
"""

import re
from typing import List, Sequence, Tuple

# Options with a value: `--name value`, `--name=value`, `-nvalue`, `-n value`.
_WITH_VALUE = {
    "-n",
    "--numprocesses",
    "--maxprocesses",
    "--max-worker-restart",
    "--dist",
    "--tx",
    "--px",
    "--rsyncdir",
    "--rsyncignore",
    "--maxfail",
    "--lfnf",
    "--last-failed-no-failures",
    "--cov-fail-under",
    "--basetemp",
    "--rootdir",
    "--confcutdir",
}
_FLAGS = {
    "-x",
    "--exitfirst",
    "-f",
    "--looponfail",
    "-d",
    "--lf",
    "--last-failed",
    "--ff",
    "--failed-first",
    "--nf",
    "--new-first",
    "--sw",
    "--stepwise",
    "--sw-skip",
    "--stepwise-skip",
    "--sw-reset",
    "--stepwise-reset",
    "--pdb",
    "--trace",
    "--co",
    "--collect-only",
}
_FLAG_CLUSTER = re.compile(r"-[vqslx]*x[vqslx]*\Z")  # argparse reads -xvs as -x -v -s


def neutralise(args: Sequence[str]) -> Tuple[List[str], List[str]]:
    """Split arguments into those kept and those taken away (an option with its value as one text)."""
    kept: List[str] = []
    taken: List[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            kept += [arg, *rest]
            break
        if arg in _WITH_VALUE:
            taken.append(" ".join([arg, *rest[:1]]))
            del rest[:1]
        elif arg in _FLAGS or arg.partition("=")[0] in _WITH_VALUE or _glued_number(arg):
            taken.append(arg)
        elif _FLAG_CLUSTER.match(arg):
            taken.append("-x")
            kept.append(arg.replace("x", ""))
        else:
            kept.append(arg)
    return kept, taken


def _glued_number(arg: str) -> bool:
    return re.match(r"-n(\d+|auto|logical)\Z", arg) is not None
