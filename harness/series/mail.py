"""What a mail says, whatever has happened to it on its way: MIME parts, encodings, line ends, format=flowed. No I/O."""

from __future__ import annotations

import codecs
import contextlib
import email
import email.errors
import email.header
import email.utils
import re
from collections.abc import Iterator
from email.message import Message

import msgspec
from msgspec import Struct

from harness.series.commit import OWN

_PREFIXES = re.compile(r"(?:\s*\[[^\]]*\])+")
_WORDS = re.compile(r"[\s,\[\]]+")
_VERSION = re.compile(r"(?:PATCH)?v(\d{1,4})(?:\.(\d{1,4}))?", re.IGNORECASE)
_NUMBER = re.compile(r"(\d{1,4})/(\d{1,4})")
_REPLY = re.compile(r"(?:re|aw|sv|fwd?|antw)(?:\[\d+\])?:", re.IGNORECASE)
_DIFF = re.compile(r"^(?:diff --git .+|--- \S.*\n\+\+\+ \S.*\n@@ .+)$", re.MULTILINE)
_OWN_MAIL = re.compile(r"From [0-9a-f]{40} ")
"""How git format-patch begins."""
_ENCODED = re.compile(r"=\?[^?\s]+\?[bBqQ]\?[^?]*\?=")
_BLANK = re.compile(r"[ \t\r\n]+")
_NO_CHARSETS = ("utf-7", "punycode", "idna", "undefined", "unicode-escape", "raw-unicode-escape", "unicode_escape")
_BASE = re.compile(r"^base-commit: ([0-9a-f]{12,64})$", re.MULTILINE)


class Mail(Struct, frozen=True):
    message_id: str
    thread: str
    """Message id of the mail that the thread began with, as far as this one knows."""
    author: str
    """As the mail has it, decoded: name and address."""
    date: str
    subject: str
    text: str
    """Bytes that are no UTF-8 are kept as surrogates."""
    ours: bool
    """Written by us."""

    @property
    def prefix(self) -> str:
        """`[RFC PATCH v2 3/5]`, or empty."""
        match = _PREFIXES.match(self.subject)
        return match[0] if match else ""

    @property
    def title(self) -> str:
        return self.subject[len(self.prefix) :].strip()

    @property
    def words(self) -> list[str]:
        """Of the prefix."""
        return _WORDS.split(self.prefix)

    @property
    def version(self) -> tuple[int, int]:
        """(2, 1) for v2.1; without one it is the first."""
        match = next((match for word in self.words if (match := _VERSION.fullmatch(word))), None)
        return (int(match[1]), int(match[2] or 0)) if match else (1, 0)

    @property
    def number(self) -> tuple[int, int] | None:
        """(3, 5) for 3/5, (0, 5) for a cover letter, None if the patch has none."""
        match = next((match for word in reversed(self.words) if (match := _NUMBER.fullmatch(word))), None)
        return (int(match[1]), int(match[2])) if match else None

    @property
    def again(self) -> bool:
        """Sent once more as it was."""
        return "RESEND" in (word.upper() for word in self.words)

    @property
    def sender(self) -> str:
        """Address."""
        return email.utils.parseaddr(self.author)[1].lower()

    @property
    def is_reply(self) -> bool:
        return bool(_REPLY.match(self.subject.lstrip()))

    @property
    def is_patch(self) -> bool:
        return not self.is_reply and bool(self.prefix) and bool(_DIFF.search(self.text))

    @property
    def sent(self) -> float:
        """Seconds since the epoch, 0 if nobody can tell."""
        with contextlib.suppress(ValueError, OverflowError):
            if parsed := email.utils.parsedate_tz(self.date):
                return float(email.utils.mktime_tz(parsed))
        return 0.0

    @property
    def base(self) -> str:
        """The commit that it names as its base, or empty."""
        match = _BASE.search(self.text)
        return match[1] if match else ""

    @property
    def plain(self) -> bytes:
        """As a mail that has nothing to be decoded but its headers."""
        lines = f"From: {self.author}\nDate: {self.date}\nSubject: {self.subject}\n"
        lines += "Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n"
        return f"{lines}\n{self.text}".encode("utf-8", "surrogateescape")


def parse(raw: bytes) -> list[Mail]:
    """The mail, or those that were attached to it as they are: forwarded, or as files of git format-patch. What is attached to a
    patch is no patch of its own, what is attached to a reply is a reply. Raises RecursionError for what is nested too deep."""
    message = email.message_from_bytes(raw)
    whole = _mail(message)
    found = [] if whole.is_patch else [mail for attached in _attached(message) for mail in parse(attached)]
    if not whole.is_reply:
        return found or [whole]
    return [whole, *(msgspec.structs.replace(mail, thread=whole.thread, subject=f"Re: {mail.subject}") for mail in found)]


def _mail(message: Message) -> Mail:
    message_id = _id(_header(message, "Message-Id"))
    ancestors = [_id(word) for word in f"{_header(message, 'References')} {_header(message, 'In-Reply-To')}".split()]
    return Mail(
        message_id=message_id,
        thread=next(filter(None, ancestors), message_id),
        author=_header(message, "From"),
        date=_header(message, "Date"),
        subject=_header(message, "Subject"),
        text="\n".join(_texts(message)),
        ours=OWN in message,
    )


def _id(text: str) -> str:
    match = re.search(r"<([^<>\s]+)>", text)
    return match[1] if match else ""


def _header(message: Message, name: str) -> str:
    """Decoded, on one line. Plain UTF-8 is against the rules there, and common."""
    value = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    data = str(value).encode("utf-8", "surrogateescape")
    text = _decode(data, "utf-8", "latin-1").encode("utf-8", "replace").decode()
    # Between two encoded words a blank is none.
    text = re.sub(r"(\?=)[ \t\r\n]+(?==\?[^?\s]+\?[bBqQ]\?)", r"\1", text)
    return _BLANK.sub(" ", _ENCODED.sub(_decode_word, text)).strip(" ")


def _decode_word(word: re.Match[str]) -> str:
    try:
        ((data, charset),) = email.header.decode_header(word[0])
    except (email.errors.HeaderParseError, ValueError):
        return word[0]
    text = _decode(data, charset or "utf-8") if isinstance(data, bytes) else data
    return text.encode("utf-8", "replace").decode()


def _decode(data: bytes, *charsets: str) -> str:
    """What is of none of these charsets is kept byte by byte."""
    for name in (*charsets, "utf-8"):
        with contextlib.suppress(LookupError, ValueError):
            codec = codecs.lookup("utf-8" if name == "us-ascii" else name)
            if codec.name not in _NO_CHARSETS:
                return data.decode(codec.name)
    return data.decode("utf-8", "surrogateescape")


def _leaves(message: Message) -> Iterator[Message]:
    if message.get_content_type() == "message/rfc822":
        yield message
    elif message.is_multipart():
        for part in message.get_payload():
            if isinstance(part, Message):
                yield from _leaves(part)
    else:
        yield message


def _is_patch_file(part: Message) -> bool:
    return part.get_content_type() in ("text/x-patch", "text/x-diff") or _file_name(part).endswith((".patch", ".diff"))


def _file_name(part: Message) -> str:
    with contextlib.suppress(LookupError, ValueError):
        return part.get_filename() or ""
    return ""


def _attached(message: Message) -> Iterator[bytes]:
    """Whole mails."""
    for part in _leaves(message):
        if part.get_content_type() == "message/rfc822":
            yield from (inner.as_bytes() for inner in part.get_payload() if isinstance(inner, Message))
        elif _is_own_mail(part, message):
            yield _text(part).partition("\n")[2].encode("utf-8", "surrogateescape")


def _is_own_mail(part: Message, message: Message) -> bool:
    return _is_patch_file(part) and part is not message and bool(_OWN_MAIL.match(_text(part)))


def _texts(message: Message) -> Iterator[str]:
    for part in _leaves(message):
        if (part.get_content_type() == "text/plain" or _is_patch_file(part)) and not _is_own_mail(part, message):
            yield _text(part)


def _parameter(part: Message, name: str) -> str:
    with contextlib.suppress(LookupError, ValueError):
        return str(part.get_param(name, "")).lower()
    return ""


def _text(part: Message) -> str:
    payload = part.get_payload(decode=True)
    text = _decode(payload if isinstance(payload, bytes) else b"", _parameter(part, "charset") or "utf-8")
    # Line ends of the transport, not of the source, if all of them are.
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        text = text.replace("\r\n", "\n")
    return _unflowed(text, _parameter(part, "delsp") == "yes") if _parameter(part, "format") == "flowed" else text


def _unflowed(text: str, delete_space: bool) -> str:
    """RFC 3676: a line that ends with a space goes on in the next one, and one more space may stand before a line. Many who claim
    to send this do not: a diff in which no line is stuffed is taken as it is."""
    diff = text[match.start() :] if (match := _DIFF.search(text)) else ""
    context = [line for line in diff.splitlines() if line.startswith(" ")]
    if context and not all(line.startswith("  ") for line in context):
        return text
    lines: list[str] = []
    open_ended = False
    for line in text.split("\n"):
        line = line.removeprefix(" ")
        if open_ended:
            lines[-1] += line
        else:
            lines.append(line)
        open_ended = line.endswith(" ") and line != "-- "
        if open_ended and delete_space:
            lines[-1] = lines[-1][:-1]
    return "\n".join(lines)
