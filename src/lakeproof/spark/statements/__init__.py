"""Statements by kind: analyzed by Spark, or run by us where Spark has no words for them."""
