"""The JIT toolchain: how kernels are written, compiled, cached and linked into one image."""
