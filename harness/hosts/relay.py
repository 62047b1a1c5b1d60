"""Runs on another machine, with nothing but Python's own library: our input and output are one of a keeper's lines, by the path
of its socket and the line's name."""

import os
import socket
import sys
import threading

_CHUNK = 1 << 16


def main() -> None:
    path, name = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as keeper:
        keeper.connect(path)
        keeper.sendall(name.encode())
        _, (number,), _, _ = socket.recv_fds(keeper, 1, 1)
    line = socket.socket(fileno=number)

    def forward() -> None:
        while data := os.read(0, _CHUNK):
            line.sendall(data)
        line.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=forward, daemon=True).start()
    while data := line.recv(_CHUNK):
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


main()
