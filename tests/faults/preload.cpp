// Makes one call of a program fail, or kills the program at it: a library for LD_PRELOAD (tests/faults/run_faults.py).
//
//   BRISK_FAULT_REPORT=counts BRISK_FAULT_KIND=write BRISK_FAULT_AT=17 BRISK_FAULT_ERROR=ENOSPC LD_PRELOAD=... brisk train ...
//
// The 17th write to a file fails; without BRISK_FAULT_AT calls are counted only. BRISK_FAULT_ERROR is a name of errno, or
// `short` (half of the bytes are written or read), `lie` (the same, but the
// program is told that it was all: a damage that run_faults.py must find), `full` (this call and all later ones of the kind fail with ENOSPC), or
// `kill` (half of the bytes are written, then SIGKILL). Counted are calls between the start and the end of main(). The report
// is a mapped file (struct Report), so it is whole however the program ends.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

// glibc's own, under names that need no search.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

// In the order of KINDS in run_faults.py.
enum Kind {
  kWrite,
  kFsync,
  kRename,
  kMmap,
  kOpen,
  kTruncate,
  kMkdir,
  kUnlink,
  kClose,
  kRead,
  kOpenRead,
  kThread,
  kLarge,
  kSmall,
  kSay,  // standard error
  kKinds
};
constexpr const char* kNames[kKinds] = {"write",     "fsync",  "rename", "mmap",  "open",
                                        "ftruncate", "mkdir",  "unlink", "close", "read",
                                        "open_read", "thread", "large",  "small", "say"};
constexpr size_t kLargeBytes = size_t{1} << 20;
constexpr int kFrames = 40;

struct Report {
  uint64_t counts[16];
  uint64_t injected;
  uint64_t frames[kFrames];  // where it was called from, as offsets into the program; 0 outside of it
  char what[512];            // a path, or a number of bytes
};

enum class Mode { error, cut, lie, full, kill };

Report* report = nullptr;
int kind_to_fail = -1, error_to_give = EIO;
uint64_t call_to_fail = 0;
Mode mode = Mode::error;
uintptr_t program_base = 0;
std::atomic<bool> armed{false}, disk_is_full{false};
std::atomic<int> cut_descriptor{-1};
__attribute__((tls_model("initial-exec"))) thread_local bool inside = false;

void note_where() {
  void* frames[kFrames];
  const int count = ::backtrace(frames, kFrames);
  for (int i = 0; i < count; ++i) {
    Dl_info facts{};
    const auto address = reinterpret_cast<uintptr_t>(frames[i]);
    const bool ours = ::dladdr(frames[i], &facts) != 0 && reinterpret_cast<uintptr_t>(facts.dli_fbase) == program_base;
    report->frames[i] = ours ? address - program_base : 0;
  }
}

void note_what(int descriptor, const char* path, size_t bytes) {
  if (path != nullptr) {
    std::strncpy(report->what, path, sizeof(report->what) - 1);
  } else if (descriptor >= 0) {
    char link[64];
    std::snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
    const long length = ::syscall(SYS_readlink, link, report->what, sizeof(report->what) - 1);
    report->what[length > 0 ? length : 0] = '\0';
  } else {
    std::snprintf(report->what, sizeof(report->what), "%zu bytes", bytes);
  }
}

// Counts the call. True: it is the one to fail.
bool is_due(Kind kind, int descriptor, const char* path, size_t bytes = 0) {
  if (!armed.load(std::memory_order_relaxed) || inside || report == nullptr) return false;
  const uint64_t number = __atomic_add_fetch(&report->counts[kind], 1, __ATOMIC_RELAXED);
  if (kind != kind_to_fail) return false;
  if (mode == Mode::full && disk_is_full.load(std::memory_order_relaxed)) return true;
  if (number != call_to_fail) return false;
  inside = true;
  note_where();
  note_what(descriptor, path, bytes);
  report->injected = 1;
  disk_is_full = true;
  inside = false;
  return true;
}

[[noreturn]] void kill_now() {
  ::syscall(SYS_kill, ::getpid(), SIGKILL);
  for (;;) ::pause();
}

template <typename Result>
Result fail() {
  if (mode == Mode::kill) kill_now();
  errno = mode == Mode::full ? ENOSPC : error_to_give;
  return static_cast<Result>(-1);
}

bool is_file(int descriptor) {
  struct stat facts {};
  return ::fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
}

Kind kind_of_write(int descriptor) {
  if (descriptor == STDERR_FILENO) return kSay;
  return armed.load(std::memory_order_relaxed) && is_file(descriptor) ? kWrite : kKinds;
}

// As many bytes as shall be moved; negative: none, and errno is set.
ssize_t bytes_to_move(Kind kind, int descriptor, size_t size) {
  if (kind == kKinds || !is_due(kind, descriptor, nullptr, size)) return static_cast<ssize_t>(size);
  const size_t half = std::max<size_t>(1, size / 2);
  if (mode == Mode::cut || mode == Mode::lie) return static_cast<ssize_t>(half);
  if (mode == Mode::kill && kind == kWrite) {
    cut_descriptor = descriptor;
    return static_cast<ssize_t>(half);
  }
  return fail<ssize_t>();
}

void kill_after(int descriptor) {
  if (cut_descriptor == descriptor) kill_now();
}

bool fails_allocation(size_t size) {
  if (!armed.load(std::memory_order_relaxed)) return false;
  if (!is_due(size >= kLargeBytes ? kLarge : kSmall, -1, nullptr, size)) return false;
  if (mode == Mode::kill) kill_now();
  errno = ENOMEM;
  return true;
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int open_file(int folder, const char* path, int flags, mode_t rights) {
  const bool writes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
  if (is_due(writes ? kOpen : kOpenRead, -1, path)) return fail<int>();
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags, rights));
}

mode_t rights_in(int flags, va_list list) { return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0; }

void set_up() {
  const char* const path = ::getenv("BRISK_FAULT_REPORT");
  if (path == nullptr) return;
  const int file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (file < 0 || ::syscall(SYS_ftruncate, file, sizeof(Report)) != 0) return;
  void* memory = reinterpret_cast<void*>(
      ::syscall(SYS_mmap, nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ::syscall(SYS_close, file);
  if (memory == MAP_FAILED) return;
  report = static_cast<Report*>(memory);
  const char* const kind = ::getenv("BRISK_FAULT_KIND");
  const char* const at = ::getenv("BRISK_FAULT_AT");
  const char* const error = ::getenv("BRISK_FAULT_ERROR");
  for (int i = 0; kind != nullptr && i < kKinds; ++i) {
    if (std::strcmp(kind, kNames[i]) == 0) kind_to_fail = i;
  }
  call_to_fail = at != nullptr ? std::strtoull(at, nullptr, 10) : 0;
  if (error != nullptr) {
    const auto is = [&](const char* name) { return std::strcmp(error, name) == 0; };
    mode = is("short")  ? Mode::cut
           : is("lie")  ? Mode::lie
           : is("full") ? Mode::full
           : is("kill") ? Mode::kill
                        : Mode::error;
    error_to_give = is("ENOSPC")   ? ENOSPC
                    : is("EINTR")  ? EINTR
                    : is("ENOMEM") ? ENOMEM
                    : is("EMFILE") ? EMFILE
                    : is("EAGAIN") ? EAGAIN
                                   : EIO;
  }
  for (const char* name : {"LD_PRELOAD", "BRISK_FAULT_REPORT"}) ::unsetenv(name);  // for this process alone
  void* frames[2];
  ::backtrace(frames, 2);  // loads what it needs
}

using Main = int(int, char**, char**);
Main* program_main = nullptr;

int counted_main(int argc, char** argv, char** environment) {
  Dl_info facts{};
  if (::dladdr(reinterpret_cast<void*>(program_main), &facts) != 0)
    program_base = reinterpret_cast<uintptr_t>(facts.dli_fbase);
  set_up();
  armed = true;
  const int result = program_main(argc, argv, environment);
  armed = false;
  return result;
}

}  // namespace

extern "C" {

int __libc_start_main(Main* main, int argc, char** argv, void (*init)(), void (*fini)(), void (*end)(), void* stack) {
  program_main = main;
  using Start = int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*);
  return next<Start>("__libc_start_main")(counted_main, argc, argv, init, fini, end, stack);
}

void* malloc(size_t size) { return fails_allocation(size) ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
  return fails_allocation(count * size) ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) { return fails_allocation(size) ? nullptr : __libc_realloc(memory, size); }
void* memalign(size_t alignment, size_t size) {
  return fails_allocation(size) ? nullptr : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  void* const found = memalign(alignment, size);
  if (found == nullptr) return ENOMEM;
  *memory = found;
  return 0;
}

ssize_t write(int descriptor, const void* data, size_t size) {
  const ssize_t bytes = bytes_to_move(kind_of_write(descriptor), descriptor, size);
  if (bytes < 0) return -1;
  const ssize_t written = ::syscall(SYS_write, descriptor, data, bytes);
  kill_after(descriptor);
  return mode == Mode::lie && written == bytes ? static_cast<ssize_t>(size) : written;
}
ssize_t pwrite(int descriptor, const void* data, size_t size, off_t offset) {
  const ssize_t bytes = bytes_to_move(kind_of_write(descriptor), descriptor, size);
  if (bytes < 0) return -1;
  const ssize_t written = ::syscall(SYS_pwrite64, descriptor, data, bytes, offset);
  kill_after(descriptor);
  return mode == Mode::lie && written == bytes ? static_cast<ssize_t>(size) : written;
}
ssize_t pwrite64(int descriptor, const void* data, size_t size, off64_t offset) {
  return pwrite(descriptor, data, size, offset);
}
ssize_t writev(int descriptor, const iovec* parts, int count) {
  if (count == 1) return write(descriptor, parts->iov_base, parts->iov_len);
  const Kind kind = kind_of_write(descriptor);
  if (kind != kKinds && is_due(kind, descriptor, nullptr)) {
    if (mode != Mode::cut) return fail<ssize_t>();
    count -= 1;
  }
  return ::syscall(SYS_writev, descriptor, parts, count);
}

ssize_t read(int descriptor, void* data, size_t size) {
  const ssize_t bytes = bytes_to_move(is_file(descriptor) ? kRead : kKinds, descriptor, size);
  return bytes < 0 ? -1 : ::syscall(SYS_read, descriptor, data, bytes);
}
ssize_t pread(int descriptor, void* data, size_t size, off_t offset) {
  const ssize_t bytes = bytes_to_move(is_file(descriptor) ? kRead : kKinds, descriptor, size);
  return bytes < 0 ? -1 : ::syscall(SYS_pread64, descriptor, data, bytes, offset);
}
ssize_t pread64(int descriptor, void* data, size_t size, off64_t offset) {
  return pread(descriptor, data, size, offset);
}

int fsync(int descriptor) {
  return is_due(kFsync, descriptor, nullptr) ? fail<int>() : static_cast<int>(::syscall(SYS_fsync, descriptor));
}
int fdatasync(int descriptor) {
  return is_due(kFsync, descriptor, nullptr) ? fail<int>() : static_cast<int>(::syscall(SYS_fdatasync, descriptor));
}

int rename(const char* from, const char* to) {
  return is_due(kRename, -1, to) ? fail<int>() : static_cast<int>(::syscall(SYS_rename, from, to));
}

void* mmap(void* address, size_t size, int rights, int flags, int descriptor, off_t offset) {
  if ((flags & MAP_ANONYMOUS) != 0) {
    if (fails_allocation(size)) return MAP_FAILED;
  } else if (is_due(kMmap, descriptor, nullptr)) {
    fail<int>();
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, size, rights, flags, descriptor, offset));
}
void* mmap64(void* address, size_t size, int rights, int flags, int descriptor, off64_t offset) {
  return mmap(address, size, rights, flags, descriptor, offset);
}

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t rights = rights_in(flags, list);
  va_end(list);
  return open_file(AT_FDCWD, path, flags, rights);
}
int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t rights = rights_in(flags, list);
  va_end(list);
  return open_file(AT_FDCWD, path, flags, rights);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t rights = rights_in(flags, list);
  va_end(list);
  return open_file(folder, path, flags, rights);
}
int openat64(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t rights = rights_in(flags, list);
  va_end(list);
  return open_file(folder, path, flags, rights);
}
FILE* fopen(const char* path, const char* how) {
  if (is_due(std::strpbrk(how, "wa+") != nullptr ? kOpen : kOpenRead, -1, path)) {
    fail<int>();
    return nullptr;
  }
  return next<FILE*(const char*, const char*)>("fopen")(path, how);
}
FILE* fopen64(const char* path, const char* how) { return fopen(path, how); }

int close(int descriptor) {
  const int flags = armed.load(std::memory_order_relaxed) ? ::fcntl(descriptor, F_GETFL) : -1;
  const bool written = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && is_file(descriptor);
  const bool due = written && is_due(kClose, descriptor, nullptr);
  if (due && mode == Mode::kill) kill_now();
  const auto result = static_cast<int>(::syscall(SYS_close, descriptor));
  return due ? fail<int>() : result;  // the descriptor is closed all the same
}

int ftruncate(int descriptor, off_t size) {
  return is_due(kTruncate, descriptor, nullptr) ? fail<int>()
                                                : static_cast<int>(::syscall(SYS_ftruncate, descriptor, size));
}
int ftruncate64(int descriptor, off64_t size) { return ftruncate(descriptor, size); }

int mkdir(const char* path, mode_t rights) {
  return is_due(kMkdir, -1, path) ? fail<int>() : static_cast<int>(::syscall(SYS_mkdir, path, rights));
}

int unlink(const char* path) {
  return is_due(kUnlink, -1, path) ? fail<int>() : static_cast<int>(::syscall(SYS_unlink, path));
}
int unlinkat(int folder, const char* path, int flags) {
  return is_due(kUnlink, -1, path) ? fail<int>() : static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags));
}
int rmdir(const char* path) {
  return is_due(kUnlink, -1, path) ? fail<int>() : static_cast<int>(::syscall(SYS_rmdir, path));
}
int remove(const char* path) {
  if (is_due(kUnlink, -1, path)) return fail<int>();
  const long result = ::syscall(SYS_unlink, path);
  return static_cast<int>(result != 0 && errno == EISDIR ? ::syscall(SYS_rmdir, path) : result);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  if (is_due(kThread, -1, "thread")) {
    if (mode == Mode::kill) kill_now();
    return EAGAIN;
  }
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  return next<Create>("pthread_create")(thread, attributes, body, argument);
}

}  // extern "C"
