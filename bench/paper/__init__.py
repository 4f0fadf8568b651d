"""The experiments of the Railgun paper's figures 8 to 10, on this engine."""
