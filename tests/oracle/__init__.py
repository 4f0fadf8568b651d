"""The oracle: a brute-force reading of the semantics in exact arithmetic, sharing no code with the engine."""
