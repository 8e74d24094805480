"""The tile level of PyPTO's language over the values of this package.

What works on tensors as a whole - and is cut into tiles by PyPTO's compiler - is not here.
"""
