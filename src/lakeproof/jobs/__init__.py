"""A file of SQL jobs → a model of them: one text is run by Spark and explored by the checker."""
