"""Programs compiled to machine code with LLVM."""
