"""What a mail says, whatever has happened to it on its way: MIME parts, encodings, line ends, format=flowed. No I/O."""

from __future__ import annotations

import email
import email.header
import email.utils
import re
from collections.abc import Iterator
from email.message import Message

from msgspec import Struct

_PREFIXES = re.compile(r"(?:\s*\[[^\]]*\])+")
_VERSION = re.compile(r"v(\d+)(?:\.(\d+))?|PATCHv(\d+)(?:\.(\d+))?", re.IGNORECASE)
_NUMBER = re.compile(r"(\d{1,4})/(\d{1,4})")
_REPLY = re.compile(r"(?:re|aw|sv|fwd?|antw)(?:\[\d+\])?:", re.IGNORECASE)
_DIFF = re.compile(r"^(?:diff --git .+|--- \S.*\n\+\+\+ \S.*\n@@ .+)$", re.MULTILINE)
_OWN_MAIL = re.compile(r"From [0-9a-f]{40} ")
"""How git format-patch begins."""
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

    @property
    def prefix(self) -> str:
        """`[RFC PATCH v2 3/5]`, or empty."""
        match = _PREFIXES.match(self.subject)
        return match[0] if match else ""

    @property
    def title(self) -> str:
        return self.subject[len(self.prefix) :].strip()

    @property
    def version(self) -> tuple[int, int]:
        """(2, 1) for v2.1; without one it is the first."""
        match = next((match for word in re.split(r"[\s\[\]]+", self.prefix) if (match := _VERSION.fullmatch(word))), None)
        return (int(match[1] or match[3]), int(match[2] or match[4] or 0)) if match else (1, 0)

    @property
    def number(self) -> tuple[int, int] | None:
        """(3, 5) for 3/5, (0, 5) for a cover letter, None if the patch has none."""
        match = _NUMBER.search(self.prefix)
        return (int(match[1]), int(match[2])) if match else None

    @property
    def is_reply(self) -> bool:
        return bool(_REPLY.match(self.subject.lstrip()))

    @property
    def is_patch(self) -> bool:
        return not self.is_reply and bool(self.prefix) and bool(_DIFF.search(self.text))

    @property
    def sent(self) -> float:
        """Seconds since the epoch, 0 if nobody can tell."""
        parsed = email.utils.parsedate_tz(self.date)
        return float(email.utils.mktime_tz(parsed)) if parsed else 0.0

    @property
    def base(self) -> str:
        """The commit that it names as its base, or empty."""
        match = _BASE.search(self.text)
        return match[1] if match else ""


def parse(raw: bytes) -> list[Mail]:
    """The mail, or those that were attached to it as they are: forwarded, or as files of git format-patch."""
    message = email.message_from_bytes(raw)
    found = [mail for attached in _attached(message) for mail in parse(attached)]
    return found or [_mail(message)]


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
    )


def _id(text: str) -> str:
    match = re.search(r"<([^<>\s]+)>", text)
    return match[1] if match else ""


def _header(message: Message, name: str) -> str:
    """Decoded, on one line. Plain UTF-8 is against the rules there, and common."""
    value = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    decoded = ""
    for part, charset in email.header.decode_header(str(value).encode("utf-8", "surrogateescape").decode("utf-8", "replace")):
        decoded += part if isinstance(part, str) else _decode(part, charset or "raw-unicode-escape")
    return " ".join(decoded.split())


def _decode(data: bytes, charset: str) -> str:
    """What is said to be of a charset that it is not, is kept byte by byte."""
    for name in dict.fromkeys([charset if charset != "us-ascii" else "utf-8", "utf-8"]):
        try:
            return data.decode(name)
        except (LookupError, UnicodeDecodeError):
            pass
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
    return part.get_content_type() in ("text/x-patch", "text/x-diff") or (part.get_filename() or "").endswith((".patch", ".diff"))


def _attached(message: Message) -> Iterator[bytes]:
    """Whole mails."""
    for part in _leaves(message):
        if part.get_content_type() == "message/rfc822":
            yield from (inner.as_bytes() for inner in part.get_payload() if isinstance(inner, Message))
        elif _is_patch_file(part) and part is not message and _OWN_MAIL.match(text := _text(part)):
            yield text.partition("\n")[2].encode("utf-8", "surrogateescape")


def _texts(message: Message) -> Iterator[str]:
    for part in _leaves(message):
        if part.get_content_type() in ("text/plain", "message/rfc822") or _is_patch_file(part):
            yield _text(part)


def _text(part: Message) -> str:
    payload = part.get_payload(decode=True)
    text = _decode(payload if isinstance(payload, bytes) else b"", part.get_content_charset() or "utf-8")
    # Line ends of the transport, not of the source, if all of them are.
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        text = text.replace("\r\n", "\n")
    if part.get_param("format") == "flowed":
        text = _unflowed(text, str(part.get_param("delsp", "")).lower() == "yes")
    return text


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
