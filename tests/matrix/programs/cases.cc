// Frames as C++ compilers create them.
#include "stay.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <unwind.h>
#include <vector>

namespace {

volatile int some = 40;

// ---- Names ----

namespace inner {

template <typename Number, int Times> struct Shape {
    virtual ~Shape() = default;
    virtual Number area(Number number) const = 0;
    Number operator()(Number number) const
    {
        return area(number) * Times;
    }
};

struct Square : Shape<long, 3> {
    __attribute__((noinline)) long area(long number) const override
    {
        stay();
        return number * number;
    }
};

} // namespace inner

__attribute__((noinline)) void in_method()
{
    inner::Square square;
    const inner::Shape<long, 3> &shape = square;
    some = static_cast<int>(shape(some));
}

__attribute__((noinline)) void in_lambda()
{
    std::function<int(int)> twice = [](int number) {
        stay();
        return number + some;
    };
    some = twice(some);
}

__attribute__((noinline)) void in_sort()
{
    std::vector<std::string> words = {"b", "c", "a", "d"};
    std::sort(words.begin(), words.end(), [](const std::string &left, const std::string &right) {
        stay();
        return left < right;
    });
    some = static_cast<int>(words.size());
}

template <typename... Kinds> __attribute__((noinline)) int total(Kinds... numbers)
{
    stay();
    return (0 + ... + static_cast<int>(numbers));
}

__attribute__((noinline)) void in_template()
{
    some = total(1, 2L, 3.0, some);
}

__attribute__((noinline)) void in_thread()
{
    const int spins = stay_spins;
    char name[16];
    pthread_getname_np(pthread_self(), name, sizeof name);
    std::thread thread([=](std::map<int, std::string> numbers) {
        std::string own = std::string("std_") + name;
        stay_spins = spins;
        pthread_setname_np(pthread_self(), own.c_str());
        stay();
        some = static_cast<int>(numbers.size());
    }, std::map<int, std::string>());
    thread.join();
}

// ---- Exceptions ----

struct Guard {
    __attribute__((noinline)) ~Guard()
    {
        stay();
        STAY_GO_ON();
    }
};

__attribute__((noinline)) void throws()
{
    if (some)
        throw std::runtime_error("thrown");
}

__attribute__((noinline)) void passes()
{
    Guard guard;
    throws();
    STAY_GO_ON();
}

// During unwinding.
__attribute__((noinline)) void in_destructor()
{
    try {
        passes();
    } catch (const std::exception &) {
        some = some + 1;
    }
}

__attribute__((noinline)) void in_catch()
{
    try {
        throws();
    } catch (const std::exception &) {
        stay();
        STAY_GO_ON();
    }
}

struct Copied {
    Copied() = default;
    __attribute__((noinline)) Copied(const Copied &)
    {
        stay();
        STAY_GO_ON();
    }
};

// While the exception is thrown.
__attribute__((noinline)) void in_throw()
{
    static Copied copied;
    try {
        throw copied;
    } catch (const Copied &) {
        some = some + 1;
    }
}

// While the library unwinds.
_Unwind_Reason_Code look(struct _Unwind_Context *, void *depth)
{
    if (++*static_cast<int *>(depth) == 2)
        stay();
    return _URC_NO_REASON;
}

__attribute__((noinline)) void in_backtrace()
{
    int depth = 0;
    _Unwind_Backtrace(look, &depth);
    some = depth;
}

_Unwind_Reason_Code stop(int, _Unwind_Action, _Unwind_Exception_Class, struct _Unwind_Exception *,
                         struct _Unwind_Context *, void *)
{
    stay();
    return _URC_NO_REASON;
}

__attribute__((noinline)) void in_forced()
{
    static thread_local struct _Unwind_Exception exception;
    _Unwind_ForcedUnwind(&exception, stop, nullptr);
    STAY_GO_ON();
}

} // namespace

int main()
{
    static const struct place places[] = {
        {"method", in_method, 0}, {"lambda", in_lambda, 0},         {"sort", in_sort, 0},
        {"template", in_template, 0}, {"thread", in_thread, 0},     {"destructor", in_destructor, 0},
        {"catch", in_catch, 0},   {"throw", in_throw, 0},           {"backtrace", in_backtrace, 0},
        {"forced", in_forced, 0},
    };
    return stay_start(places, sizeof places / sizeof *places);
}
