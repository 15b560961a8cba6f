"""Reads a step's log and files as the runner of GitHub Actions does, to see what it would obey.

Source: actions/runner 2.336: ActionCommand.cs (both forms of a command), ActionCommandManager.cs (stopping),
OutputManager.cs (matchers see each line that is no command, stopped or not), FileCommandManager.cs. Where the
runner is stricter than this, it is on the safe side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

COMMANDS = frozenset(
    {
        "add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group",
        "internal-set-repo-path", "notice", "remove-matcher", "save-state", "set-env", "set-output",
        "stop-commands", "warning",
    }
)  # fmt: skip
# What the setup actions' published matchers take, a pattern a line, as far as our lines could meet it.
MATCHERS: dict[str, Sequence[str]] = {
    "python": (r'^\s*File\s"(.*)",\sline\s(\d+),\sin\s(.*)$', r"^\s*raise\s(.*)\('(.*)'\)$"),
    "tsc": (r"^([^\s].*)[(:](\d+)[,:](\d+)(?:\):\s+|\s+-\s+)(error|warning|info)\s+TS(\d+)\s*:\s*(.*)$",),
    "eslint-compact": (r"^(.+):\sline\s(\d+),\scol\s(\d+),\s(Error|Warning|Info)\s-\s(.+)\s\((.+)\)$",),
    "eslint-stylish": (r"^\s*([^\s].*)$", r"^\s+(\d+):(\d+)\s+(error|warning|info)\s+(.*)\s\s+(.*)$"),
    "go": (r"^\s*(.+\.go):(?:(\d+):(\d+):)? (.*)",),
    "csc": (
        r"^([^\s].*)\((\d+)(?:,\d+|,\d+,\d+)?\):\s+(error|warning)\s+([a-zA-Z]+\d+):\s*(.*?)\s+\[(.*?)\]$",
    ),
    "java": (r"^(.*\.java):(\d+): (warning|error): (.*)$",),
    "php": (r"^(.*): (.+) in (.*\.php) on line (\d+)$",),
    "rustc": (r"^(warning|error)(\[.*\])?: (.*)$", r"^\s+--> (.*):(\d+):(\d+)$"),
}


@dataclass(frozen=True)
class Command:
    """A line that the runner obeys."""

    name: str
    properties: dict[str, str]
    data: str


@dataclass
class Log:
    """What a log did: commands in order, (owner, line) of each problem matcher that fired, plain lines."""

    commands: list[Command] = field(default_factory=list)
    matched: list[tuple[str, str]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    def named(self, *names: str) -> list[Command]:
        """The commands with one of these names."""
        return [command for command in self.commands if command.name in names]

    def beside(self, *names: str) -> list[Command]:
        """The commands with another name."""
        return [command for command in self.commands if command.name not in names]


class Runner:
    """Feed it lines. It starts with every matcher of MATCHERS, as in a job that used all setup actions."""

    def __init__(self) -> None:
        self.log = Log()
        self._stopped_by = ""
        self._matchers = {owner: [re.compile(one) for one in lines] for owner, lines in MATCHERS.items()}
        self._at = dict.fromkeys(MATCHERS, 0)

    def line(self, line: str) -> None:
        """One line of standard output or standard error."""
        command = parse_colons(line, self._known()) or parse_hashes(line, self._known())
        if command and self._obey(command):
            return
        self.log.text.append(line)
        self._match(line)

    def _known(self) -> frozenset[str]:
        return COMMANDS | ({self._stopped_by.lower()} if self._stopped_by else set())

    def _obey(self, command: Command) -> bool:
        if self._stopped_by:
            if command.name != self._stopped_by.lower():
                return False
            self._stopped_by = ""
        elif command.name == "stop-commands":
            self._stopped_by = command.data
        elif command.name == "remove-matcher":
            self._matchers.pop(command.properties.get("owner", ""), None)
        self.log.commands.append(command)
        return True

    def _match(self, line: str) -> None:
        plain = re.sub(r"\x1b\[[0-9;]*m?", "", line)
        for owner, patterns in self._matchers.items():
            at = self._at[owner]
            if not patterns[at].search(plain):
                at = 0
            seen = at + 1 if patterns[at].search(plain) else 0
            if seen == len(patterns):
                self.log.matched.append((owner, line))
            self._at[owner] = seen % len(patterns)


def read_log(text: str) -> Log:
    """What the runner makes of a log; its lines end at CR, LF or both."""
    runner = Runner()
    for line in re.split(r"\r\n|\r|\n", text):
        runner.line(line)
    return runner.log


def parse_colons(line: str, known: frozenset[str]) -> Command | None:
    """`::name key=value,key=value::data`, behind white space."""
    match = re.match(r"\s*::(.*?)::(.*)", line, re.DOTALL)
    if not match:
        return None
    name, _, properties = match[1].partition(" ")
    if name.lower() not in known:
        return None
    pairs = (pair.split("=", 1) for pair in properties.strip().split(",") if "=" in pair)
    told = {key: _unescape(value, ":%3A", ",%2C") for key, value in pairs if value}
    return Command(name.lower(), told, _unescape(match[2]))


def parse_hashes(line: str, known: frozenset[str]) -> Command | None:
    """`##[name key=value;key=value]data`, anywhere in a line."""
    match = re.search(r"##\[(.*?)\](.*)", line, re.DOTALL)
    if not match:
        return None
    name, _, properties = match[1].partition(" ")
    if name.lower() not in known:
        return None
    pairs = (pair.split("=", 1) for pair in properties.split(";") if "=" in pair)
    told = {key: _unescape(value, ";%3B", "]%5D") for key, value in pairs if value}
    return Command(name.lower(), told, _unescape(match[2], ";%3B", "]%5D"))


def _unescape(text: str, *more: str) -> str:
    for pair in ("\r%0D", "\n%0A", *more, "%%25"):
        text = text.replace(pair[1:], pair[0])
    return text


def read_values(text: str) -> dict[str, str]:
    """GITHUB_OUTPUT or GITHUB_ENV; raises ValueError where the runner fails the step."""
    values: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            name, _, value = line.partition("=")
        elif heredoc >= 0:
            name, _, delimiter = line.partition("<<")
            value = "\n".join(_until(lines, delimiter)).removesuffix("\r")
        elif line:
            raise ValueError(f"invalid format {line!r}")
        else:
            continue
        values[name] = value
    return values


def _until(lines: Iterator[str], delimiter: str) -> list[str]:
    told: list[str] = []
    for line in lines:
        if line.removesuffix("\r") == delimiter:
            return told
        told.append(line)
    raise ValueError(f"no delimiter {delimiter!r}")
