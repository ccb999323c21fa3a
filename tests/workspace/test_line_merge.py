"""A text handed back changes the lines that differ and leaves the bytes of all others."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_evolve.workspace.line_merge import decode, dominant_eol, encode, merge, split_lines

LINE = st.text(st.sampled_from("abé \r"), max_size=3).map(lambda line: line.rstrip("\r").encode())
LINES = st.lists(LINE, max_size=10)
TEXTS = st.builds(
    lambda lines, end: decode(end.join(lines)), LINES, st.sampled_from([b"\n", b"\r\n"])
)
ENDS = st.sampled_from([b"\n", b"\r\n"])


@st.composite
def files(draw, ends=ENDS):
    """A file of any mix of line ends, with or without a mark and a last end."""
    data = b"".join(line + draw(ends) for line in draw(LINES))
    mark = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return mark + (data if draw(st.booleans()) else data.rstrip(b"\r\n"))


def plain(data: bytes) -> str:
    """What an editor or a model hands back of a file it did not change."""
    return decode(data).removeprefix("\ufeff").replace("\r\n", "\n")


@given(st.binary(max_size=60))
def test_any_bytes_survive_as_text(data):
    assert encode(decode(data)) == data
    assert merge(data, decode(data)) == data
    assert b"".join(split_lines(data)) == data


@given(files())
@example(b"\xef\xbb\xbf")
@example(b"\r\n\n")
def test_a_text_that_was_not_changed_changes_nothing(data):
    assert merge(data, plain(data), keep_last_end=False) == data
    assert merge(data, plain(data)) == data
    if data.strip(b"\xef\xbb\xbf\r\n"):
        assert merge(data, plain(data).rstrip("\n")) == data
        assert merge(data, plain(data).rstrip("\n") + "\n") == data


@given(files(), TEXTS, st.booleans())
def test_the_result_reads_as_the_new_text(data, text, keep):
    wanted = text.replace("\r\n", "\n")
    merged = merge(data, text, keep_last_end=keep)
    assert plain(merged).rstrip("\n") == wanted.rstrip("\n")
    if not keep:
        assert plain(merged) == wanted
    if data.startswith(b"\xef\xbb\xbf"):
        assert merged.startswith(b"\xef\xbb\xbf")


@given(files(), st.integers(0, 9), st.sampled_from(["insert", "change", "delete"]))
def test_one_changed_line_leaves_the_bytes_of_all_others(data, at, kind):
    old = split_lines(data)
    at = min(at, len(old))
    lines = plain(data).split("\n")
    if kind == "insert":
        lines.insert(at, "NEW")
    elif at >= len(old):
        return
    elif kind == "change":
        lines[at] = "NEW"
    else:
        del lines[at]
    new = split_lines(merge(data, "\n".join(lines), keep_last_end=False))
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    contents = [line.removeprefix(mark).rstrip(b"\r\n") for line in old]
    fresh = [line for line in new if b"NEW" in line]
    assert len(fresh) == (kind != "delete")
    if len(set(contents)) == len(contents) and kind == "change":
        others = [line for number, line in enumerate(new) if number != at]
        assert others == [line for number, line in enumerate(old) if number != at]


@given(files(ends=st.just(b"\r\n")), TEXTS)
def test_a_windows_file_stays_one(data, text):
    merged = merge(data, text, keep_last_end=False)
    if dominant_eol(data) == b"\r\n":
        assert merged.count(b"\n") == merged.count(b"\r\n")


@pytest.mark.parametrize(
    ("old", "text", "new"),
    [
        (b"a\r\nb\nc\r\n", "a\nB\nc\n", b"a\r\nB\nc\r\n"),
        (b"a\r\nb\nc\r\n", "a\nb\nx\nc\n", b"a\r\nb\nx\r\nc\r\n"),
        (b"a\nb", "a\nb\nc", b"a\nb\nc"),
        (b"a\n\n\n", "b", b"b\n\n\n"),
        (b"a", "b\n\n", b"b"),
        (b"a\n", "", b""),
        (b"", "a\r\nb", b"a\r\nb"),
        (b"\xef\xbb\xbfa\r\nb\r\n", "\ufeffa\nc\n", b"\xef\xbb\xbfa\r\nc\r\n"),
    ],
)
def test_examples(old, text, new):
    assert merge(old, text) == new
