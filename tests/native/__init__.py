"""C++ kernels on the simulator."""
