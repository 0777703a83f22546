"""What a case does to the machine: files, processes, connections, foreign code."""

from __future__ import annotations

import ctypes
import os
import site
import struct
import sys
import sysconfig
from pathlib import Path
from typing import Any

__all__ = ["Canaries", "Watch"]

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Event -> which of its arguments are places that it changes.
CHANGES = {
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.link": (1,),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.utime": (0,),
    "shutil.chown": (0,),
    "shutil.copyfile": (1,),
    "shutil.move": (0, 1),
    "shutil.rmtree": (0,),
    "shutil.unpack_archive": (1,),
}
FORBIDDEN = {
    "builtins.input", "code.__new__", "ctypes.dlopen", "os.exec", "os.fork", "os.forkpty",
    "os.kill", "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "pty.spawn",
    "socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname",
    "subprocess.Popen", "urllib.Request",
}  # fmt: skip
# No file of ours needs these; the old name is what the older protocols write.
UNPICKLED = {"builtins", "__builtin__", "os", "posix", "subprocess", "runpy"}
SYSTEM = (
    "/dev/null", "/dev/urandom", "/etc/debian_version", "/etc/ld.so.cache", "/etc/localtime",
    "/etc/mime.types", "/etc/os-release", "/etc/timezone", "/proc", "/sys", "/usr/lib",
    "/usr/local/lib", "/usr/share",
)  # fmt: skip


class Watch:
    """Notes what a case must not do. Python has one hook for good, so there is one watch.

    Attributes:
        found: what the present case did, in words.
    """

    def __init__(self, *readable: Path) -> None:
        package = Path(__file__).parents[2]
        libraries = {*sysconfig.get_paths().values(), *site.getsitepackages(), sys.base_prefix}
        self.readable = [os.path.realpath(path) for path in (*SYSTEM, *libraries, *readable)]
        self.readable += [str(package / name) for name in ("src", "tests")]
        self.writable: list[str] = []
        self.closed: list[str] = []
        self.found: list[str] = []
        self.on = False
        sys.addaudithook(self._hook)

    def start(self, folder: Path, canaries: list[Path]) -> None:
        """From now on only `folder` may be changed, and the canaries in it not even be read."""
        self.writable = [os.path.realpath(folder)]
        self.closed = [os.path.realpath(path) for path in canaries]
        self.found = []
        self.on = True

    def stop(self) -> list[str]:
        self.on = False
        return self.found

    def _hook(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.on:
            return
        self.on = False  # what the watch itself does is not looked at
        try:
            self._look(event, given)
        finally:
            self.on = True

    def _look(self, event: str, given: tuple[Any, ...]) -> None:
        if event == "open":
            self._opened(*given)
        elif event in CHANGES:
            for place in CHANGES[event]:
                self._changed(event, given[place])
        elif event in FORBIDDEN and not (event == "ctypes.dlopen" and self._known(given[0])):
            self._refuse(f"{event}{given!r:.300}")
        elif event == "pickle.find_class" and given[0] in UNPICKLED:
            self._refuse(f"unpickled {given[0]}.{given[1]}")
        elif event == "import":
            self._imported(*given[:2])
        elif event == "exec" and self._inside(getattr(given[0], "co_filename", "")):
            self._refuse(f"executed {given[0].co_filename}")

    def _opened(self, path: Any, mode: Any, flags: int) -> None:
        if isinstance(path, int):
            return
        place = _place(path)
        if flags & WRITING:
            self._changed("open for writing", path)
        elif _within(place, self.closed):
            self.found.append(f"opened the canary {place}")
        elif not _within(place, [*self.readable, *self.writable]):
            self.found.append(f"read {place}")

    def _changed(self, event: str, path: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        place = _place(path, follow=event.startswith("open"))
        if place == "/dev/null" or ("__pycache__" in place and not self._inside(place)):
            return  # what Python keeps of modules that a verb is the first to import
        if not _within(place, self.writable) or _within(place, self.closed):
            self._refuse(f"{event} {place}")

    def _imported(self, name: str, path: str | None) -> None:
        if name.startswith("transformers_modules") or self._inside(path or ""):
            self._refuse(f"imported {name} from {path}")

    def _inside(self, path: str) -> bool:
        return os.path.isabs(path) and _within(_place(path), self.writable)

    def _known(self, library: Any) -> bool:
        return library is None or "/" not in str(library) or _within(
            _place(library), self.readable)  # fmt: skip

    def _refuse(self, what: str) -> None:
        """Noted, and stopped before it happens."""
        self.found.append(what)
        raise PermissionError(f"the watch stopped this: {what}")


def _place(path: Any, follow: bool = True) -> str:
    name = os.fsdecode(path)
    if follow:
        return os.path.realpath(name)
    return os.path.join(os.path.realpath(os.path.dirname(name) or "."), os.path.basename(name))


def _within(place: str, folders: list[str]) -> bool:
    return any(place == folder or place.startswith(folder + os.sep) for folder in folders)


class Canaries:
    """Files that nobody may open. The kernel tells of openings that no hook of Python sees."""

    OPENED, MODIFIED, REMOVED = 0x20, 0x2, 0x400 | 0x800

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        libc = ctypes.CDLL(None, use_errno=True)
        self.handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        mask = self.OPENED | self.MODIFIED | self.REMOVED
        self.names = {
            libc.inotify_add_watch(self.handle, os.fsencode(path), mask): path for path in paths
        }
        if self.handle < 0 or -1 in self.names:
            raise OSError(ctypes.get_errno(), "the kernel cannot watch the canaries")

    def disturbed(self) -> list[str]:
        """What was opened or changed since the last call."""
        try:
            events = os.read(self.handle, 1 << 16)
        except BlockingIOError:
            return []
        found = []
        while events:
            number, _, _, length = struct.unpack_from("iIII", events)
            found.append(f"the canary {self.names[number].name} was opened")
            events = events[16 + length :]
        return found

    def close(self) -> None:
        os.close(self.handle)
