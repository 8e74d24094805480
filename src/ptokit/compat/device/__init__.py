"""The device of programs that expect one: its tool chain, its libraries and its tensors.

`ptoas` writes C++ and `bisheng` compiles it, for the simulator (commands.py, libraries.py); a
library that was made so is loaded as any other (`ctypes.CDLL`), and its launches are simulated.
`torch_npu` makes of tensors on the device tensors of this machine, of which the simulator knows
where they lie (tensors.py, memory.py).
"""
