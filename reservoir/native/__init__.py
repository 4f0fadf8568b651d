"""The JIT toolchain. It compiles kernels (functions of machine code), caches them, and links them into one image."""
