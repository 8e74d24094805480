// The seam between a kernel and the simulator: every call of an instruction becomes one record.
//
// Records are collected and handed over together, at the latest where a value comes back. A record
// is: its length in words, a code, the place of the call and of its callers, and what the code asks
// for (native/records.py reads them).
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <limits>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <utility>

extern "C" {
// Carries out `count` words of records and returns what the last one gives back.
typedef int64_t (*ptokit_carry_out_t)(const int64_t* words, int64_t count);
__attribute__((visibility("default"), weak)) ptokit_carry_out_t ptokit_carry_out = nullptr;
}

// Helpers of kernels are not inlined, so that a line has its callers; what records is.
#define PTOKIT_INLINE inline __attribute__((always_inline))
// What all instances of templates call, so that each of them is small: most of the time of a compiler goes there.
#define PTOKIT_SHARED __attribute__((noinline, no_sanitize("thread")))

// The first and the last byte of the code of this library.
extern "C" const char __ehdr_start __attribute__((visibility("hidden")));
extern "C" const char _etext __attribute__((visibility("hidden")));

namespace ptokit {
struct Stopped {};  // thrown through the frames of a kernel that was stopped; never leaves it

enum Operand : int64_t { TILE = 1, TENSOR, CONV, INTEGER, REAL, FLAG, ENUM, POINTER, EVENT, FIFO, OBJECT, GROUP, SESSION, TRIGGER, CONTEXT };
enum Service : int64_t { LAUNCH = -1, QUERY = -2, EVENT_NEW = -3, EVENT_RECORD = -4, EVENT_WAIT = -5, FIFO_NEW = -6,
    ALLOCATE = -7, RELEASE = -8, OP_BARRIER = -10, ASSERTION = -11, TRAP = -12, CASE = -13, PRINTED = -14, MFIFO_NEW = -20, FIFO_END = -21, FIFO_CLOSE = -22,
    SESSION_SDMA = -30, SESSION_URMA = -31, TRANSFER_FIELD = -32, TRANSFER_WAIT = -33, TRANSFER_TEST = -34,
    SCOPE_BEGIN = -40, SCOPE_END = -41, MICRO = -42, MICRO_MOVE = -43 };
// What happens at an end of a FIFO beside the instructions.
enum AtEnd : int64_t { END_ENTRY, END_OFFSET, END_WAITS, END_SIGNALS, END_WAIT, END_SIGNAL };

// A value that is stored behind its record: where it lies, its bytes, and its word in the ring.
struct LateValue {
    const void* at;
    int64_t size, word;
    __attribute__((no_sanitize("thread"))) int64_t take()
    {
        int64_t value = size == 1 ? *(const int8_t*)at : size == 2 ? *(const int16_t*)at : size == 4 ? *(const int32_t*)at : *(const int64_t*)at;
        size = 0;
        return value;
    }
};
__attribute__((visibility("hidden"))) inline LateValue late_value = {nullptr, 0, 0};
// A kernel was stopped where nothing can be thrown: it is as soon as something can.
__attribute__((visibility("hidden"))) inline bool is_stopping = false;

// What whoever looks after this process sees of it, also when it has crashed or goes round for ever.
struct Trace {
    int64_t last[3] = {0, 0, 0};  // the place of the last record that was begun
    int64_t moves = 0;  // records begun, and carried out
    int64_t inside = 0;  // whether code of a kernel runs, not of the simulator or of the host
    int64_t failed = 0;  // whether a launch has failed since the host has synchronised
};
inline Trace own_trace;
// Memory that is shared with that process, once the simulator has put it here.
extern "C" __attribute__((visibility("default"), weak)) Trace* ptokit_trace = &own_trace;

struct Ring {
    static constexpr int64_t room = 8192, longest = 512;  // in words; no capitals: macros of kernels have those
    int64_t words[room];
    int64_t count = 0;
    int64_t carry_out()
    {
        if (late_value.size) words[late_value.word] = late_value.take();
        if (is_stopping) {
            is_stopping = false, count = 0;
            throw Stopped{};
        }
        int64_t n = count, inside = ptokit_trace->inside;
        count = 0;  // others may run, and record, before this returns
        ptokit_trace->inside = 0;
        int64_t value = ptokit_carry_out(words, n);
        ptokit_trace->inside = inside, ptokit_trace->moves += 1;
        // A value may look like that, too: where it means the end, the first word says so.
        if (value == std::numeric_limits<int64_t>::min() && words[0] < 0) throw Stopped{};
        return value;
    }
};
// Records of this library. Hidden: each core's code collects its own.
__attribute__((visibility("hidden"))) inline Ring the_ring;
constexpr Ring* ptokit_ring = &the_ring;
// Hands over what is left: called behind main, and behind a kernel that may have called code in here.
extern "C" __attribute__((visibility("default"), weak)) void ptokit_finish()
{
    try {
        if (ptokit_ring->count) ptokit_ring->carry_out();
    } catch (Stopped&) {
    }
}

class Record {
    int64_t start_;
public:
    PTOKIT_SHARED Record(int64_t code, const void* pc)
    {
        if (ptokit_ring->count + Ring::longest > Ring::room) ptokit_ring->carry_out();
        start_ = ptokit_ring->count;
        ptokit_ring->count += 1;  // the length
        add(code);
        place(pc);
    }
    PTOKIT_SHARED void put(int64_t a) { add(a); }
    PTOKIT_SHARED void put(int64_t a, int64_t b) { add(a), add(b); }
    PTOKIT_SHARED void put(int64_t a, int64_t b, int64_t c) { add(a), add(b), add(c); }
    PTOKIT_SHARED void put(const int64_t* all, int64_t count) { for (int64_t i = 0; i < count; i++) add(all[i]); }
    PTOKIT_INLINE void put(std::initializer_list<int64_t> all) { put(all.begin(), (int64_t)all.size()); }
    PTOKIT_SHARED void real(double value) { int64_t bits; std::memcpy(&bits, &value, 8); add(bits); }
    PTOKIT_SHARED void end() { ptokit_ring->words[start_] = ptokit_ring->count - start_; }
    PTOKIT_SHARED int64_t ask() { end(); return ptokit_ring->carry_out(); }
private:
    PTOKIT_INLINE __attribute__((no_sanitize("thread"))) static void add(int64_t word) { ptokit_ring->words[ptokit_ring->count++] = word; }
    // The call and the two around it: helpers hide the line that matters.
    PTOKIT_SHARED void place(const void* pc)
    {
        const void* callers[2] = {nullptr, nullptr};
        void* const* frame = static_cast<void* const*>(__builtin_frame_address(0));
        int found = -1;  // after the call
        for (int depth = 0; depth < 8 && found < 2; depth++) {
            const void* back = frame[1];
            if (back < &__ehdr_start || back >= &_etext) break;  // frames of others have no order
            if (found >= 0) callers[found++] = back;
            else if (back == pc) found = 0;
            frame = static_cast<void* const*>(frame[0]);
        }
        int64_t* last = ptokit_trace->last;
        ptokit_trace->moves += 1;
        last[0] = (int64_t)pc, last[1] = (int64_t)callers[0], last[2] = (int64_t)callers[1];
        add(last[0]), add(last[1]), add(last[2]);
    }
};

inline int64_t query(int64_t what)
{
    Record r(QUERY, __builtin_return_address(0));
    r.put(what);
    return r.ask();
}

// ---- kernels ------------------------------------------------------------------------------------
// Both kinds of core compile the same source; the parts of a launch find each other by type.
struct Part {
    const char* name;
    void (*run)(void*);
    Part* next;
};
extern "C" __attribute__((visibility("default"), weak)) Part* ptokit_parts = nullptr;

// Calls code of a kernel, and hands over what it leaves.
template <typename F> void run_kernel(F&& code)
{
    ptokit_trace->inside = 1;
    try {
        code();
        ptokit_ring->carry_out();
    } catch (Stopped&) {
        ptokit_ring->count = 0;  // what destructors have asked for meanwhile is of no use
    }
    ptokit_trace->inside = 0;
}

// Hidden: libraries with the code of other cores have parts of the same name.
template <typename F> struct __attribute__((visibility("hidden"))) Body {
    static void run(void* closure)
    {
        run_kernel(*static_cast<F*>(closure));
    }
    static Part* list()
    {
        static Part part{typeid(F).name(), &run, ptokit_parts};
        return ptokit_parts = &part;
    }
    static inline Part* const listed = list();
};

struct Launch {
    int64_t blocks, count = -1;  // arguments that are told, with their kinds; -1: they are not
    static constexpr int64_t most = 64;
    int64_t told[2 * most];
    enum Kind : int64_t { OTHER, NUMBER, ADDRESS };
    template <typename... Rest> Launch(int64_t n, Rest&&...) : blocks(n) {}
    // What a launch is given, by a function that hands it over: from that it is known again.
    template <typename F> Launch& given(F hand_over)
    {
        hand_over([this](auto... values) {
            count = 0;
            (tell(values), ...);
        });
        return *this;
    }
    template <typename F> __attribute__((noinline)) void operator+(F closure) const
    {
        (void)Body<F>::listed;
        Record r(LAUNCH, __builtin_return_address(0));
        r.put({blocks, (int64_t)typeid(F).name(), (int64_t)&Body<F>::run, (int64_t)&closure, count});
        r.put(told, 2 * (count < 0 ? 0 : count));
        if (r.ask() != 0) ptokit_trace->failed = 1;
    }
private:
    template <typename T> void tell(T value)
    {
        if (count < 0 || count == most) {
            count = -1;
            return;
        }
        int64_t word = 0;
        Kind kind = OTHER;
        if constexpr (std::is_pointer_v<T>) word = (int64_t)value, kind = ADDRESS;
        else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_null_pointer_v<T>) {
            kind = NUMBER;
            if constexpr (sizeof(T) <= sizeof(word)) std::memcpy(&word, &value, sizeof(T));
            else kind = OTHER;
        }
        told[2 * count] = kind, told[2 * count + 1] = word;
        count += 1;
    }
};

// A kernel called with its arguments as words: what `ptokit.cpp` does.
template <typename T> T argument(int64_t word)
{
    T value;
    if constexpr (std::is_pointer_v<T>) value = reinterpret_cast<T>(word);
    else std::memcpy(&value, &word, sizeof(T));
    return value;
}
template <typename... P, size_t... I> void call(void (*kernel)(P...), const int64_t* words, std::index_sequence<I...>)
{
    kernel(argument<std::remove_cv_t<P>>(words[I])...);
}
template <typename... P> void enter(void (*kernel)(P...), const int64_t* words)
{
    run_kernel([&] { call(kernel, words, std::index_sequence_for<P...>{}); });
}
}  // namespace ptokit
