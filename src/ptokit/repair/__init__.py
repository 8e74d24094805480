"""Repairs: where a program lacks order, the lines that bring it.

`outline.py` sees a program in Python or text as statements in blocks; `remedies.py` derives from it
what would mend a finding; `search.py` tries remedies until the check is silent.
"""
