"""Which of many mails are the series: the newest version, its patches in order, nothing missing. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from harness.errors import UserError
from harness.series.mail import Mail


class Thread(Struct, frozen=True):
    title: str
    cover: Mail | None
    patches: tuple[Mail, ...]
    notes: tuple[str, ...]
    """What was found and left out, for people."""

    @property
    def base(self) -> str:
        """The commit that it was written for, if it says so."""
        mails = [*filter(None, [self.cover]), *self.patches]
        return next((mail.base for mail in mails if mail.base), "")


class _Version(Struct, frozen=True):
    """Mails of one thread with the same version in their subjects."""

    version: tuple[int, int]
    total: int
    """0 if the patches are not counted: they are in the order of the mails."""
    mails: tuple[Mail, ...]

    @property
    def cover(self) -> Mail | None:
        return next((mail for mail in self.mails if mail.number and mail.number[0] == 0), None)

    @property
    def patches(self) -> list[Mail]:
        return [mail for mail in self.mails if mail is not self.cover]

    @property
    def title(self) -> str:
        return (self.cover or self.mails[0]).title

    @property
    def name(self) -> str:
        version = ".".join(str(part) for part in self.version if part)
        return f"v{version} of '{self.title}'"

    def is_kin(self, other: _Version) -> bool:
        """Whether both are versions of one series: the same thread, title, or a patch that has the same title in both."""
        threads = {mail.thread for mail in self.mails} & {mail.thread for mail in other.mails}
        titles = {mail.title.casefold() for mail in self.mails} & {mail.title.casefold() for mail in other.mails}
        return bool(threads - {""} or titles)


def choose(mails: Sequence[Mail], where: str, wanted: str = "") -> Thread:
    """The newest version of the series among `mails`; of several series, the one that the mail with the id `wanted` is of.

    Raises UserError if there is none, more than one, or one that is not whole; `where` says of what."""
    by_id = {mail.message_id or str(number): mail for number, mail in enumerate(mails)}
    unique = [msgspec.structs.replace(mail, thread=_root(mail, by_id)) for mail in by_id.values()]
    versions = _versions(unique)
    if wanted:
        versions = [one for one in versions if any(wanted in (mail.message_id, mail.thread) for mail in one.mails)] or versions
    if not versions:
        raise UserError(f"{where} holds no patch", hint="mails with [PATCH] in their subject and a diff, that are no replies")
    series = _clusters(versions, _Version.is_kin)
    if len(series) > 1:
        told = ", ".join(f"{one[0].name} ({one[0].mails[0].message_id or 'no message id'})" for one in series)
        raise UserError(f"{where} holds {len(series)} series: {told}", hint="one at a time: add #MESSAGE-ID of the one you want")
    (kin,) = series
    newest = max(kin, key=lambda one: (one.version, max(mail.sent for mail in one.mails)))
    chosen, notes = _in_order(newest, where)
    if others := [one.name for one in kin if one is not newest]:
        notes.append(f"{newest.name} is the newest; left out: {', '.join(sorted(others))}")
    used = {id(mail) for one in kin for mail in one.mails}
    rest = [mail for mail in unique if id(mail) not in used]
    with_diff = sum(mail.is_reply and "\ndiff --git " in mail.text for mail in rest)
    if rest:
        notes.append(f"{len(rest)} other mails left out" + (f", {with_diff} of them replies with a diff" if with_diff else ""))
    return Thread(newest.title, newest.cover, tuple(chosen), tuple(notes))


def _root(mail: Mail, by_id: Mapping[str, Mail]) -> str:
    """Of the thread, from mail to mail."""
    seen = {mail.message_id}
    while mail.thread not in seen and mail.thread in by_id:
        mail = by_id[mail.thread]
        seen.add(mail.message_id)
    return mail.thread


def _versions(mails: Sequence[Mail]) -> list[_Version]:
    covers = [mail for mail in mails if not mail.is_reply and mail.number and mail.number[0] == 0]
    patches = [mail for mail in mails if mail.is_patch and mail not in covers]
    numbered = [*covers, *(mail for mail in patches if mail.number)]
    if not numbered:
        return [_Version((1, 0), 0, tuple(patches))] if patches else []
    groups: dict[tuple[str, tuple[int, int], int], list[Mail]] = {}
    for mail in numbered:
        assert mail.number
        # Who sends without a thread at least counts alike.
        thread = mail.thread if any(mail.thread == other.thread for other in numbered if other is not mail) else ""
        groups.setdefault((thread, mail.version, mail.number[1]), []).append(mail)
    threads = {mail.thread for mail in numbered}
    alone = [mail for mail in patches if not mail.number and mail.thread not in threads]
    return [
        *(_Version(version, total, tuple(found)) for (_, version, total), found in groups.items()),
        *(_Version(mail.version, 0, (mail,)) for mail in alone),
    ]


def _clusters(versions: Sequence[_Version], kin: Callable[[_Version, _Version], bool]) -> list[list[_Version]]:
    found: list[list[_Version]] = []
    for version in versions:
        near = [cluster for cluster in found if any(kin(version, other) for other in cluster)]
        found = [cluster for cluster in found if cluster not in near]
        found.append([version, *(other for cluster in near for other in cluster)])
    return found


def _in_order(version: _Version, where: str) -> tuple[list[Mail], list[str]]:
    """The patches 1 to n. Of two with the same number, the one of who sent most of the others."""
    if not version.total:
        return list(version.mails), []
    by_number: dict[int, list[Mail]] = {}
    for mail in version.patches:
        assert mail.number
        by_number.setdefault(mail.number[0], []).append(mail)
    if missing := [number for number in range(1, version.total + 1) if number not in by_number]:
        told = ", ".join(f"{number}/{version.total}" for number in missing)
        raise UserError(f"{where}: {version.name} misses {told}", hint="save the whole thread, or --series lore:MESSAGE-ID")
    senders = Counter(mail.author for mail in version.mails)
    chosen, notes = [], []
    for number in range(1, version.total + 1):
        several = sorted(by_number[number], key=lambda mail: senders[mail.author], reverse=True)
        if len(several) > 1 and senders[several[0].author] == senders[several[1].author]:
            ids = " and ".join(mail.message_id or "a mail without id" for mail in several)
            raise UserError(f"{where}: {version.name} has {number}/{version.total} more than once: {ids}", hint="take one out")
        chosen.append(several[0])
        notes += [f"{number}/{version.total} of {mail.author} left out: another one sent the series" for mail in several[1:]]
    return chosen, notes
