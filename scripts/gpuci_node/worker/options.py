"""Options of a project that would break our runs are taken away, and named; all others are kept.

Runs in the test process (Python >= 3.8, standard library only). Pure.
"""

import re
from typing import FrozenSet, List, Sequence, Tuple

# Reports of a whole run, which each process would write of its own part.
_REPORTS = {"--cov-report", "--junitxml", "--junit-xml", "--html", "--json-report-file", "--report-log"}
_REPORT_FLAGS = {"--json-report"}
# Options with a value: `--name value`, `--name=value`, `-nvalue`, `-n value`.
_WITH_VALUE = {
    *_REPORTS,
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
    "--max-warnings",
    "--lfnf",
    "--last-failed-no-failures",
    "--cov-fail-under",
    "--basetemp",
    "--rootdir",
    "--confcutdir",
}
_FLAGS = {
    *_REPORT_FLAGS,
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


# What stays for pytest-xdist, where it schedules and reports; `--dist each` would run all on each worker.
OF_XDIST = frozenset({"--dist", "--max-worker-restart", *_REPORTS, *_REPORT_FLAGS} - {"--cov-report"})


def neutralise(args: Sequence[str], keep: FrozenSet[str] = frozenset()) -> Tuple[List[str], List[str]]:
    """Split arguments into those kept and those taken away (an option with its value as one text).

    Options named in `keep` stay.
    """
    kept: List[str] = []
    taken: List[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            kept += [arg, *rest]
            break
        name, _equals, value = arg.partition("=")
        if arg in _WITH_VALUE:
            both = [arg, *rest[:1]]
            del rest[:1]
            if arg in keep and both[-1] != "each":
                kept += both
            else:
                taken.append(" ".join(both))
        elif name in keep and value != "each":
            kept.append(arg)
        elif arg in _FLAGS or name in _WITH_VALUE or _glued_number(arg):
            taken.append(arg)
        elif _FLAG_CLUSTER.match(arg):
            taken.append("-x")
            kept.append(arg.replace("x", ""))
        else:
            kept.append(arg)
    return kept, taken


def _glued_number(arg: str) -> bool:
    return re.match(r"-n(\d+|auto|logical)\Z", arg) is not None
