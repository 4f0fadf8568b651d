"""The aggregate functions: words of state with add, remove and result, one file per family."""
