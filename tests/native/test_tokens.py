"""C++ as far as it is read: kernels, launches, and what looks like them."""

from __future__ import annotations

import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.native.tokens import entries, mentions, with_plain_launches, with_plain_words

LAUNCHES = {
    "f<<<1, nullptr, s>>>(a, b);": ("1, nullptr, s", "f", "(a, b)"),
    "ns::f<int, 4><<<n, 0, s>>>(a);": ("n, 0, s", "ns::f<int, 4>", "(a)"),
    "f<A<B<C<int>>>><<<g(1, 2), l2, s>>>(x);": ("g(1, 2), l2, s", "f<A<B<C<int>>>>", "(x)"),
    "NAME(f, 3)<T><<<1, 0, s>>>((half*)x);": ("1, 0, s", "NAME(f, 3)<T>", "((half*)x)"),
    "f##N<<<blocks[2], 0, s>>>(x);": ("blocks[2], 0, s", "f##N", "(x)"),
    "f<(1 > 0)><<<1, 0, s>>>(x);": ("1, 0, s", "f<(1 > 0)>", "(x)"),
    "f<<<1, 0, s>>>(p->x + - 1, static_cast<int>(n));": (
        "1, 0, s", "f", "(p->x + - 1, static_cast<int>(n))"
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", LAUNCHES)
def test_launches_become_expressions_that_tell_their_arguments(text: str) -> None:
    config, callee, args = LAUNCHES[text]
    given = f".given([&](auto&& told) {{ told{args}; }})"
    call = f"[&]() mutable {{ {callee}{args}; }};"
    assert with_plain_launches(text, "k.cpp") == f"::ptokit::Launch({config}){given} + {call}"


@pytest.mark.parametrize("args", ["(next())", "(n++)", "(-- n)", "(n = 2)", "(n += 2)", "(P{1})"])
def test_arguments_that_change_something_are_evaluated_by_the_call_alone(args: str) -> None:
    written = with_plain_launches(f"f<<<1, nullptr, s>>>{args};", "k.cpp")
    assert written == f"::ptokit::Launch(1, nullptr, s) + [&]() mutable {{ f{args}; }};"


def test_arguments_of_a_macro_may_be_anything() -> None:
    text = "#define GO(...) \\\n  f<<<1, nullptr, s>>>(__VA_ARGS__)\nf<<<1, nullptr, s>>>(x);\n"
    written = with_plain_launches(text, "k.cpp")
    assert written.count("given") == 1
    assert "told(x)" in written


@pytest.mark.parametrize("text", ['"a<<<1>>>(b)"', "// f<<<1>>>(b)", 'R"(f<<<1>>>(b))"', "a << b"])
def test_what_only_looks_like_a_launch_stays(text: str) -> None:
    assert with_plain_launches(text, "k.cpp") == text


def test_lines_stay_where_they_are() -> None:
    args = "(a, // one\n b);"
    text = "void f() {\n  k<int,\n    3>\n    <<<1,\n nullptr, s>>>" + args + "\n}\nint last;\n"
    written = with_plain_launches(text, "k.cpp")
    assert written.index("int last") > 0
    assert written[: written.index("int last")].count("\n") == text.count("\n") - 1


@pytest.mark.parametrize("text", ["x = <<<1>>>(b);", "f<<<1>>>;", "f<<<1, 2(b);"])
def test_an_odd_launch_is_told_with_its_place(text: str) -> None:
    with pytest.raises(PtoError, match=r"k\.cpp:2:\d+: error\[cpp-launch\]"):
        with_plain_launches("\n" + text, "k.cpp")


def test_kernels_are_found() -> None:
    found = entries(
        """
        __global__ AICORE void declared(__gm__ float* x);
        extern "C" __global__ [aicore] void
        plain(__gm__ float* x, int n) { }
        template <typename T, int N> __global__ AICORE void general(__gm__ T* x) { if (N) {} }
        // __global__ void comment() {}
        void host() {}
        """
    )
    assert [(e.name, e.is_template, e.line) for e in found] == [
        ("plain", False, 4), ("general", True, 5),
    ]  # fmt: skip
    assert found[0].parameters == "__gm__ float* x, int n"


def test_names_in_comments_are_not_mentioned() -> None:
    assert mentions("#ifdef __DAV_VEC__\n#endif", ["__DAV_VEC__"])
    assert not mentions('// __DAV_VEC__\n"__DAV_VEC__"', ["__DAV_VEC__"])


UB, L1 = "::ptokit::Local<::pto::TileType::Vec, {}>", "::ptokit::Local<::pto::TileType::Mat, {}>"
POINTERS = {
    "__ubuf__ float* x = 0x0;": UB.format("float") + " x = 0x0;",
    "(__cbuf__ void*)p": f"({L1.format('void')})p",
    "__cbuf__ typename A::B<C<int>>::T *p": L1.format("typename A::B<C<int>>::T") + "p",
    "f(const __ubuf__ T __in__* p)": f"f({UB.format('const T')} p)",
    "reinterpret_cast<__ubuf__ unsigned int*>(n)": f"static_cast<{UB.format('unsigned int')}>(n)",
    "__ubuf__ int* p; reinterpret_cast<uintptr_t>(p)": f"{UB.format('int')} p; (uintptr_t)(p)",
    '#define A ((__ca__ half*)(__ca__ char*)0x0)': (
        "#define A ((::ptokit::Local<::pto::TileType::Left, half>)"
        "(::ptokit::Local<::pto::TileType::Left, char>)0x0)"
    ),
    'asm volatile("MOV %0, PC\\n" : "+l"(pc));': "(pc) = 0;",
}  # fmt: skip


@pytest.mark.parametrize("text", POINTERS)
def test_pointers_to_local_memory_become_objects(text: str) -> None:
    assert with_plain_words(text) == POINTERS[text]


@pytest.mark.parametrize(
    "text", ["// __ubuf__ T* p", '"__ubuf__ T*"', "__ubuf__ T x;", "__gm__ T* p", 'asm("nop");']
)
def test_what_is_no_such_pointer_stays(text: str) -> None:
    assert with_plain_words(text) == text


def test_a_pointer_over_two_lines_keeps_them() -> None:
    assert with_plain_words("__ubuf__\n  T*\n  p;").count("\n") == 2
