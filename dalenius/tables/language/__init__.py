"""A question in SQL or Python, read: relations with the lineage of their unit, printed as total SQL."""
