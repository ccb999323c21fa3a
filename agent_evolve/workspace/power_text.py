"""What the text of a file has an agent run, fetch or open, line by line.

Signs, not proof: a text can always be put so that no pattern sees what it asks for. What hides in
plain ways (invisible characters, upper case, HTML and JSON escapes, wide letters, comments, fences
inside fences) is seen.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote


class Found(NamedTuple):
    """One thing that a file may do: the line it stands on (1-based, 0 for the whole file), its
    kind, what it is compared by, and how a person reads it."""

    line: int
    kind: str
    key: str
    text: str


_LINE_END = re.compile(r"\r\n|\n|\r")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(/))")
_FENCE = re.compile(r"[\s>*+\-]*(?:\d{1,9}[.)]\s+)?(`{3,}|~{3,})\s*(.*)")
_SHELL = re.compile(
    r"!|(?:bash|zsh|fish|k?sh|csh|shell|console|shell-?session|sh-session|terminal|powershell|pwsh"
    r"|ps1|bat|batch|cmd|dos)(?![\w+-])"
)
_PROMPT = re.compile(r"(?:\$|>|%|PS[^>]{0,80}>)\s+")
_SPAN = re.compile(r"`[^`]+`|\bBash\([^()`]+\)")

_INJECTED = re.compile(r"!`[^`]+`")
"""A command that Claude Code runs when it loads the skill, before the model reads it."""
_INTERPRETER = r"(?:(?:ba|z|da|k|c|fi)?sh|python[\d.]*|node|deno|bun|perl|ruby|php|pwsh|powershell)"
_PIPED = re.compile(rf"\|&?\s*(?:sudo\s+|env\s+)?(?:[\w./~-]{{0,200}}/)?{_INTERPRETER}\b", re.I)
_EXECUTES = re.compile(
    rf"""\b{_INTERPRETER}(?:\.exe)?\s+-(?:\w{{0,4}}[cer]|-?(?:eval|print|command|encodedcommand))\b
    | \bcmd(?:\.exe)?\s+/[ck]\b
    | \beval\s*["'($`] | \bexec\s*\( | \bexecfile\b | \bcompile\s*\(.{{0,200}}['"]exec['"]
    | \bsubprocess\s*\. | \b(?:import|from)\s+(?:subprocess|pty|ctypes)\b | \bpopen\s*\(
    | \bos\s*\.\s*(?:system|popen|exec\w*|spawn\w*|posix_spawn\w*)\b | \bpty\.spawn\b
    | \bcreate_subprocess_ | \b__import__\s*\( | \bimport_module\s*\( | \brunpy\b
    | \b(?:pickle|marshal)\s*\.\s*loads?\b
    | \bchild_process\b | \b(?:exec|spawn)(?:File)?(?:Sync)?\s*\( | \bnew\s+Function\s*\(
    | \bvm\s*\.\s*runIn | \bDeno\s*\.\s*(?:Command|run)\b | \bRuntime\.getRuntime\b
    | \bProcessBuilder\b | \b(?:Invoke-Expression|Start-Process|iex)\b
    | \bbase64\s+(?:-d|--decode)\b | \bsource\s+<\( | \bsudo\s+[\w/-]
    | \bchmod\s+(?:[ugoa]*\+[rwst]*x|0?[0-7]*[1357][0-7]*\b) | \bcrontab\b | \bosascript\b
    | \bmkfifo\b | \bnohup\s""",
    re.I | re.X,
)
_FETCHES = re.compile(
    r"""\b(?:curl|wget|wget2|aria2c|Invoke-WebRequest|Invoke-RestMethod|iwr|irm)(?:\.exe)?\b
    | \b(?:requests|httpx|aiohttp|session)\s*\.\s*
        (?:get|post|put|patch|delete|head|options|request|stream|Session|Client\w*|AsyncClient)\s*\(
    | \b(?:import|from)\s+(?:requests|httpx|aiohttp|urllib\d?|socket|ftplib|smtplib|paramiko
        |websockets?|http\.client)\b
    | \burllib\d?\s*\.\s*request\b | \burl(?:open|retrieve)\s*\( | \bHTTPS?Connection\s*\(
    | \bsocket\s*\.\s*(?:socket|create_connection)\b | \bfetch\s*\(\s*[^)\s] | \bXMLHttpRequest\b
    | \b(?:new\s+)?(?:WebSocket|EventSource)\s*\( | \bsendBeacon\b | \baxios\b
    | \bhttps?\s*\.\s*(?:get|request)\s*\( | \bnet\s*\.\s*(?:connect|createConnection)\b
    | \b(?:WebClient|DownloadString|DownloadFile|Start-BitsTransfer)\b | \bcertutil\b
    | \bgit\s+(?:clone|pull|fetch|push|submodule|ls-remote|remote\s+(?:add|set-url))\b
    | \b(?:pip[\d.]*|pipx|uv|poetry|conda|mamba|npm|pnpm|yarn|bun|gem|cargo|brew|apt|apt-get|apk|dnf
        |yum|pacman|choco|winget|snap)\s+(?:-\S{1,40}\s+){0,5}(?:pip\s+)?(?:install|add|i|download|dlx)\b
    | \bgo\s+(?:get|install)\s+\S+\.\S | \b(?:npx|uvx|bunx)\s+[\w@-]
    | \b(?:docker|podman)\s+(?:pull|run)\b | /dev/(?:tcp|udp)/
    | \b(?:ssh|scp|rsync|sftp|ftp|nc|ncat|netcat|socat|telnet)\s+(?:-[\w-]|\S+[@:.]\S|[\d$"'])""",
    re.I | re.X,
)
_URL = re.compile(
    r"""(?P<scheme>[a-z][a-z0-9+.-]{1,15}):[\\/]{2}(?P<rest>(?:\[[\da-f:.]+\])?[^\s<>"'`|^\[\]]*)
    | \b(?P<inline>(?:data|javascript|vbscript):[^\s<>"'`\])]{3,})
    | (?:\]\(|["'=])\s*//(?P<relative>[\w.-]+\.[^\s<>"'`)\]]+)
    | (?<![\w./@-])(?P<www>www\.[\w-]+\.[^\s<>"'`)\]]+)
    | (?<![\w./:@-])(?P<remote>git@[\w.-]+:[^\s<>"'`)\]]+)""",
    re.I | re.X,
)
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2028\u2029\u3164\uffa0")


def decode(data: bytes) -> str:
    """The text of a file, what is not UTF-8 shown as U+FFFD."""
    return data.decode("utf-8", "replace")


def lines(text: str) -> list[str]:
    """The lines of a text, as a person sees them: escapes resolved, letters in their plain form,
    invisible characters left out."""
    return [_plain(line) for line in _LINE_END.split(text)]


def powers(data: bytes, *, script: bool) -> Iterator[Found]:
    """All that stands in a text. In a ``script`` there are no fences: it runs as a whole."""
    shell = False
    fence = ""
    for number, line in enumerate(_joined(lines(decode(data))), 1):
        marks = _FENCE.match(line) if _may_be_fence(line) and not script else None
        if marks and fence and not marks[2].strip() and marks[1].startswith(fence):
            fence, shell = "", False
            continue
        if marks and not shell and "`" not in marks[2]:
            fence, shell = marks[1], _is_shell(marks[2])
            yield from _executed(number, marks[2])
        elif shell and (command := _squeezed(_PROMPT.sub("", line.strip(), count=1))):
            if not command.startswith("#"):
                yield Found(number, "executes", command, command)
        else:
            yield from _executed(number, line)
        for key in _clauses(_FETCHES, line):
            yield Found(number, "fetches", key, key)
        for key, shown in _urls(line):
            yield Found(number, "url", key, shown)


def _executed(number: int, line: str) -> Iterator[Found]:
    keys = [match[0] for match in _INJECTED.finditer(line)]
    keys += _clauses(_EXECUTES, line)
    if not line.lstrip().startswith("|"):  # a row of a table
        keys += _clauses(_PIPED, line)
    for key in dict.fromkeys(keys):
        yield Found(number, "executes", key, key)


def _clauses(sign: re.Pattern[str], line: str) -> list[str]:
    """What a sign is compared by: the code or the tool pattern around it, else its whole line."""
    if not sign.search(line):
        return []
    spans = [_squeezed(span).strip("`") for span in _SPAN.findall(line) if sign.search(span)]
    return list(dict.fromkeys(spans)) or [_squeezed(line)]


def _is_shell(info: str) -> bool:
    return _SHELL.match(info.casefold().lstrip("{. ")) is not None


def _joined(given: list[str]) -> Iterator[str]:
    """Lines with what they continue on after a backslash, and empty ones in its place, so that
    every line keeps its number. A fence continues nothing."""
    held: list[str] = []
    for line, after in zip(given, [*given[1:], "```"], strict=True):
        held.append(line.removesuffix("\\"))
        if line.endswith("\\") and not _may_be_fence(line) and not _may_be_fence(after):
            continue
        yield " ".join(held)
        yield from [""] * (len(held) - 1)
        held = []


def _may_be_fence(line: str) -> bool:
    return "```" in line or "~~~" in line


def _urls(line: str) -> Iterator[tuple[str, str]]:
    for match in _URL.finditer(line):
        scheme = (match["scheme"] or "https").lower()
        if inline := match["inline"]:
            yield inline, inline
            continue
        rest = match["rest"] or match["relative"] or match["www"] or match["remote"]
        rest = rest.replace("\\", "/").lstrip("/" if scheme != "file" else "")
        rest = _unbalanced(rest.rstrip(".,;:!?*_"))
        place = re.split(r"[?#]", rest, maxsplit=1)[0]
        netloc, _, path = place.partition("/")
        host = _host(netloc.rpartition("@")[2])
        web = "http" if scheme in ("http", "https", "ws", "wss") else scheme
        key = f"{web}://{host}/{path.rstrip('/')}"
        yield key, f"{scheme}://{host}{rest[len(netloc) :]}"


def _unbalanced(text: str) -> str:
    """Without the bracket that closes a Markdown link around the URL."""
    end = text.find(")")
    return text[:end] if end >= 0 and "(" not in text[:end] else text


def _host(netloc: str) -> str:
    """Lower case, in the ASCII form of international names, which no look-alike shares."""
    labels = unquote(netloc).lower().removesuffix(".").split(".")
    return ".".join(
        label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in labels
    )


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _plain(line: str) -> str:
    if "&" in line:
        line = html.unescape(line).replace("\n", " ")
    if "\\" in line:
        line = _ESCAPE.sub(_unescaped, line)
    if line.isascii() and line.isprintable():
        return line
    return unicodedata.normalize("NFKC", line.translate(_VISIBLE)).translate(_VISIBLE)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return match[3] if code is None else chr(int(code, 16)).replace("\n", " ").replace("\r", " ")


class _Visible(dict[int, str | None]):
    """For ``str.translate``: drops what has no picture; a tab stays."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        hidden = unicodedata.category(char) in ("Cc", "Cf", "Cs") and char != "\t"
        hidden = hidden or char in _FILLERS or unicodedata.name(char, "").startswith("VARIATION SE")
        self[code] = None if hidden else char
        return self[code]


_VISIBLE = _Visible()
