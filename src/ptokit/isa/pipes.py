"""The cube-vector FIFOs."""
