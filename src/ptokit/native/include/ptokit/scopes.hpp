// Vector code: a register is a name for what the simulator keeps, an intrinsic is recorded with its
// operands, and all of a scope is one instruction of PIPE_V.
#pragma once
#include "kernel.hpp"

namespace ptokit {
enum MicroOperand : int64_t { REGISTER = 30, LOCAL, WORD };
struct Word {
    int64_t number;
};
struct PostUpdate {};  // the pointer is moved by the operation

struct RegisterBase {
    int64_t number = ++last_handle;
    RegisterBase() = default;
    RegisterBase(const RegisterBase& other) { become(other, __builtin_return_address(0)); }
    RegisterBase& operator=(const RegisterBase& other)
    {
        become(other, __builtin_return_address(0));
        return *this;
    }
    void become(const RegisterBase& other, const void* pc) const
    {
        Record r(MICRO_MOVE, pc);
        r.put({number, other.number});
        r.end();
    }
};
template <typename A> constexpr bool is_local = std::is_base_of_v<LocalBase, A>;

class VectorScope {
    bool ran_ = false;
    static void tell(int64_t what, const void* pc)
    {
        Record r(what, pc);
        r.end();
    }
public:
    __attribute__((noinline)) VectorScope() { tell(SCOPE_BEGIN, __builtin_return_address(0)); }
    __attribute__((noinline)) bool runs()
    {
        if (ran_) tell(SCOPE_END, __builtin_return_address(0));
        return !std::exchange(ran_, true);
    }
};
}  // namespace ptokit
#define __VEC_SCOPE__ for (::ptokit::VectorScope ptokit_scope; ptokit_scope.runs();)

namespace pto {
template <typename T> struct RegTensor : ptokit::RegisterBase {
    using Element = T;
};
struct MaskReg : ptokit::RegisterBase {
    using Element = void;
};
struct UnalignReg : ptokit::RegisterBase {
    using Element = void;
};
}  // namespace pto

namespace ptokit {
template <typename A> PTOKIT_INLINE void micro_operand(Record& r, const A& given)
{
    if constexpr (std::is_base_of_v<RegisterBase, A>) r.put({REGISTER, given.number, element<typename A::Element>()});
    else if constexpr (is_local<A>) r.put({LOCAL, (int64_t)A::loc, (int64_t)given.address(), element<std::remove_cv_t<typename A::Pointee>>()});
    else if constexpr (std::is_same_v<A, Word>) r.put({WORD, given.number});
    else if constexpr (std::is_same_v<A, PostUpdate>) r.put({WORD, -1});
    else operand(r, given);
}
template <int64_t Operation, typename... A> PTOKIT_INLINE void micro(const void* pc, const A&... given)
{
    Record r(MICRO, pc);
    r.put({Operation, (int64_t)sizeof...(A)});
    (micro_operand(r, given), ...);
    r.end();
}
// Moves the pointer among the operands by the number among them.
template <typename... A> PTOKIT_INLINE void move_on(A&... given)
{
    int64_t step = 0;
    auto look = [&]<typename B>(const B& each) { if constexpr (std::is_integral_v<B>) step = (int64_t)each; };
    (look(given), ...);
    auto move = [&]<typename B>(B& each) { if constexpr (is_local<B> && !std::is_const_v<B>) each += step; };
    (move(given), ...);
}
template <typename... A> constexpr bool has_register = (false || ... || std::is_base_of_v<RegisterBase, std::remove_cvref_t<A>>);
}  // namespace ptokit

#define PTOKIT_MICRO(NAME, NUMBER) \
    template <typename... A> requires(::ptokit::has_register<A...>) __attribute__((noinline)) void NAME(A&&... given) \
    { \
        ::ptokit::micro<NUMBER>(__builtin_return_address(0), given...); \
        if constexpr ((false || ... || std::is_same_v<std::remove_cvref_t<A>, ::ptokit::PostUpdate>)) ::ptokit::move_on(given...); \
    }
// A register becomes another one, or keeps the lanes that a mask leaves out.
#define PTOKIT_MICRO_MOVES(SELECT) \
    template <typename T> __attribute__((noinline)) void vmov(::pto::RegTensor<T>& dst, const ::pto::RegTensor<T>& src) \
    { \
        dst.become(src, __builtin_return_address(0)); \
    } \
    template <typename T, typename... Mode> \
    __attribute__((noinline)) void vmov(::pto::RegTensor<T>& dst, const ::pto::RegTensor<T>& src, const ::pto::MaskReg& mask, Mode...) \
    { \
        ::ptokit::micro<SELECT>(__builtin_return_address(0), dst, src, dst, mask); \
    }
#define PTOKIT_MICRO_PLAIN(NAME, NUMBER) \
    template <typename... A> __attribute__((noinline)) void NAME(const A&... given) { ::ptokit::micro<NUMBER>(__builtin_return_address(0), given...); }
#define PTOKIT_MICRO_MASK(NAME, NUMBER) \
    template <typename... A> __attribute__((noinline)) ::pto::MaskReg NAME(const A&... given) \
    { \
        ::pto::MaskReg made; \
        ::ptokit::micro<NUMBER>(__builtin_return_address(0), made, given...); \
        return made; \
    }
// A mask of the first n lanes; n is what is left behind them.
#define PTOKIT_MICRO_FIRST(NAME, NUMBER, BITS) \
    template <typename N> __attribute__((noinline)) ::pto::MaskReg NAME(N&& n, ::ptokit::PostUpdate) \
    { \
        ::pto::MaskReg made; \
        ::ptokit::micro<NUMBER>(__builtin_return_address(0), made, (int64_t)n); \
        if constexpr (!std::is_const_v<std::remove_reference_t<N>>) n = n > 2048 / BITS ? n - 2048 / BITS : 0; \
        return made; \
    }
