// Tests as programs write them with GoogleTest, as far as programs of kernels need it: cases with
// and without fixtures, expectations with messages, a filter and a list. Every case is told to the
// simulator, so that what a launch is found to lack is told with the case that launched it.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>
#include <ptokit/record.hpp>

namespace testing {
class Test;

class TestInfo {
    std::string suite_, name_;
public:
    TestInfo(std::string suite, std::string name) : suite_(std::move(suite)), name_(std::move(name)) {}
    const char* name() const { return name_.c_str(); }
    const char* test_suite_name() const { return suite_.c_str(); }
    const char* test_case_name() const { return suite_.c_str(); }
    std::string full() const { return suite_ + "." + name_; }
};

namespace internal {
struct Case {
    TestInfo info;
    Test* (*make)();
    void (*before_suite)();
    void (*after_suite)();
};
enum Outcome : int64_t { BEGUN, PASSED, FAILED, SKIPPED };  // as the simulator is told

// A pattern with * and ?, as filters have them.
inline bool matches(const char* pattern, const char* text)
{
    if (*pattern == 0) return *text == 0;
    if (*pattern == '*') return matches(pattern + 1, text) || (*text && matches(pattern, text + 1));
    return *text && (*pattern == '?' || *pattern == *text) && matches(pattern + 1, text + 1);
}
inline bool matches_any(const std::string& patterns, const std::string& text)
{
    std::stringstream all(patterns);
    for (std::string each; std::getline(all, each, ':');)
        if (matches(each.c_str(), text.c_str())) return true;
    return false;
}
}  // namespace internal

class UnitTest {
    const TestInfo* current_ = nullptr;
    bool failed_ = false, fatal_ = false, skipped_ = false;
public:
    std::vector<internal::Case> cases;
    std::vector<std::string> traces;  // what failures are told with, the innermost last
    std::string filter = "*";
    bool lists = false;
    static UnitTest* GetInstance()
    {
        static UnitTest* only = new UnitTest;
        return only;
    }
    const TestInfo* current_test_info() const { return current_; }
    void fail(bool fatal) { failed_ = true, fatal_ = fatal_ || fatal; }
    void skip() { skipped_ = true; }
    bool has_failed() const { return failed_; }
    bool has_failed_fatally() const { return fatal_; }
    bool is_skipped() const { return skipped_; }
    int Run();
private:
    bool is_chosen(const std::string& name) const
    {
        size_t minus = filter.find('-');
        std::string wanted = filter.substr(0, minus);
        bool refused = minus != std::string::npos && internal::matches_any(filter.substr(minus + 1), name);
        return (wanted.empty() || internal::matches_any(wanted, name)) && !refused;
    }
    static void tell(const std::string& name, internal::Outcome outcome)
    {
        ptokit::Record r(ptokit::CASE, __builtin_return_address(0));
        r.put({(int64_t)name.c_str(), outcome});
        r.ask();
    }
    internal::Outcome run_one(internal::Case& each);
    // Cases of a suite run together, suites in the order in which they were met.
    size_t first_of(const internal::Case* each) const
    {
        size_t at = 0;
        while (std::strcmp(cases[at].info.test_suite_name(), each->info.test_suite_name()) != 0) at++;
        return at;
    }
};

class Test {
public:
    virtual ~Test() = default;
    static void SetUpTestSuite() {}
    static void TearDownTestSuite() {}
    static void SetUpTestCase() {}
    static void TearDownTestCase() {}
    static bool HasFailure() { return UnitTest::GetInstance()->has_failed(); }
    static bool HasFatalFailure() { return UnitTest::GetInstance()->has_failed_fatally(); }
    static bool IsSkipped() { return UnitTest::GetInstance()->is_skipped(); }
    virtual void TestBody() = 0;
    virtual void SetUp() {}
    virtual void TearDown() {}
};

class Message {
    std::ostringstream text_;
public:
    template <typename T> Message& operator<<(const T& value)
    {
        text_ << value;
        return *this;
    }
    Message& operator<<(std::ostream& (*manipulator)(std::ostream&))
    {
        text_ << manipulator;
        return *this;
    }
    std::string text() const { return text_.str(); }
};

namespace internal {
template <typename T> std::string shown(const T& value)
{
    std::ostringstream out;
    if constexpr (requires { out << value; }) out << value;
    else if constexpr (std::is_enum_v<T>) out << (long long)value;
    else out << sizeof(T) << " bytes";
    return out.str();
}

// Takes the message of a failure: `Failure(...) = Message() << ...` has no value, and can be returned.
struct Failure {
    enum Kind { GOES_ON, ENDS, SKIPS } kind;
    const char* file;
    int line;
    std::string what;
    void operator=(const Message& more) const
    {
        UnitTest* all = UnitTest::GetInstance();
        kind == SKIPS ? all->skip() : all->fail(kind == ENDS);
        std::fflush(stdout);
        std::cout << file << ":" << line << ": " << (kind == SKIPS ? "Skipped" : "Failure") << "\n";
        if (!what.empty()) std::cout << what << "\n";
        if (!more.text().empty()) std::cout << more.text() << "\n";
        for (auto at = all->traces.rbegin(); at != all->traces.rend(); ++at) std::cout << *at << "\n";
        std::cout << std::flush;
    }
};

struct ScopedTrace {
    ScopedTrace(const char* file, int line, const Message& what)
    {
        UnitTest::GetInstance()->traces.push_back(std::string(file) + ":" + std::to_string(line) + ": " + what.text());
    }
    ~ScopedTrace() { UnitTest::GetInstance()->traces.pop_back(); }
};

struct Verdict {
    bool holds;
    std::string what;
    explicit operator bool() const { return holds; }
};
template <typename A, typename B, typename F>
Verdict compared(const char* a_text, const char* sign, const char* b_text, const A& a, const B& b, F holds)
{
    if (holds(a, b)) return {true, {}};
    return {false, std::string("expected: ") + a_text + " " + sign + " " + b_text + "\n  " + shown(a) + " against " + shown(b)};
}
template <typename T> bool is_near_float(T a, T b)  // at most four steps apart
{
    using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    if (std::isnan(a) || std::isnan(b)) return false;
    auto ordered = [](T x) {
        Bits bits = __builtin_bit_cast(Bits, x);
        return bits < 0 ? std::numeric_limits<Bits>::min() - bits : bits;
    };
    long double apart = (long double)ordered(a) - (long double)ordered(b);
    return apart <= 4 && apart >= -4;
}
inline bool add(const char* suite, const char* name, Test* (*make)(), void (*before)(), void (*after)())
{
    UnitTest::GetInstance()->cases.push_back({TestInfo(suite, name), make, before, after});
    return true;
}
template <typename T> Test* made() { return new T; }
template <typename Fixture> void before_suite() { Fixture::SetUpTestSuite(), Fixture::SetUpTestCase(); }
template <typename Fixture> void after_suite() { Fixture::TearDownTestCase(), Fixture::TearDownTestSuite(); }
}  // namespace internal

inline internal::Outcome UnitTest::run_one(internal::Case& each)
{
    current_ = &each.info;
    failed_ = fatal_ = skipped_ = false;
    tell(each.info.full(), internal::BEGUN);
    std::unique_ptr<Test> test(each.make());
    try {
        test->SetUp();
        if (!fatal_ && !skipped_) test->TestBody();
        test->TearDown();
    } catch (const std::exception& error) {
        internal::Failure{internal::Failure::GOES_ON, each.info.name(), 0, std::string("it throws: ") + error.what()} = Message();
    }
    internal::Outcome outcome = failed_ ? internal::FAILED : skipped_ ? internal::SKIPPED : internal::PASSED;
    tell(each.info.full(), outcome);
    current_ = nullptr;
    return outcome;
}

inline int UnitTest::Run()
{
    std::vector<internal::Case*> chosen;
    for (auto& each : cases)
        if (is_chosen(each.info.full())) chosen.push_back(&each);
    std::stable_sort(chosen.begin(), chosen.end(), [this](auto* a, auto* b) { return first_of(a) < first_of(b); });
    if (lists) {
        std::string suite;
        for (auto* each : chosen) {
            if (suite != each->info.test_suite_name()) std::cout << (suite = each->info.test_suite_name()) << ".\n";
            std::cout << "  " << each->info.name() << "\n";
        }
        std::cout << std::flush;
        return 0;
    }
    std::vector<std::string> failed;
    for (size_t i = 0; i < chosen.size(); i++) {
        auto& each = *chosen[i];
        std::string name = each.info.full(), suite = each.info.test_suite_name();
        if (i == 0 || suite != chosen[i - 1]->info.test_suite_name()) each.before_suite();
        std::cout << "[ RUN      ] " << name << std::endl;
        internal::Outcome outcome = run_one(each);
        std::fflush(stdout);
        const char* word = outcome == internal::PASSED ? "       OK" : outcome == internal::SKIPPED ? "  SKIPPED" : "  FAILED ";
        std::cout << "[" << word << " ] " << name << std::endl;
        if (outcome == internal::FAILED) failed.push_back(name);
        if (i + 1 == chosen.size() || suite != chosen[i + 1]->info.test_suite_name()) each.after_suite();
    }
    std::cout << "[  PASSED  ] " << chosen.size() - failed.size() << " of " << chosen.size() << std::endl;
    for (auto& name : failed) std::cout << "[  FAILED  ] " << name << std::endl;
    return failed.empty() ? 0 : 1;
}

inline void InitGoogleTest(int* argc, char** argv)
{
    UnitTest* all = UnitTest::GetInstance();
    int kept = *argc > 0 ? 1 : 0;
    for (int i = kept; i < *argc; i++) {
        std::string word = argv[i];
        if (word.rfind("--gtest_filter=", 0) == 0) all->filter = word.substr(15);
        else if (word == "--gtest_list_tests") all->lists = true;
        else if (word.rfind("--gtest_", 0) == 0) std::cerr << word << " is not known here, and has no effect\n";
        else argv[kept++] = argv[i];
    }
    *argc = kept;
}
inline void InitGoogleTest() {}
}  // namespace testing

inline int RUN_ALL_TESTS() { return testing::UnitTest::GetInstance()->Run(); }

// What runs where a program of tests has no main of its own.
extern "C" __attribute__((weak, visibility("default"))) int ptokit_main_of_tests(int argc, char** argv)
{
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}

#define PTOKIT_TEST(SUITE, NAME, FIXTURE) \
    struct SUITE##_##NAME##_Test : FIXTURE { \
        void TestBody() override; \
    }; \
    static const bool ptokit_listed_##SUITE##_##NAME = ::testing::internal::add(#SUITE, #NAME, &::testing::internal::made<SUITE##_##NAME##_Test>, \
        &::testing::internal::before_suite<FIXTURE>, &::testing::internal::after_suite<FIXTURE>); \
    void SUITE##_##NAME##_Test::TestBody()
#define TEST(SUITE, NAME) PTOKIT_TEST(SUITE, NAME, ::testing::Test)
#define TEST_F(FIXTURE, NAME) PTOKIT_TEST(FIXTURE, NAME, FIXTURE)
#define PTOKIT_NO_SUCH(WHAT) static_assert(sizeof(int) == 0, "this stand-in for GoogleTest has no " #WHAT ": write TEST or TEST_F")
#define TEST_P(...) PTOKIT_NO_SUCH(TEST_P); void ptokit_unused()
#define TYPED_TEST(...) PTOKIT_NO_SUCH(TYPED_TEST); void ptokit_unused()
#define TYPED_TEST_SUITE(...) PTOKIT_NO_SUCH(TYPED_TEST_SUITE)
#define INSTANTIATE_TEST_SUITE_P(...) PTOKIT_NO_SUCH(INSTANTIATE_TEST_SUITE_P)

#define PTOKIT_FAILURE(KIND, WHAT) ::testing::internal::Failure{::testing::internal::Failure::KIND, __FILE__, __LINE__, WHAT} = ::testing::Message()
#define PTOKIT_EXPECT(VERDICT) \
    if (::testing::internal::Verdict ptokit_verdict = VERDICT) { \
    } else PTOKIT_FAILURE(GOES_ON, ptokit_verdict.what)
#define PTOKIT_ASSERT(VERDICT) \
    if (::testing::internal::Verdict ptokit_verdict = VERDICT) { \
    } else return PTOKIT_FAILURE(ENDS, ptokit_verdict.what)
#define PTOKIT_TRUTH(A, WANTED) ::testing::internal::Verdict{static_cast<bool>(A) == WANTED, #A " is not " #WANTED}
#define PTOKIT_COMPARED(A, SIGN, B) \
    ::testing::internal::compared(#A, #SIGN, #B, A, B, [](const auto& ptokit_a, const auto& ptokit_b) -> bool { return ptokit_a SIGN ptokit_b; })
#define PTOKIT_FLOATS(A, B, T) \
    ::testing::internal::compared(#A, "~", #B, static_cast<T>(A), static_cast<T>(B), ::testing::internal::is_near_float<T>)
#define PTOKIT_NEAR(A, B, MOST) \
    ::testing::internal::compared(#A, "near", #B, A, B, [&](auto ptokit_a, auto ptokit_b) { return std::fabs(double(ptokit_a) - double(ptokit_b)) <= (MOST); })
#define PTOKIT_TEXTS(A, SIGN, B) \
    ::testing::internal::compared(#A, #SIGN, #B, std::string(A), std::string(B), [](const auto& ptokit_a, const auto& ptokit_b) { return ptokit_a SIGN ptokit_b; })

#define EXPECT_TRUE(A) PTOKIT_EXPECT(PTOKIT_TRUTH(A, true))
#define EXPECT_FALSE(A) PTOKIT_EXPECT(PTOKIT_TRUTH(A, false))
#define EXPECT_EQ(A, B) PTOKIT_EXPECT(PTOKIT_COMPARED(A, ==, B))
#define EXPECT_NE(A, B) PTOKIT_EXPECT(PTOKIT_COMPARED(A, !=, B))
#define EXPECT_LT(A, B) PTOKIT_EXPECT(PTOKIT_COMPARED(A, <, B))
#define EXPECT_LE(A, B) PTOKIT_EXPECT(PTOKIT_COMPARED(A, <=, B))
#define EXPECT_GT(A, B) PTOKIT_EXPECT(PTOKIT_COMPARED(A, >, B))
#define EXPECT_GE(A, B) PTOKIT_EXPECT(PTOKIT_COMPARED(A, >=, B))
#define EXPECT_FLOAT_EQ(A, B) PTOKIT_EXPECT(PTOKIT_FLOATS(A, B, float))
#define EXPECT_DOUBLE_EQ(A, B) PTOKIT_EXPECT(PTOKIT_FLOATS(A, B, double))
#define EXPECT_NEAR(A, B, MOST) PTOKIT_EXPECT(PTOKIT_NEAR(A, B, MOST))
#define EXPECT_STREQ(A, B) PTOKIT_EXPECT(PTOKIT_TEXTS(A, ==, B))
#define EXPECT_STRNE(A, B) PTOKIT_EXPECT(PTOKIT_TEXTS(A, !=, B))
#define ASSERT_TRUE(A) PTOKIT_ASSERT(PTOKIT_TRUTH(A, true))
#define ASSERT_FALSE(A) PTOKIT_ASSERT(PTOKIT_TRUTH(A, false))
#define ASSERT_EQ(A, B) PTOKIT_ASSERT(PTOKIT_COMPARED(A, ==, B))
#define ASSERT_NE(A, B) PTOKIT_ASSERT(PTOKIT_COMPARED(A, !=, B))
#define ASSERT_LT(A, B) PTOKIT_ASSERT(PTOKIT_COMPARED(A, <, B))
#define ASSERT_LE(A, B) PTOKIT_ASSERT(PTOKIT_COMPARED(A, <=, B))
#define ASSERT_GT(A, B) PTOKIT_ASSERT(PTOKIT_COMPARED(A, >, B))
#define ASSERT_GE(A, B) PTOKIT_ASSERT(PTOKIT_COMPARED(A, >=, B))
#define ASSERT_FLOAT_EQ(A, B) PTOKIT_ASSERT(PTOKIT_FLOATS(A, B, float))
#define ASSERT_DOUBLE_EQ(A, B) PTOKIT_ASSERT(PTOKIT_FLOATS(A, B, double))
#define ASSERT_NEAR(A, B, MOST) PTOKIT_ASSERT(PTOKIT_NEAR(A, B, MOST))
#define ASSERT_STREQ(A, B) PTOKIT_ASSERT(PTOKIT_TEXTS(A, ==, B))
#define ASSERT_STRNE(A, B) PTOKIT_ASSERT(PTOKIT_TEXTS(A, !=, B))
#define PTOKIT_NAMED(A, B) A##B
#define PTOKIT_TRACE(MESSAGE, LINE) ::testing::internal::ScopedTrace PTOKIT_NAMED(ptokit_trace_, LINE)(__FILE__, LINE, ::testing::Message() << MESSAGE)
#define SCOPED_TRACE(MESSAGE) PTOKIT_TRACE(MESSAGE, __LINE__)
#define ADD_FAILURE() PTOKIT_FAILURE(GOES_ON, "")
#define FAIL() return PTOKIT_FAILURE(ENDS, "")
#define SUCCEED() static_cast<void>(0)
#define GTEST_SKIP() return PTOKIT_FAILURE(SKIPS, "")
