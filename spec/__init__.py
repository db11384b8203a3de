"""The specifications, and the language they are written in."""
