"""For tests of kernels: comparisons that say where results differ, and the plugin of pytest.

    from ptokit.testing import assert_tile_equal

    def test_softmax(pto):                       # once per target, path and seed that is asked for
        x, y = pto.random((64, 128)), pto.zeros((64, 128))
        pto.run(softmax[4], x, y)
        assert_tile_equal(y, reference(x), ulp=2)

The fixture `pto` and the options `--pto-...` come with `pip install ptokit[pytest]`.
"""

from ptokit.testing.compare import assert_tile_equal

__all__ = ["assert_tile_equal"]
