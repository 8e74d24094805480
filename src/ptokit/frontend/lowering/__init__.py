"""From a Python function to IR, through its syntax tree.

The body of a kernel is interpreted once. What is known at compile time is ordinary Python and is
evaluated; what is known only at run time is a symbol that stands for an IR value. Control flow over
symbols becomes structured control flow.
"""
