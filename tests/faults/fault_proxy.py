"""A port on the loopback address in front of a catalog: connections are slow, cut or refused when a run says so."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import NamedTuple

Address = str | tuple[str, int]


class _Pair(NamedTuple):
    """A client's connection and the one to the server that stands for it."""

    client: socket.socket
    server: socket.socket


class Proxy:
    """Passes bytes on. `delay_s` holds every request back; a request that was on its way when its client was cut off
    arrives all the same."""

    def __init__(self, server: Address) -> None:
        self.server, self.refuses, self.delay_s = server, False, 0.0
        self.cuts = 0
        self._pairs: set[_Pair] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        if self.refuses:
            client.close()
            return
        try:
            if isinstance(self.server, str):
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.server)
            else:
                server = socket.create_connection(self.server)
        except OSError:
            client.close()
            return
        pair = _Pair(client, server)
        self._pairs.add(pair)
        threading.Thread(target=self._requests, args=(pair,), daemon=True).start()
        self._answers(pair)

    def _requests(self, pair: _Pair) -> None:
        with suppress(OSError):
            while data := pair.client.recv(65_536):
                if self.delay_s:
                    time.sleep(self.delay_s)
                pair.server.sendall(data)
        time.sleep(1)  # what the server does for the last request it may do in peace
        with suppress(OSError):
            pair.server.shutdown(socket.SHUT_RDWR)
        pair.server.close()

    def _answers(self, pair: _Pair) -> None:
        with suppress(OSError):
            while data := pair.server.recv(65_536):
                pair.client.sendall(data)
        with suppress(OSError):
            pair.client.shutdown(socket.SHUT_RDWR)
        self._pairs.discard(pair)

    def cut(self) -> None:
        """The clients hear nothing more; what they have sent goes on its way."""
        for pair in list(self._pairs):
            self.cuts += 1
            with suppress(OSError):
                pair.client.shutdown(socket.SHUT_RDWR)
            self._pairs.discard(pair)

    def close(self) -> None:
        """Nobody gets in any more."""
        self.cut()
        self._listener.close()
