"""C++ kernels, compiled for this machine against a header of our own, whose instructions call back.

headers.py writes the header, tokens.py makes of a source what any compiler takes, compiler.py
compiles it, library.py loads it and finds lines, records.py reads what it asks for, and runtime.py
carries that out on the machine.
"""
