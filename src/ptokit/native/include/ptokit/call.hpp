// From the call of an instruction to its record: operands and template arguments as words.
#pragma once
#include "comm.hpp"

namespace ptokit {
template <typename T> consteval int64_t places()
{
    if constexpr (std::is_array_v<T>) return std::extent_v<T>;
    else return 1;
}

PTOKIT_SHARED inline void put_tile(Record& r, const TileBase& given)
{
    r.put(TILE, (int64_t)given.type, given.is_bound ? (int64_t)given.address : TileBase::UNBOUND);
    r.put(given.rows, given.cols, (int64_t)&given);
}
PTOKIT_SHARED inline void put_tensor(Record& r, const TensorBase& given)
{
    r.put(TENSOR, (int64_t)given.type, (int64_t)given.pointer);
    r.put(given.sizes, 5);
    r.put(given.strides, 5);
    r.put((int64_t)&given.pointer);
}
template <typename T> PTOKIT_INLINE void operand(Record& r, const T& given)
{
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_base_of_v<TileBase, U>) put_tile(r, given);
    else if constexpr (std::is_base_of_v<TensorBase, U>) put_tensor(r, given);
    else if constexpr (std::is_base_of_v<ConvBase, U>) {
        r.put({CONV, (int64_t)given.type, given.is_bound ? (int64_t)given.address : TileBase::UNBOUND});
        for (int64_t n : given.shape) r.put(n);
        given.parameters(r);
    } else if constexpr (std::is_array_v<U>) {
        for (const auto& each : given) operand(r, each);
    } else if constexpr (std::is_base_of_v<EventBase, U>) r.put(EVENT, given.handle);
    else if constexpr (std::is_base_of_v<FifoBase, U>) r.put(FIFO, given.handle);
    else if constexpr (std::is_base_of_v<GroupBase, U>)
        r.put({GROUP, (int64_t)given.tensors, (int64_t)sizeof(typename U::value_type), given.nranks, given.rootIdx});
    else if constexpr (std::is_base_of_v<SessionBase, U>) r.put(SESSION, given.session());
    else if constexpr (std::is_base_of_v<ContextBase, U>)
        r.put({CONTEXT, given.session.session(), (int64_t)given.workspace, given.externalSession ? given.externalSession->session() : 0});
    else if constexpr (std::is_same_v<U, pto::comm::CcuTriggerContext>)
        r.put({TRIGGER, (int64_t)given.ckeSlotVA, given.mask, given.selfIdx, (int64_t)given.inputSource});
    else if constexpr (std::is_enum_v<U>) {
        if constexpr (Enumeration<U>::number != 0) r.put(ENUM, Enumeration<U>::number, (int64_t)given);
        else r.put(INTEGER, (int64_t)given);
    } else if constexpr (std::is_same_v<U, bool>) r.put(FLAG, given);
    else if constexpr (std::is_integral_v<U>) r.put(INTEGER, (int64_t)given);
    else if constexpr (std::is_same_v<U, double>) r.put(REAL), r.real(given);
    else if constexpr (std::is_convertible_v<U, float> && !std::is_pointer_v<U>) r.put(REAL), r.real((double)(float)given);
    else if constexpr (std::is_pointer_v<U> && std::is_base_of_v<TileBase, std::remove_pointer_t<U>>) operand(r, *given);
    else if constexpr (std::is_pointer_v<U>) r.put(POINTER, (int64_t)given, element<std::remove_cv_t<std::remove_pointer_t<U>>>());
    else r.put(OBJECT, (int64_t)&given, (int64_t)sizeof(U));
}

template <auto Value> PTOKIT_INLINE void argument(Record& r)
{
    using U = decltype(Value);
    if constexpr (std::is_same_v<U, bool>) r.put(FLAG, Value);
    else if constexpr (std::is_enum_v<U>) r.put(ENUM, Enumeration<U>::number, (int64_t)Value);
    else r.put(INTEGER, (int64_t)Value);
}

// Type arguments say what the operands say, but for parameter sets, which have values of their own.
template <typename... T> struct Types {};
template <typename T> constexpr bool is_parameter_set = requires { T::PTOKIT_VALUES; };
template <typename T> void parameter_set(Record& r)
{
    if constexpr (is_parameter_set<T>) {
        r.put(OBJECT);
        for (int64_t n : T::PTOKIT_VALUES) r.put(n);
    }
}
template <typename... T> consteval int64_t parameter_sets(Types<T...>) { return (0 + ... + (int64_t)is_parameter_set<T>); }
template <typename... T> void put_parameter_sets(Record& r, Types<T...>) { (parameter_set<T>(r), ...); }

// Numbers are read before their record begins: one that lies in global memory has a record of its own.
template <typename T> using Steady = std::conditional_t<std::is_scalar_v<T> || element<T>() != 0, T, const T&>;

template <int64_t Code, bool Asks, typename Given, auto... Values, typename... A> PTOKIT_INLINE int64_t call(const void* pc, const A&... given)
{
    Record r(Code, pc);
    r.put((int64_t)sizeof...(Values) + parameter_sets(Given{}), (int64_t)(0 + ... + places<A>()));
    (argument<Values>(r), ...);
    if constexpr (parameter_sets(Given{}) != 0) put_parameter_sets(r, Given{});
    (operand(r, given), ...);
    if constexpr (Asks) return r.ask();
    r.end();
    return 0;
}
// What a call gives back: most give a name for their end, by which events are recorded.
template <typename R> PTOKIT_INLINE R result(int64_t value)
{
    if constexpr (std::is_same_v<R, pto::comm::AsyncEvent>) {
        auto ask = [value](bool engine) {
            Record r(TRANSFER_FIELD, nullptr);
            r.put({value, engine});
            return r.ask();
        };
        R found((uint64_t)ask(false), (pto::comm::DmaEngine)ask(true));
        found.number = value;
        return found;
    } else if constexpr (std::is_same_v<R, bool>) return value != 0;
    else return {};
}
}  // namespace ptokit

// Template arguments come as values, types, or both in any order: types are collected, values kept.
#define PTOKIT_OPEN(...) __VA_ARGS__
#define PTOKIT_FORM(NAME, CODE, ASKS, RESULT, HEAD, ARGS) \
    template <PTOKIT_OPEN HEAD typename... A> __attribute__((noinline)) RESULT NAME(const A&... given) \
    { \
        return ::ptokit::result<RESULT>( \
            ::ptokit::call<CODE, ASKS, PTOKIT_OPEN ARGS>(__builtin_return_address(0), ::ptokit::Steady<A>(given)...)); \
    }
#define PTOKIT_INSN(NAME, CODE, ASKS, RESULT) PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (typename... E, ), (::ptokit::Types<E...>))
#define PTOKIT_INSN_T(NAME, CODE, ASKS, RESULT) \
    PTOKIT_INSN(NAME, CODE, ASKS, RESULT) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (auto V, auto... W, ), (::ptokit::Types<>, V, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (typename T0, auto V, auto... W, ), (::ptokit::Types<T0>, V, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (typename T0, typename T1, auto V, auto... W, ), (::ptokit::Types<T0, T1>, V, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (typename T0, typename T1, typename T2, auto V, auto... W, ), (::ptokit::Types<T0, T1, T2>, V, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (typename T0, typename T1, typename T2, typename T3, auto V, auto... W, ), (::ptokit::Types<T0, T1, T2, T3>, V, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (typename T0, typename T1, typename T2, typename T3, typename T4, auto V, auto... W, ), (::ptokit::Types<T0, T1, T2, T3, T4>, V, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (typename T0, typename T1, typename T2, typename T3, typename T4, typename T5, auto V, auto... W, ), (::ptokit::Types<T0, T1, T2, T3, T4, T5>, V, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (auto V, typename T0, auto... W, ), (::ptokit::Types<T0>, V, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (auto V, typename T0, typename T1, auto... W, ), (::ptokit::Types<T0, T1>, V, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (auto V, typename T0, typename T1, typename T2, auto... W, ), (::ptokit::Types<T0, T1, T2>, V, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (auto V, typename T0, typename T1, typename T2, typename T3, auto... W, ), (::ptokit::Types<T0, T1, T2, T3>, V, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (auto V, typename T0, typename T1, typename T2, typename T3, typename T4, auto... W, ), (::ptokit::Types<T0, T1, T2, T3, T4>, V, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (auto V, auto V1, typename T0, auto... W, ), (::ptokit::Types<T0>, V, V1, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (auto V, auto V1, typename T0, typename T1, auto... W, ), (::ptokit::Types<T0, T1>, V, V1, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (auto V, auto V1, typename T0, typename T1, typename T2, auto... W, ), (::ptokit::Types<T0, T1, T2>, V, V1, W...)) \
    PTOKIT_FORM(NAME, CODE, ASKS, RESULT, (auto V, auto V1, typename T0, typename T1, typename T2, typename T3, auto... W, ), (::ptokit::Types<T0, T1, T2, T3>, V, V1, W...))
