"""Where tables come from: files, frames and databases, and copies that are prepared for many questions."""
