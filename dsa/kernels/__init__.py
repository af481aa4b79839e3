"""The few hot loops, on plain columns: each solver file says which one it drives."""
