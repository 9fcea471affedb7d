"""The way into the JVM: the session, its classes, its errors."""
