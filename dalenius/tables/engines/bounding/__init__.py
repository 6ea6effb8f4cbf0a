"""Bounding in SQL, for engines that hold the rows themselves: only integers by group leave them."""
