"""Engines: where tables are, and how rows are read, bounded and added up there."""
