"""Sockets of JVM threads that called Python once and are gone.

py4j ties a connection to the JVM thread that opened it, and keeps both ends, with a Python thread that waits for the
next call, until the program ends. Spark runs a stage, a subquery or the hand-over of a result in threads that soon die:
without this, every DELETE would leave a socket and a thread behind.
"""

from __future__ import annotations

import threading
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from lakeproof.spark.jvm import spark41

_LOOK_EVERY = 5  # new callers: to look which threads have ended takes a call for each that is known, or more


class CallbackConnections:
    """The connections by which Java calls Python, each with its JVM thread."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._jvm = spark, spark41.java_machine(spark)
        self._current_thread = self._jvm.java.lang.Thread.currentThread
        self._seen = threading.local()
        self._lock = threading.Lock()
        self._open: list[tuple[Any, int]] = []
        self._noted = 0

    def note_caller(self) -> None:
        """Remember the thread that calls, if it is new; now and then close what threads before it have left."""
        if getattr(self._seen, "noted", False):
            return
        self._seen.noted = True
        connection = spark41.callback_connection(self._spark)
        if connection is None:  # a thread of Python's own, which Java calls back
            return
        try:
            thread = self._current_thread()
            gone = self._take_dead((thread, connection.socket.getpeername()[1]))
            if gone:
                self._close(gone)
        except Py4JError:  # the JVM is going down; the call itself says so
            return

    def _take_dead(self, new: tuple[Any, int]) -> set[int]:
        """The ports of threads that ended; they are forgotten here, and the new one is known."""
        with self._lock:
            self._noted += 1
            if self._noted % _LOOK_EVERY:
                self._open.append(new)
                return set()
            known, self._open = self._open, [new]
        alive = [(thread, port) for thread, port in known if thread.isAlive()]
        with self._lock:
            self._open += alive
        return {port for _, port in known} - {port for _, port in alive}

    def _close(self, ports: set[int]) -> None:
        """Close Java's end, taken out of the client's list first; Python's end and its thread follow by themselves."""
        client = spark41.callback_client(self._spark)
        connections = self._field(client, spark41.CALLBACK_CONNECTIONS)
        lock = self._field(client, spark41.CALLBACK_LOCK)
        lock.lock()
        try:
            idle = [one for one in connections.toArray() if one.isInitiatedFromClient()]
            ended = [one for one in idle if one.getSocket() is None or one.getSocket().getLocalPort() in ports]
            for one in ended:
                connections.remove(one)
        finally:
            lock.unlock()
        for one in ended:
            one.shutdown()

    def _field(self, client: Any, name: str) -> Any:
        field = self._jvm.java.lang.Class.forName(spark41.CALLBACK_CLIENT).getDeclaredField(name)
        field.setAccessible(True)
        return field.get(client)
