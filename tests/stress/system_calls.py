"""Runs a function in a forked process and stops or kills it at its nth system call that writes (Linux on x86-64).

A seccomp filter reports only calls that write, sync, rename or remove, whichever thread or library makes them; so a
process is killed at every moment at which the state of its files or sockets could differ. A write can be torn: the
kernel then writes only its beginning before the process dies.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
import traceback
from collections.abc import Callable

import msgspec

WRITES = {"write": 1, "pwrite64": 18, "writev": 20, "sendto": 44, "sendmsg": 46}
SYNCS = {"fsync": 74, "fdatasync": 75}
CHANGES = {"ftruncate": 77, "rename": 82, "mkdir": 83, "unlink": 87, "unlinkat": 263, "renameat": 264, "renameat2": 316}
_NAMES = {number: name for name, number in (WRITES | SYNCS | CHANGES).items()}
_TEARABLE = ("write", "pwrite64")
_TRACEME, _PEEKUSER, _POKEUSER, _CONT, _SYSCALL, _SETOPTIONS = 0, 3, 6, 7, 24, 0x4200
_SYSGOOD, _TRACECLONE, _TRACESECCOMP, _EXITKILL = 0x1, 0x8, 0x80, 0x100000
_EVENT_SECCOMP = 7
_ORIG_RAX, _RDI, _RSI, _RDX = 120, 112, 104, 96
"""Offsets of registers in the `user` area: number of the call and its arguments."""
_WAIT_ALL = 0x40000000
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_ALLOW, _TRACE, _ARCHITECTURE = 0x7FFF0000, 0x7FF00000, 0xC000003E


class Call(msgspec.Struct):
    """One system call that writes, with the file that it is about."""

    name: str
    path: str
    target: str = ""
    """New name, for a rename."""


class Trace(msgspec.Struct):
    """What a traced process did."""

    count: int
    """Calls that write, up to the kill."""
    killed: bool
    code: int
    calls: list[Call] = []


NOT_ALLOWED = "This system does not allow a process to trace another."


def is_supported() -> bool:
    return sys.platform == "linux" and platform.machine() == "x86_64"


def run_traced(
    work: Callable[[], None], kill_at: int | None = None, torn: float | None = None, *, record: bool = False
) -> Trace:
    """Runs `work` in a fork; kills it before its nth call, or in the middle of it if that is a write and `torn` is set.

    `torn` is the fraction that is written. With `record`, all calls are returned with their files.
    """
    child = os.fork()
    if child == 0:
        _run_child(work)
    trace = Trace(0, killed=False, code=0)
    _, status = os.waitpid(child, 0)
    if not os.WIFSTOPPED(status):
        raise PermissionError(NOT_ALLOWED)
    _ptrace(_SETOPTIONS, child, 0, _SYSGOOD | _TRACECLONE | _TRACESECCOMP | _EXITKILL)
    _ptrace(_CONT, child)
    while True:
        thread, status = os.waitpid(-1, _WAIT_ALL)
        if not os.WIFSTOPPED(status):
            if thread == child:
                trace.code = os.waitstatus_to_exitcode(status)
                return trace
            continue
        signal_number = os.WSTOPSIG(status)
        if status >> 16 == _EVENT_SECCOMP:
            trace.count += 1
            if record:
                trace.calls.append(_describe(child, thread))
            if trace.count == kill_at:
                if torn is not None:
                    _tear(thread, torn)
                trace.killed = True
                os.kill(child, signal.SIGKILL)
                continue
        passed_on = 0 if status >> 16 or signal_number in (signal.SIGTRAP, signal.SIGSTOP) else signal_number
        _ptrace(_CONT, thread, 0, passed_on)


def _run_child(work: Callable[[], None]) -> None:
    code = 1
    try:
        _ptrace(_TRACEME, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        _install_filter()
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _describe(child: int, thread: int) -> Call:
    name = _NAMES[_peek(thread, _ORIG_RAX)]
    if name in ("rename", "unlink", "mkdir"):
        old = _text(child, _peek(thread, _RDI))
        return Call(name, old, _text(child, _peek(thread, _RSI)) if name == "rename" else "")
    if name in ("unlinkat", "renameat", "renameat2"):
        return Call(name, _text(child, _peek(thread, _RSI)))
    try:
        return Call(name, os.readlink(f"/proc/{child}/fd/{_peek(thread, _RDI)}"))
    except OSError:
        return Call(name, "")


def _text(child: int, address: int) -> str:
    with open(f"/proc/{child}/mem", "rb") as memory:
        memory.seek(address)
        return memory.read(512).partition(b"\0")[0].decode(errors="replace")


def _tear(thread: int, fraction: float) -> None:
    """Lets a write happen in part."""
    length = _peek(thread, _RDX)
    if _NAMES[_peek(thread, _ORIG_RAX)] not in _TEARABLE or length < 2:
        return
    _ptrace(_POKEUSER, thread, _RDX, max(1, min(length - 1, int(length * fraction))))
    _ptrace(_SYSCALL, thread)
    os.waitpid(thread, _WAIT_ALL)


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction))]


def _install_filter() -> None:
    """Installs a filter in this process and its later threads: load the number, compare, trace or allow."""
    load, equal, end = 0x20, 0x15, 0x06
    numbers = sorted(_NAMES)
    code = [_Instruction(load, 0, 0, 4), _Instruction(equal, 0, len(numbers) + 1, _ARCHITECTURE)]
    code.append(_Instruction(load, 0, 0, 0))
    code += [_Instruction(equal, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
    code += [_Instruction(end, 0, 0, _ALLOW), _Instruction(end, 0, 0, _TRACE)]
    array = (_Instruction * len(code))(*code)
    program = _Program(len(code), array)
    _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _check(_libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0))


_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request: int, process: int, address: int = 0, data: int = 0) -> int:
    ctypes.set_errno(0)
    return _check(_libc.ptrace(request, process, address, data))


def _peek(thread: int, register: int) -> int:
    return _ptrace(_PEEKUSER, thread, register) & 0xFFFFFFFFFFFFFFFF


def _check(result: int) -> int:
    if result == -1 and (number := ctypes.get_errno()):
        raise OSError(number, os.strerror(number))
    return result
