"""A second interpreter of kernels in text, for the tests: it shares no code with the product.

It knows only what model kernels use, and gives it the plainest meaning there is: one operation
after the other, no pipes and no flags. `python -m tests.models DIR` runs the kernels of a folder
through both and compares every array they leave.
"""
