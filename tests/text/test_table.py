"""Every instruction with a text form round-trips in each of its forms, with each attribute."""

from __future__ import annotations

import pytest

from ptokit.ir.asmform import print_asm
from ptokit.ir.instructions import Form, attr_keys, template_value
from ptokit.ir.parser import parse
from ptokit.ir.printer import print_module
from ptokit.ir.rewrite import same_module
from tests.text.table import attributes, documented, forms, indexed, module_of

FORMS = forms()


def name_of(form: Form) -> str:
    return f"{form.insn.name}-{'-'.join(o.name for o in (*form.ins, *form.outs))}"


@pytest.mark.parametrize("form", FORMS, ids=name_of)
@pytest.mark.parametrize("is_value", [False, True], ids=["l2", "l1"])
def test_forms_round_trip(form: Form, is_value: bool) -> None:
    module = module_of(form, is_value)
    if module is None:
        pytest.skip("an operand has no type in text")
    if is_value and form.insn.name == "TMRGSORT" and "tmp" in [o.name for o in form.ins]:
        pytest.skip("lines with results leave tmp out, or it would be a further list")
    for generic in (False, True):
        text = print_module(module, generic=generic)
        assert same_module(module, parse(text)), text


@pytest.mark.parametrize("form", documented("sync"), ids=name_of)
def test_assembly_lines_round_trip(form: Form) -> None:
    for attrs in ({}, *attributes(form)):
        for place in (lambda module: module, indexed):
            module = module_of(form, is_value=True, attrs=attrs)
            assert module is not None
            module = place(module)
            text = print_asm(module)
            again = parse(text, "f.pto")
            assert same_module(module, again), text
            assert print_asm(again) == text


@pytest.mark.parametrize("form", documented("l1"), ids=name_of)
def test_documented_level1_lines_round_trip(form: Form) -> None:
    module = module_of(form, is_value=True)
    assert module is not None
    text = print_module(module)
    assert f" pto.{form.mnemonic} " in f"{text.replace(chr(10), ' ')} ", text
    assert same_module(module, parse(text)), text


@pytest.mark.parametrize("form", documented("l2"), ids=name_of)
def test_documented_level2_lines_round_trip(form: Form) -> None:
    module = module_of(form)
    assert module is not None
    text = print_module(module)
    assert f" pto.{form.mnemonic}" in text, text
    assert same_module(module, parse(text)), text


@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_attributes_round_trip(form: Form) -> None:
    for attrs in attributes(form):
        module = module_of(form, attrs=attrs)
        if module is None:
            continue
        text = print_module(module)
        assert same_module(module, parse(text)), text


@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_attributes_mean_what_they_say(form: Form) -> None:
    keys = attr_keys(form.insn)
    for attrs in attributes(form):
        for key, value in attrs.items():
            meant = template_value(keys[key], value)
            assert isinstance(meant, keys[key].type)
