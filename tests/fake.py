"""A fake kernel tree: a real Makefile, a real merge_config.sh, a compiler that is a shell script for main.c and the real one for
piggy.S. It takes the whole build path through real make in a second.

As in the kernel, vmlinux is an ELF file with a build id, and the image is made from it by `.incbin` in an assembly source that is
always the same."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 12
SUBLEVEL = 99
EXTRAVERSION =

src := $(CURDIR)

tinyconfig:
\t@mkdir -p $(O)
\t@printf 'CONFIG_TINY=y\\n' >$(O)/.config

# Drops what Kconfig does not know, as olddefconfig does, and says nothing.
olddefconfig:
\t@while read -r line; do \\
\t\tname=$${line%%=*}; name=$${name#CONFIG_}; \\
\t\tif [ $$name != NEEDS_MORE ] && grep -qx "config $$name" $(src)/Kconfig; then echo "$$line"; fi; \\
\tdone <$(O)/.config >$(O)/.config.new; mv $(O)/.config.new $(O)/.config

bzImage Image: $(O)/piggy.o
\t@mkdir -p $(O)/arch/x86/boot $(O)/arch/arm64/boot $(O)/include/config
\t@cp $(O)/piggy.o $(O)/arch/x86/boot/bzImage; cp $(O)/piggy.o $(O)/arch/arm64/boot/Image
\t@echo map >$(O)/System.map; echo 6.12.99 >$(O)/include/config/kernel.release

$(O)/vmlinux: $(O)/main.o
\t@cd $(O) && as -o empty.o /dev/null && ld -shared --build-id=sha1 empty.o --format=binary main.o -o vmlinux

$(O)/piggy.o: $(O)/vmlinux
\t@printf '.section .rodata\\n\\t.incbin\\t"vmlinux"\\n' >$(O)/piggy.S
\t@cd $(O) && $(CC) -Wp,-MMD,.piggy.o.d -c -o piggy.o piggy.S

$(O)/main.o: $(src)/main.c
\t@echo "  CC      main.o"
\t@sh $(src)/compile $< $@

modules:
\t@if [ "$(M)" ]; then sh $(src)/external $(M); else echo "  CC [M]  module.o"; fi

headers:
\t@mkdir -p $(O)/usr/include/linux

modules_install:
\t@mkdir -p $(INSTALL_MOD_PATH)/lib/modules/6.12.99/$(INSTALL_MOD_DIR)
"""

COMPILE = """\
#!/bin/sh
# A compiler that copies, warns where the source says WARN, fails where it says ERROR, and runs out of disk where it says FULL.
grep -n WARN "$1" | cut -d: -f1 | while read -r line; do echo "$1:$line:1: warning: as asked [-Wfake]"; done
grep -n ERROR "$1" | cut -d: -f1 | while read -r line; do echo "$1:$line:1: error: as asked"; done
grep -q FULL "$1" && { echo "fatal error: error writing to $2: No space left on device"; exit 1; }
grep -q ERROR "$1" && exit 1
cp "$1" "$2"
"""

EXTERNAL = """\
#!/bin/sh
# Modules from outside of the tree: they fit unless the kernel says that they do not.
test -f "$1/Kbuild" || exit 1
! grep -q OTHER_API "${0%/*}/main.c" || { echo "$1/main.c:7:1: error: as asked"; exit 1; }
"""

MERGE_CONFIG = """\
#!/bin/sh
# merge_config.sh -m -O OUT BASE FRAGMENT...: later lines win.
shift; shift; out=$1; shift
cat "$@" | awk -F= '/^CONFIG_/ { value[$1] = $0 } /^# CONFIG_.* is not set/ { split($0, word, " "); delete value[word[2]] }
END { for (name in value) print value[name] }' >"$out/.config.new"
mv "$out/.config.new" "$out/.config"
"""

KCONFIG = """\
mainmenu "Fake"

config TINY
\tbool "Tiny"

config FTRACE
\tbool "Tracers"

config NEEDS_MORE
\tbool "Needs another"
\tdepends on ABSENT && FTRACE
"""

FILES = {
    "Makefile": MAKEFILE,
    "tools/include/nolibc/nolibc.h": "",
    "Kconfig": KCONFIG,
    "compile": COMPILE,
    "external": EXTERNAL,
    "main.c": "int main;\n\n\n\n\nint last;\n",
    "other.c": "one\ntwo\nthree\n",
    "scripts/kconfig/merge_config.sh": MERGE_CONFIG,
    "tools/testing/selftests/ftrace/test.d/a.tc": "#!/bin/sh\n# description: first\n",
    "tools/testing/selftests/ftrace/test.d/sub/b.tc": "#!/bin/sh\n# description: second\n# flags: instance\n",
}


def kconfig(symbols: Iterable[str]) -> str:
    """The fake tree's Kconfig file, with `symbols` added to it: each of them can be set."""
    more = (f'\nconfig {symbol}\n\tbool "{symbol}"\n' for symbol in symbols)
    return KCONFIG + "".join(more)


def write_tree(directory: Path, changed: Mapping[str, str] | None = None) -> Path:
    """The files of the fake tree below `directory`, some of them `changed`."""
    for name, content in {**FILES, **(changed or {})}.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o755 if content.startswith("#!") else 0o644)
    return directory


def write_tarball(path: Path, extra: dict[str, str] | None = None, compression: str = "gz") -> Path:
    """A tarball of the fake tree, with members that `extra` names in full."""
    tree = write_tree(path.parent / f"{path.name}-content" / "linux-6.12.99")
    with tarfile.open(path, f"w:{compression}") as tar:  # type: ignore[call-overload]
        tar.add(tree, "linux-6.12.99")
        for name, content in (extra or {}).items():
            file = path.parent / "extra"
            file.write_text(content)
            member = tar.gettarinfo(str(file), name)
            member.name = name
            with file.open("rb") as data:
                tar.addfile(member, data)
    return path


def git(directory: Path, *arguments: str) -> str:
    """Run git as a user with a name."""
    identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost"]
    return subprocess.run(
        ["git", "-C", str(directory), *identity, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def repository(directory: Path, changed: Mapping[str, str] | None = None) -> Path:
    """The fake tree, some of its files `changed`, as a git repository with one commit on `main`."""
    write_tree(directory, changed)
    git(directory, "init", "--quiet", "--initial-branch=main")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message=base")
    return directory


def series(directory: Path, *changes: dict[str, str]) -> Path:
    """A series directory whose patches rewrite files of the fake tree, one patch for each of `changes`."""
    work = repository(directory.parent / f"{directory.name}-work")
    for number, files in enumerate(changes, 1):
        for name, content in files.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(content)
        git(work, "add", "--all")
        git(work, "commit", "--quiet", f"--message=change {number}")
    directory.mkdir()
    git(work, "format-patch", "--quiet", "--zero-commit", "--no-signature", f"-{len(changes)}", "-o", str(directory))
    names = sorted(path.name for path in directory.glob("*.patch"))
    (directory / "series").write_text("# in order\n" + "".join(f"{name}\n" for name in names))
    return directory
