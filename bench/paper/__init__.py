"""The experiments of the Railgun paper's figures 8 to 10 and of two other papers, on this engine."""
