"""Which of many mails are the series: the newest version, its patches in order, nothing missing. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from harness.errors import UserError
from harness.series.mail import Mail

_NAMED = 10
"""How many of the missing are named."""


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
    """Mails that count together."""

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
    def first(self) -> Mail:
        return self.cover or self.mails[0]

    @property
    def sender(self) -> str:
        """Who sent most of it."""
        return Counter(mail.sender for mail in self.mails).most_common(1)[0][0]

    @property
    def sent(self) -> float:
        return max(mail.sent for mail in self.mails)

    @property
    def name(self) -> str:
        return f"v{'.'.join(str(part) for part in self.version if part)} of '{self.first.title}'"

    def is_kin(self, other: _Version) -> bool:
        """Whether both are versions of one series: of one sender, and in one thread, or with the same title, or mostly with the
        same patches."""
        if self.sender != other.sender:
            return False
        titles, others = ({mail.title.casefold() for mail in one.patches} for one in (self, other))
        return (
            (self.first.thread == other.first.thread != "" and self.version != other.version)
            or self.first.title.casefold() == other.first.title.casefold()
            or 2 * len(titles & others) > min(len(titles), len(others))
        )


def choose(mails: Sequence[Mail], where: str, wanted: str = "") -> Thread:
    """The newest version of the series among `mails`; of several series, of the one that the mail with the id `wanted` is in.

    Raises UserError if there is none, more than one, or one that is not whole; `where` says of what."""
    by_id = {mail.message_id or str(number): mail for number, mail in enumerate(mails)}
    unique = [msgspec.structs.replace(mail, thread=_root(mail, by_id)) for mail in by_id.values()]
    versions = _versions(unique)
    if not versions:
        raise UserError(f"{where} holds no patch", hint="mails with [PATCH] in their subject and a diff, that are no replies")
    series = _clusters(versions)
    if wanted:
        ids = [{id for one in kin for mail in one.mails for id in (mail.message_id, mail.thread)} for kin in series]
        series = [kin for kin, known in zip(series, ids, strict=True) if wanted in known] or series
    if len(series) > 1:
        told = ", ".join(f"{kin[0].name} ({kin[0].first.message_id or 'no message id'})" for kin in series)
        raise UserError(f"{where} holds {len(series)} series: {told}", hint="one at a time: add #MESSAGE-ID of the one you want")
    (kin,) = series
    newest = max(kin, key=lambda one: (one.version, one.sent))
    chosen, notes = _in_order(newest, where)
    if others := [one.name for one in kin if one is not newest]:
        notes.append(f"{newest.name} is the newest; left out: {', '.join(sorted(others))}")
    used = {id(mail) for one in kin for mail in one.mails}
    rest = [mail for mail in unique if id(mail) not in used]
    if rest:
        diffs = sum("\ndiff --git " in mail.text for mail in rest)
        notes.append(f"{len(rest)} other mails left out" + (f", {diffs} of them with a diff" if diffs else ""))
    return Thread(newest.first.title, newest.cover, tuple(chosen), tuple(notes))


def _root(mail: Mail, by_id: Mapping[str, Mail]) -> str:
    """Of the thread, from mail to mail."""
    seen = {mail.message_id}
    while mail.thread not in seen and mail.thread in by_id:
        mail = by_id[mail.thread]
        seen.add(mail.message_id)
    return mail.thread


def _versions(mails: Sequence[Mail]) -> list[_Version]:
    patches = [mail for mail in mails if mail.is_patch]
    covers = [mail for mail in mails if not mail.is_reply and mail.number and mail.number[0] == 0 and mail not in patches]
    if patches and not covers and not any(mail.number or mail.message_id for mail in patches):
        return [_Version((1, 0), 0, tuple(patches))]  # as git format-patch writes them
    threads = Counter(mail.thread for mail in [*covers, *patches])
    groups: dict[tuple[object, ...], list[Mail]] = {}
    for mail in [*covers, *patches]:
        # Who sends without a thread at least counts alike.
        where = (mail.thread,) if mail.thread and threads[mail.thread] > 1 else ("", mail.sender if mail.message_id else "")
        alone = () if mail.number else (mail.message_id, len(groups))
        total = mail.number[1] if mail.number else 0
        groups.setdefault((where, mail.version, mail.again, total, alone), []).append(mail)
    found = [_Version(key[1], key[3], tuple(group)) for key, group in groups.items()]  # type: ignore[arg-type]
    return [one for one in found if not _is_follow_up(one, found, mails)]


def _is_follow_up(one: _Version, found: Sequence[_Version], mails: Sequence[Mail]) -> bool:
    """A patch that somebody puts into the thread of another one's series."""
    thread = one.first.thread
    begun = next((mail for mail in mails if mail.message_id == thread), None)
    counted = [other.sender for other in found if other.first.thread == thread and other.total]
    owner = begun.sender if begun else counted[0] if counted else one.sender
    return (bool(thread) and one.sender != owner) or (not one.total and bool(counted) and begun not in one.mails)


def _clusters(versions: Iterable[_Version]) -> list[list[_Version]]:
    found: list[list[_Version]] = []
    for version in versions:
        near = [cluster for cluster in found if any(version.is_kin(other) for other in cluster)]
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
        told = ", ".join(f"{number}/{version.total}" for number in missing[:_NAMED])
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        hint = "save the whole thread, or --series lore:MESSAGE-ID; a patch without a diff, or in HTML only, is none"
        raise UserError(f"{where}: {version.name} misses {told}{more}", hint=hint)
    senders = Counter(mail.sender for mail in version.mails)
    chosen, notes = [], []
    for number in range(1, version.total + 1):
        several = sorted(by_number[number], key=lambda mail: senders[mail.sender], reverse=True)
        if len(several) > 1 and senders[several[0].sender] == senders[several[1].sender]:
            ids = " and ".join(mail.message_id or "a mail without id" for mail in several)
            raise UserError(f"{where}: {version.name} has {number}/{version.total} more than once: {ids}", hint="take one out")
        chosen.append(several[0])
        notes += [f"{number}/{version.total} of {mail.author} left out: another one sent the series" for mail in several[1:]]
    return chosen, notes
