"""The driver's JVM as Python sees it: classes looked up once, values built in bulk, objects that Java can call back.

How Spark's own classes and private names are spelled stands in `spark41.py`.
"""

from __future__ import annotations

import functools
import json
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakeproof.errors import LakeproofError
from lakeproof.iceberg.reading.lru import Recent
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.connections import CallbackConnections
from lakeproof.spark.jvm.spark41 import CapturedException

# A longer text makes py4j's reader run out of memory; about 20,000 files.
_LONGEST_BY_SOCKET = 5_000_000
_DEEPEST_CAUSE = 30
_MOST_TOGETHER = 10  # arguments of `List.of`
SEPARATOR = "\x00\x01\x00"
_Method = TypeVar("_Method", bound=Callable[..., Any])
_T = TypeVar("_T")


class Gateway:
    """The JVM of one session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.context = spark.sparkContext
        self.jvm = spark41.java_machine(spark)
        self.session = spark41.java_session(spark)
        spark41.let_java_call(spark)
        self.callers = CallbackConnections(spark)
        self.answers = threading.local()
        self._classes: dict[str, Any] = {}
        self._once: dict[str, Any] = {}
        self.mapper = self._field_mapper()
        self.empty_schema = self.named(spark41.STRUCT_TYPE)()
        self._schemas: Recent[Any] = Recent(256)
        self._thrown: OrderedDict[int, tuple[Any, LakeproofError]] = OrderedDict()
        self._lock = threading.Lock()

    def once(self, key: str, make: Callable[[], _T]) -> _T:
        """What never changes in this JVM is asked of it once: every call is a trip of a tenth of a millisecond."""
        if key not in self._once:
            self._once[key] = make()
        found: _T = self._once[key]
        return found

    def named(self, name: str) -> Any:
        """The Java class of that name."""
        return self.once(name, lambda: getattr(self.jvm, name))

    def module(self, name: str) -> Any:
        """The Scala object of that name."""
        return self.once(f"{name} module", lambda: getattr(self.named(name + "$"), "MODULE$"))

    def static(self, class_name: str, method: str) -> Any:
        """A static method of a Java class: py4j asks the JVM for it each time that it is named."""
        return self.once(f"{class_name} {method}", lambda: getattr(self.named(class_name), method))

    def class_of(self, name: str) -> Any:
        """The `java.lang.Class` of that name."""
        if name not in self._classes:
            self._classes[name] = self.jvm.java.lang.Class.forName(name)
        return self._classes[name]

    def enum(self, name: str, value: str) -> Any:
        """One constant of a Java enumeration."""
        return self.jvm.java.lang.Enum.valueOf(self.class_of(name), value)

    def sequence(self, items: Iterable[Any]) -> Any:
        """A Scala Seq."""
        return self.static(spark41.PYTHON_UTILS, "toSeq")(self.listed(list(items)))

    def listed(self, items: Sequence[Any]) -> Any:
        """A Java list; ten of its items travel in one call."""
        if len(items) == 1:
            return self.static("java.util.Collections", "singletonList")(items[0])
        of = self.static("java.util.List", "of")
        if len(items) <= _MOST_TOGETHER:
            return of(*items)
        built = self.named("java.util.ArrayList")()
        for first in range(0, len(items) - 1, _MOST_TOGETHER):
            built.addAll(of(*items[first : first + _MOST_TOGETHER]))
        if len(items) % _MOST_TOGETHER == 1:
            built.add(items[-1])
        return built

    def one(self, item: Any) -> Any:
        """A Scala Seq of one item."""
        return self.module("scala.collection.immutable.Nil").prepended(item)

    def array(self, class_name: str, items: Sequence[Any]) -> Any:
        """A Java array of objects."""
        built = spark41.java_gateway(self.spark).new_array(self.named(class_name), len(items))
        for number, item in enumerate(items):
            built[number] = item
        return built

    def strings(self, items: Sequence[str]) -> Any:
        """A Java array of strings, in one call."""
        return self.mapper.readValue(json.dumps(list(items)), self.class_of("[Ljava.lang.String;"))

    def built(self, text: str, kind: Any, mapper: Any = None) -> Any:
        """Java objects from one JSON text, which travels in a file where it is too long for the socket."""
        mapper = mapper or self.mapper
        if len(text) <= _LONGEST_BY_SOCKET:
            return mapper.readValue(text, kind)
        handle, name = tempfile.mkstemp(suffix=".json")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            return mapper.readValue(self.jvm.java.io.File(name), kind)
        finally:
            Path(name).unlink()

    def list_of(self, class_name: str, kind: str = "java.util.ArrayList") -> Any:
        """The type `ArrayList` (or another collection) of that class, for `built`."""

        def made() -> Any:
            factory = self.mapper.getTypeFactory()
            return factory.constructCollectionType(self.class_of(kind), self.class_of(class_name))

        return self.once(f"{kind} of {class_name}", made)

    def scala_map(self, items: dict[str, str]) -> Any:
        """An immutable Scala map."""
        return self.static(spark41.PYTHON_UTILS, "toScalaMap")(items)

    def java_map(self, scala_map: Any) -> dict[Any, Any]:
        """A Scala map as a dictionary."""
        if scala_map.isEmpty():
            return {}
        return dict(self.jvm.scala.jdk.javaapi.CollectionConverters.asJava(scala_map))

    def some(self, item: Any) -> Any:
        """A Scala Some."""
        return self.named("scala.Some")(item)

    @property
    def none(self) -> Any:
        """Scala's None."""
        return self.once("none", lambda: self.jvm.scala.Option.empty())

    @property
    def no_columns(self) -> DataFrame:
        """No rows of no columns."""
        made = self.once("no columns", lambda: spark41.java_frame(self.spark.range(0).select()))
        return DataFrame(made, self.spark)

    @property
    def session_catalog(self) -> Any:
        """The session's own catalog of views and tables."""
        return self.once("session catalog", lambda: self.session.sessionState().catalog())

    def java_schema(self, schema: StructType) -> Any:
        """The schema as Spark's JVM holds it, field metadata included."""
        text = schema.json()
        return self._schemas.get(text, lambda: self.named(spark41.DATA_TYPE).fromJson(text))

    def hidden_field(self, owner: Any, name: str) -> Any:
        """The value of a private field, of the object's class or of one above it."""
        return self._field(owner, name).get(owner)

    def set_hidden_field(self, owner: Any, name: str, value: Any) -> None:
        """A private field has this value from now on."""
        self._field(owner, name).set(owner, value)

    def _field(self, owner: Any, name: str) -> Any:
        kind = owner.getClass()

        def found() -> Any:
            holder = kind
            while name not in {field.getName() for field in holder.getDeclaredFields()}:
                holder = holder.getSuperclass()
            field = holder.getDeclaredField(name)
            field.setAccessible(True)
            return field

        return self.once(f"{kind.getName()} field {name}", found)

    def dataframe(self, plan: Any) -> DataFrame:
        """A logical plan as a DataFrame."""
        rows = self.module(spark41.DATASET).ofRows(self.session, plan)
        return DataFrame(rows, self.spark)

    def thrown(self, error: LakeproofError) -> Py4JJavaError:
        """An error of ours as a Java exception; `recovered` finds the original again in the caller's thread."""
        exception = self.jvm.java.lang.IllegalArgumentException(str(error))
        with self._lock:
            self._thrown[self._identity(exception)] = exception, error
            while len(self._thrown) > 100:
                self._thrown.popitem(last=False)
        return Py4JJavaError(str(error), exception)

    def recovered(self, error: BaseException) -> LakeproofError | None:
        """The error of ours that travelled through the JVM: the Java exception itself, or what caused it, is ours."""
        cause = spark41.java_exception(error)
        for _ in range(_DEEPEST_CAUSE):
            if cause is None or not self._thrown:
                return None
            exception, found = self._thrown.get(self._identity(cause), (None, None))
            if found is not None and cause.equals(exception):
                return found
            cause = cause.getCause()
        return None

    def _identity(self, item: Any) -> int:
        """A number that is the same for the same Java object; two objects may share it, so `equals` decides."""
        return int(self.jvm.java.lang.System.identityHashCode(item))

    def _field_mapper(self) -> Any:
        """A Jackson mapper that sets private fields: thousands of FileStatus objects come from one JSON text."""
        mapper = self.jvm.com.fasterxml.jackson.databind.ObjectMapper()
        accessor = "com.fasterxml.jackson.annotation.PropertyAccessor"
        visibility = "com.fasterxml.jackson.annotation.JsonAutoDetect$Visibility"
        for what, seen in (("ALL", "NONE"), ("FIELD", "ANY"), ("CREATOR", "ANY")):
            mapper.setVisibility(self.enum(accessor, what), self.enum(visibility, seen))
        mapper.registerModule(self.module("com.fasterxml.jackson.module.scala.DefaultScalaModule"))
        rows = self.jvm.com.fasterxml.jackson.databind.module.SimpleModule()
        row, plain_row = spark41.INTERNAL_ROW, spark41.GENERIC_INTERNAL_ROW
        rows.addAbstractTypeMapping(self.class_of(row), self.class_of(plain_row))
        mapper.registerModule(rows)
        return mapper


def texts_of(sequence: Any) -> list[str]:
    """The items of a Scala Seq of texts that is not empty, in one call."""
    return str(sequence.mkString(SEPARATOR)).split(SEPARATOR)


def items_of(sequence: Any) -> Iterator[Any]:
    """The items of a Scala Seq, one call each; its iterator would be asked twice as often."""
    for number in range(sequence.size()):
        yield sequence.apply(number)


class JavaProxy:
    """A Python object that Java calls; py4j forwards the methods of Object too."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    def toString(self) -> str:
        """What Java prints."""
        return type(self).__name__

    def hashCode(self) -> int:
        """Equal objects have equal codes."""
        return hash(self.toString()) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        """Java hands over its own handle, never `self`: what is printed identifies the object."""
        try:
            return bool(other is self or other.toString() == self.toString())
        except Exception:
            return False


def from_java(method: _Method) -> _Method:
    """The method may be called by Java: an exception leaves it as the Java exception that it stands for.

    An answer that is a Java object goes back by its number, and Java forgets the number once Python drops the object:
    that may be before it has read the answer. So the thread holds its last answer until it is called again.
    """

    @functools.wraps(method)
    def called(self: JavaProxy, *arguments: Any) -> Any:
        self.gateway.callers.note_caller()
        try:
            with spark41.without_origins():
                answer = self.gateway.answers.last = method(self, *arguments)
        except CapturedException as error:
            origin = error._origin or self.gateway.jvm.java.lang.RuntimeException(str(error))
            self.gateway.answers.last = origin
            raise Py4JJavaError(str(error), origin) from None
        except LakeproofError as error:
            raise self.gateway.thrown(error) from None  # which holds it itself
        return answer

    return called  # type: ignore[return-value]
