"""The lookup table: all answers of a store in one file, with its description and the shipped one."""
