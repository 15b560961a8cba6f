"""The short tracebacks that pytest prints: their error in one line, without the frames of pytest. Pure.

Runs on the compute node and in test processes (Python >= 3.8, standard library only).
"""

import re

_LOADING = "ImportError while loading conftest "
_FRAME = re.compile(r"(\S.*):(\d+): in ")
# Whoever imports a file, and parses it: none of them says what is wrong with it.
_IMPORTING = re.compile(r"[/\\](?:_pytest|pluggy|importlib)[/\\]|<frozen importlib|[/\\]ast\.py$")
_ERROR = re.compile(r"^E   (\S.*)$", re.MULTILINE)
_PLACE = re.compile(r'^E +File "(?:[^"\n]*[/\\])?([^"/\\\n]+)", line (\d+)', re.MULTILINE)


def error_in(text: str) -> str:
    """The last exception of a traceback in one line, with the place in the source if it is no Python; or "".

    pytest begins the lines of an exception with `E`; a SyntaxError's place stands in lines before it.
    """
    frames, found = text, ""
    for match in re.finditer(r"(?:^E .*\n?)+", text, re.MULTILINE):
        frames = match[0]
    error = _ERROR.search(frames)
    if error:
        found = error[1].strip()
        place = _PLACE.search(frames, 0, error.start())
        if place:
            found += " (%s, line %s)" % place.groups()
    return found


def conftest_error(said: str) -> str:
    """Where and why a conftest.py could not be loaded, as pytest says it at the end of `said`; or ""."""
    _before, loading, text = said.rpartition(_LOADING)
    error = error_in(text) if loading else ""
    if not error or (error.endswith(")") and "(conftest.py, line " in error):
        return error
    places = [match for match in map(_FRAME.match, text.splitlines()) if match and _is_conftest(match[1])]
    return "%s:%s: %s" % (places[-1][1], places[-1][2], error) if places else "conftest.py: " + error


def _is_conftest(path: str) -> bool:
    return re.split(r"[/\\]", path)[-1] == "conftest.py"


def from_the_error(text: str) -> str:
    """The traceback without its first frames, those of who imports and parses a file."""
    lines = text.splitlines(keepends=True)
    start = 0
    for number, line in enumerate(lines):
        frame = _FRAME.match(line)
        if frame and _IMPORTING.search(frame[1]):
            continue
        if frame or not line.startswith(" "):
            start = number
            break
    return "".join(lines[start:])
