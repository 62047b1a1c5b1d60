"""Mails as they arrive, and which of them are the series."""

from __future__ import annotations

import base64
import email
import quopri
from email.message import Message
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.series import commit, mail, thread
from harness.series.mail import Mail
from tests import fake

_LINES = ["-int main;", "+int first; /* Grüße */", " ", " ", " ", " ", " int last;"]
DIFF = "diff --git a/main.c b/main.c\nindex 1111111..2222222 100644\n--- a/main.c\n+++ b/main.c\n@@ -1,6 +1,6 @@\n"
DIFF += "".join(f"{line}\n" for line in _LINES)
BODY = f"Why it is done.\n\nSigned-off-by: A <a@example.org>\n---\n main.c | 2 +-\n 1 file changed\n\n{DIFF}-- \n2.39.2\n"


def raw(subject: str = "[PATCH] main: first", body: bytes | str = BODY, **headers: str) -> bytes:
    """A mail; names of headers with _ for -."""
    fields = {"From": "A <a@example.org>", "Date": "Mon, 6 Nov 2023 01:08:54 +0900", "Subject": subject, **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\n" for name, value in fields.items())
    return lines.encode() + b"\n" + (body.encode() if isinstance(body, str) else body)


def one(data: bytes) -> Mail:
    (found,) = mail.parse(data)
    return found


def made(found: Mail) -> commit.Commit:
    return commit.read([("it", found.plain)], scissors=True)[0]


PLAIN = {"Content_Type": "text/plain; charset=UTF-8", "Content_Transfer_Encoding": "8bit"}
REFERENCE = made(one(raw(**PLAIN)))


def flowed(text: str) -> str:
    """As a careful mail program does it: stuffed, no space at the end of a line, long lines soft."""
    lines = []
    for line in text.split("\n"):
        line = line if line == "-- " else line.rstrip(" ")
        line = f" {line}" if line.startswith((" ", "From ", ">")) else line
        if len(line) > 20 and " " in line[10:]:
            cut = line.index(" ", 10) + 1
            lines.append(line[:cut])
            line = f" {line[cut:]}" if line[cut:].startswith((" ", "From ", ">")) else line[cut:]
        lines.append(line)
    return "\n".join(lines)


ENCODED = {
    "8bit": raw(**PLAIN),
    "nothing said of it": raw(),
    "quoted-printable": raw(
        body=quopri.encodestring(BODY.encode()),
        Content_Type="text/plain; charset=utf-8",
        Content_Transfer_Encoding="quoted-printable",
    ),
    "base64 with CRLF": raw(
        body=base64.encodebytes(BODY.replace("\n", "\r\n").encode()),
        Content_Type='text/plain; charset="UTF-8"',
        Content_Transfer_Encoding="base64",
    ),
    "latin-1": raw(body=BODY.encode("latin-1"), Content_Type="text/plain; charset=iso-8859-1", Content_Transfer_Encoding="8bit"),
    "CRLF": raw(**PLAIN).replace(b"\n", b"\r\n"),
    "a charset that nobody knows": raw(Content_Type="text/plain; charset=x-klingon", Content_Transfer_Encoding="8bit"),
    "said to be flowed, and is not": raw(
        Content_Type="text/plain; charset=UTF-8; format=flowed", Content_Transfer_Encoding="8bit"
    ),
    "footer of a list": raw(body=BODY + "_______________________________________________\nlist mailing list\n", **PLAIN),
}


@pytest.mark.parametrize("name", ENCODED)
def test_what_it_says_does_not_change_on_its_way(name: str) -> None:
    assert made(one(ENCODED[name])) == REFERENCE


def test_flowed() -> None:
    body = flowed(BODY)
    assert body != BODY
    found = made(one(raw(body=body, Content_Type="text/plain; charset=UTF-8; format=flowed")))
    # A careful sender takes away the spaces at the end of lines, and git does not miss them.
    assert found.diff.replace("\n\n", "\n \n").replace("\n\n", "\n \n") == REFERENCE.diff
    assert found.message == REFERENCE.message


def test_headers() -> None:
    subject = "=?utf-8?q?=5BPATCH_v3_02/17=5D_tracing=3A?=\n =?utf-8?b?IFdvcnTDvGJlcmdhbmc=?="
    found = one(raw(subject, From="=?iso-8859-1?q?J=FCrgen?= <j@example.org>"))
    assert (found.title, found.version, found.number) == ("tracing: Wortübergang", (3, 0), (2, 17))
    assert found.author == "Jürgen <j@example.org>"
    assert made(found).author == "Jürgen"
    assert one(raw("[PATCH] häßlich")).title == "häßlich"
    assert one(raw("[PATCH]\n folded\n\ttwice")).title == "folded twice"


@pytest.mark.parametrize(
    ("subject", "version", "number"),
    [
        ("[PATCH] a", (1, 0), None),
        ("[PATCH 6.12 005/123] a", (1, 0), (5, 123)),
        ("[RFC PATCH v2 bpf-next 3/5] a", (2, 0), (3, 5)),
        ("[PATCHv4 1/2] a", (4, 0), (1, 2)),
        ("[PATCH v2.1 3/5] a", (2, 1), (3, 5)),
        ("[list] [PATCH V7 0/9] a", (7, 0), (0, 9)),
        ("v3 1/2 a", (1, 0), None),
        ("[PATCH 5.10/5.15/6.1 1/2] a", (1, 0), (1, 2)),
        ("[RFC,v3,1/2] a", (3, 0), (1, 2)),
        (f"[PATCH v{'9' * 5000} 1/1] a", (1, 0), (1, 1)),
    ],
)
def test_prefix(subject: str, version: tuple[int, int], number: tuple[int, int] | None) -> None:
    found = one(raw(subject))
    assert (found.version, found.number) == (version, number)
    assert found.title.endswith("a")


def mixed(*parts: tuple[str, str]) -> bytes:
    """A mail of several parts: (headers, body)."""
    boundary = "----=_cut"
    body = "".join(f"--{boundary}\n{headers}\n\n{text}\n" for headers, text in parts) + f"--{boundary}--\n"
    return raw("[PATCH] main: first", body, MIME_Version="1.0", Content_Type=f'multipart/mixed; boundary="{boundary}"')


def test_diff_as_an_attachment() -> None:
    message, _, diff = BODY.partition("diff --git")
    plain = "Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit"
    patch = "Content-Type: text/x-patch; charset=UTF-8; name=a.patch\nContent-Disposition: attachment"
    html = "Content-Type: text/html", "<p>diff --git a/evil b/evil</p>"
    assert made(one(mixed((plain, message), html, (patch, f"diff --git{diff}")))) == REFERENCE


def test_whole_mails_as_attachments() -> None:
    inner = f"From {'0' * 40} Mon Sep 17 00:00:00 2001\n{raw('[PATCH 2/2] inner', **PLAIN).decode()}"
    patch = "Content-Type: application/octet-stream; name=0001.patch\nContent-Disposition: attachment; filename=0001.patch"
    assert [found.title for found in mail.parse(mixed(("Content-Type: text/plain", "see below"), (patch, inner)))] == ["inner"]
    forwarded = "Content-Type: message/rfc822", raw("[PATCH] forwarded").decode()
    assert [found.title for found in mail.parse(mixed(("Content-Type: text/plain", "see below"), forwarded))] == ["forwarded"]


def test_in_body_headers_and_scissors() -> None:
    body = f"I said:\n\n-- >8 --\nFrom: B <b@example.org>\nSubject: [PATCH] other\n\n{BODY}"
    found = made(one(raw(body=body, **PLAIN)))
    assert (found.author, found.subject) == ("B", "other")
    assert found.message == REFERENCE.message


def test_base_commit() -> None:
    assert one(raw(body=f"{BODY}base-commit: {'a1' * 20}\n")).base == "a1" * 20
    assert one(raw()).base == ""


def test_binary_hunks_and_what_follows_them(tmp_path: Path) -> None:
    fake.repository(tmp_path)
    for data in (bytes(range(256)), bytes(range(255, -1, -1))):
        (tmp_path / "blob").write_bytes(data)
        fake.git(tmp_path, "add", "--all")
        fake.git(tmp_path, "commit", "--quiet", "--message=blob")
    binary = fake.git(tmp_path, "diff", "--binary", "HEAD~1", "HEAD") + "\n\n"
    mode = "diff --git a/other.c b/other.c\nold mode 100644\nnew mode 100755\n"
    for diff in (DIFF + binary, binary + DIFF, binary, DIFF + mode, DIFF + mode + binary, mode):
        assert made(one(raw(body=f"Why.\n---\n{diff}-- \n2.39.2\n", **PLAIN))).diff == diff
    assert made(one(raw(body=f"Why.\n---\n{DIFF}\nodd\n{mode}-- \n2.39.2\n", **PLAIN))).diff == DIFF + mode


def test_removed_line_that_looks_like_a_signature() -> None:
    diff = DIFF.replace("@@ -1,6 +1,6 @@", "@@ -1,7 +1,6 @@").replace(" int last;\n", " int last;\n-- \n")
    assert made(one(raw(body=f"Why.\n---\n{diff}-- \n2.39.2\n", **PLAIN))).diff == diff


CHARSETS = ("utf-8", "us-ascii", "iso-8859-1", "undefined", "punycode", "idna", "utf-7", "unicode_escape", "a\0b", "x-klingon")


@given(
    st.sampled_from(CHARSETS),
    st.sampled_from("bq"),
    st.text('ab=%?_ <>@,;"\\é\0', max_size=20),
    st.sampled_from(["8bit", "base64", "quoted-printable", "x-uuencode", "odd"]),
    st.sampled_from(
        ["Mon, 6 Nov 99999 01:08:54 +0900", "Nov 1", f"1 Jan {'9' * 30} 0:0:0 -9999", "Mon, 6 Nov 2023 01:08:54 +2300"]
    ),
)
def test_any_header_is_read(charset: str, encoding: str, text: str, transfer: str, date: str) -> None:
    word = f"=?{charset}?{encoding}?{text}?="
    headers = {"Content_Type": f"text/plain; charset*=undefined''{text}; name*={charset}''{text}; format={word}"}
    data = raw(f"[PATCH] {word} {text}", From=f"{word} <a@x>", Content_Transfer_Encoding=transfer, **headers)
    for found in mail.parse(data.replace(b"Mon, 6 Nov 2023 01:08:54 +0900", date.encode())):
        assert isinstance(found.sent, float)
        assert not any("\ud800" <= letter <= "\udfff" for letter in found.subject + found.author)


def test_nested_for_ever() -> None:
    deep = b"Content-Type: message/rfc822\n\n" * 3000
    with pytest.raises(RecursionError):
        mail.parse(deep)


@given(st.binary(max_size=300))
def test_any_bytes_are_some_mail(data: bytes) -> None:
    for found in mail.parse(data):
        assert isinstance(found.version, tuple)
        assert isinstance(found.is_patch, bool)


@given(st.binary(max_size=200))
def test_any_body_is_read(data: bytes) -> None:
    for headers in ({"Content_Type": "text/plain; format=flowed"}, {"Content_Transfer_Encoding": "base64"}):
        mail.parse(raw(body=data, **headers))


# Which of them are the series.


def series(
    total: int, version: int = 1, root: str = "cover", title: str = "topic", sender: str = "A <a@example.org>", cover: bool = True
) -> list[bytes]:
    """A cover letter and patches, in a thread, each with an id of its own."""
    prefix = "PATCH" + (f" v{version}" if version > 1 else "")
    found = []
    if cover:
        found.append(raw(f"[{prefix} 0/{total}] {title}", "Hello.\n", Message_Id=f"<{root}@x>", From=sender))
    for number in range(1, total + 1):
        ids = {"Message_Id": f"<{root}-{number}@x>"} | ({"In_Reply_To": f"<{root}@x>"} if cover else {})
        found.append(raw(f"[{prefix} {number}/{total}] {title}: {number}", From=sender, **ids))
    return found


def chosen(mails: list[bytes], wanted: str = "") -> thread.Thread:
    return thread.choose([found for data in mails for found in mail.parse(data)], "the box", wanted)


def test_order_is_that_of_the_numbers() -> None:
    found = chosen(series(3)[::-1])
    assert [one.number for one in found.patches] == [(1, 3), (2, 3), (3, 3)]
    assert (found.title, found.cover is not None, found.notes) == ("topic", True, ())
    assert [one.number for one in chosen(series(2, cover=False)).patches] == [(1, 2), (2, 2)]


def test_newest_version() -> None:
    second = series(2, version=2, root="second")
    second[0] = second[0].replace(b"Message-Id", b"In-Reply-To: <cover@x>\nMessage-Id")
    for mails in (series(3) + second, second + series(3), series(3) + series(2, version=2, root="unthreaded")):
        found = chosen(mails)
        assert len(found.patches) == 2
        assert {one.version for one in found.patches} == {(2, 0)}
        assert "v1 of 'topic'" in found.notes[0]


def test_missing_patch_is_named() -> None:
    mails = series(5)
    with pytest.raises(UserError, match=r"v1 of 'topic' misses 2/5, 4/5"):
        chosen([mails[0], mails[1], mails[3], mails[5]])
    # An older version that is whole does not stand in for it.
    with pytest.raises(UserError, match=r"v2 of 'topic: 2' misses 1/2"):
        chosen(series(2) + series(2, version=2, root="second")[2:])


def test_reply_with_a_diff_is_no_patch() -> None:
    reply = raw("Re: [PATCH 2/3] topic: 2", f"How about\n\n{BODY}", In_Reply_To="<cover-2@x>", Message_Id="<reply@x>")
    quick = raw("[PATCH] fix for the above", In_Reply_To="<cover-2@x>", Message_Id="<quick@x>")
    found = chosen([*series(3), reply, quick])
    assert [one.message_id for one in found.patches] == ["cover-1@x", "cover-2@x", "cover-3@x"]
    assert found.notes == ("2 other mails left out, 2 of them with a diff",)


def test_same_number_from_somebody_else() -> None:
    other = raw("[PATCH 2/3] topic: 2", From="B <b@example.org>", In_Reply_To="<cover@x>", Message_Id="<other@x>")
    found = chosen([other, *series(3)])
    assert found.patches[1].message_id == "cover-2@x"
    assert found.notes == ("2/3 of B <b@example.org> left out: another one sent the series",)
    own = raw("[PATCH 2/3] topic: 2", In_Reply_To="<cover@x>", Message_Id="<own@x>")
    with pytest.raises(UserError, match="2/3 more than once"):
        chosen([*series(3), own])


def test_versions_of_a_single_patch() -> None:
    first = raw("[PATCH] alone", Message_Id="<one@x>")
    second = raw("[PATCH v2] alone", Message_Id="<two@x>", In_Reply_To="<one@x>")
    other = raw("[PATCH] fixup", Message_Id="<three@x>", In_Reply_To="<two@x>", From="B <b@example.org>")
    for mails in ([first, second, other], [other, second, first]):
        found = chosen(mails)
        assert [one.message_id for one in found.patches] == ["two@x"]
        assert "1 other mails left out" in found.notes[-1]


def test_nobody_else_can_take_a_series_over() -> None:
    others = [
        raw("[PATCH v9 1/1] trust me", Message_Id="<evil@x>", In_Reply_To="<cover@x>", From="B <b@example.org>"),
        raw("[PATCH 0/1] alternative", "Hm.\n", Message_Id="<alt@x>", In_Reply_To="<cover@x>", From="B <b@example.org>"),
        raw("[PATCH 1/1] alternative", Message_Id="<alt-1@x>", In_Reply_To="<alt@x>", From="B <b@example.org>"),
    ]
    found = chosen([*others, *series(3)])
    assert [one.message_id for one in found.patches] == ["cover-1@x", "cover-2@x", "cover-3@x"]
    reply = mixed(("Content-Type: text/plain", "How about"), ("Content-Type: text/x-patch; name=a.patch", f"From {'0' * 40} x\n"))
    reply = reply.replace(b"Subject: [PATCH] main: first", b"Subject: Re: [PATCH 1/3] topic: 1\nIn-Reply-To: <cover-1@x>")
    attached = raw("[PATCH v7 1/1] topic", **PLAIN)
    found = chosen([reply.replace(b"x\n\n", b"x\n" + attached, 1), *series(3)])
    assert len(found.patches) == 3


def test_two_series_of_one_sender_in_one_thread() -> None:
    second = [
        data.replace(b"<iproute@x>\n", b"<iproute@x>\nReferences: <cover@x>\n") for data in series(2, root="iproute", title="ip")
    ]
    with pytest.raises(UserError, match="2 series"):
        chosen(series(3) + second)


def test_each_mail_of_a_series_leads_to_the_newest_version() -> None:
    second = series(2, version=2, root="second")
    second[0] = second[0].replace(b"Message-Id", b"In-Reply-To: <cover@x>\nMessage-Id")
    for wanted in ("cover@x", "cover-1@x", "second@x", "second-2@x"):
        assert [one.message_id for one in chosen(series(3) + second, wanted).patches] == ["second-1@x", "second-2@x"]


def test_resent() -> None:
    again = [data.replace(b"[PATCH", b"[PATCH RESEND").replace(b"2023", b"2024") for data in series(2, root="again")]
    for data in (series(2) + again, again + series(2)):
        assert [one.message_id for one in chosen(data).patches] == ["again-1@x", "again-2@x"]


def test_the_same_mail_twice() -> None:
    assert len(chosen(series(2) + series(2)).patches) == 2


def test_two_series() -> None:
    both = series(2) + series(3, root="other", title="elsewhere")
    with pytest.raises(UserError, match=r"2 series: .*topic.*elsewhere"):
        chosen(both)
    assert len(chosen(both, "other@x").patches) == 3
    assert len(chosen(both, "cover-1@x").patches) == 2
    with pytest.raises(UserError, match="2 series"):
        chosen([*series(2), raw("[PATCH] alone", Message_Id="<alone@x>")])


def test_without_numbers_the_order_is_that_of_the_mails() -> None:
    assert [one.title for one in chosen([raw("[PATCH] b"), raw("[PATCH] a")]).patches] == ["b", "a"]


@pytest.mark.parametrize("mails", [[], [raw("hello", "you\n")], [raw("Re: [PATCH] a")], [raw("[PATCH 0/2] cover", "only\n")]])
def test_nothing(mails: list[bytes]) -> None:
    with pytest.raises(UserError, match=r"no patch|misses"):
        chosen(mails)


def test_message_parses_as_it_was_written() -> None:
    """Our own form, read by another reader."""
    written: Message = email.message_from_bytes(REFERENCE.mail(2, 5, "").partition(b"\n")[2])
    assert written["Subject"] == "[PATCH 2/5] main: first"
    assert Path(REFERENCE.file_name(2)).name == "0002-main-first.patch"
