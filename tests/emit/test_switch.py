"""A choice among several blocks is a switch with all of them."""

from __future__ import annotations

from ptokit.from_text import loads

TEXT = """func.func @f(%out: !pto.ptr<i32>, %n: index) {
  %c0 = arith.constant 0 : index
  %a = arith.constant 11 : i32
  %b = arith.constant 22 : i32
  %c = arith.constant 33 : i32
  scf.index_switch %n
  case 2 {
    pto.store_scalar %a, %out[%c0] : !pto.ptr<i32>, i32
    scf.yield
  }
  case 5 {
    pto.store_scalar %b, %out[%c0] : !pto.ptr<i32>, i32
    scf.yield
  }
  default {
    pto.store_scalar %c, %out[%c0] : !pto.ptr<i32>, i32
    scf.yield
  }
  return
}"""


def test_every_case_does_its_work() -> None:
    cpp = loads(TEXT, "k.pto").cpp()
    cases = cpp[cpp.index("switch (n)") :].split("break;")
    for case, head, name in zip(cases, ("case 2:", "case 5:", "default:"), "abc", strict=False):
        assert head in case
        assert f"out[0] = {name};" in case
    assert "a = 11, b = 22, c = 33;" in cpp  # the author's names
