#include "base/machine/machine.h"

#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/files/files.h"
#include "base/threads.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace brisk {

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "VmHWM:   1234 kB" of /proc/self/status, "MemTotal: ..." of /proc/meminfo: in bytes, or 0.
int64_t kilobytes_line(const char* path, const std::string& name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(name + ":")) return std::strtoll(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

int64_t number_in(const std::string& path, int64_t otherwise) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : otherwise;  // "max" is not a number
}

// From memory.stat: page cache, which the kernel reclaims when memory is needed.
int64_t reclaimable_in(const std::string& path) {
  std::ifstream file(path);
  std::string name;
  int64_t value = 0, bytes = 0;
  while (file >> name >> value) {
    if (name == "inactive_file" || name == "active_file") bytes += value;
  }
  return bytes;
}

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

struct CgroupMemory {
  int64_t limit = kNoLimit;
  int64_t used = 0;  // without the page cache, which MemAvailable does not count either
};

// The tightest limit from this process's group up to the root; version 2 of cgroups first, then version 1.
CgroupMemory cgroup_memory() {
  CgroupMemory tightest;
  const auto climb = [&](const std::string& root, std::string group, const char* limit_name, const char* used_name) {
    for (;;) {
      const std::string folder = root + group;
      const int64_t limit = number_in(folder + "/" + limit_name, kNoLimit);
      if (limit > 0 && limit < tightest.limit) {
        const int64_t used = number_in(folder + "/" + used_name, 0);
        tightest = {limit, std::max<int64_t>(0, used - reclaimable_in(folder + "/memory.stat"))};
      }
      if (group.empty() || group == "/") return;
      group = group.substr(0, group.rfind('/'));
    }
  };
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const size_t second_colon = line.find(':', line.find(':') + 1);
    if (second_colon == std::string::npos) continue;
    const std::string group = line.substr(second_colon + 1);
    if (line.starts_with("0::")) climb("/sys/fs/cgroup", group, "memory.max", "memory.current");
    if (line.find(":memory:") != std::string::npos) {
      climb("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes");
    }
  }
  return tightest;
}

#if defined(__x86_64__)
struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

bool bit(unsigned word, int index) { return (word >> index & 1) != 0; }

// The register sets that the operating system saves when it switches threads (XCR0).
uint64_t saved_state() {
  if (!bit(cpuid(1).c, 27)) return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

bool ask_for_amx() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

InstructionSets detect_instruction_sets() {
  InstructionSets sets;
  const Registers basic = cpuid(1), extended = cpuid(7, 0), more = cpuid(7, 1);
  const uint64_t saved = saved_state();
  const bool ymm_saved = (saved & 0x6) == 0x6, zmm_saved = (saved & 0xE6) == 0xE6,
             tiles_saved = (saved & 0x60000) == 0x60000;
  sets.avx2 = ymm_saved && bit(extended.b, 5);
  sets.fma = ymm_saved && bit(basic.c, 12);
  sets.f16c = ymm_saved && bit(basic.c, 29);
  sets.avx512f = zmm_saved && bit(extended.b, 16);
  sets.avx512dq = sets.avx512f && bit(extended.b, 17);
  sets.avx512bw = sets.avx512f && bit(extended.b, 30);
  sets.avx512vl = sets.avx512f && bit(extended.b, 31);
  sets.avx512_vnni = sets.avx512f && bit(extended.c, 11);
  sets.avx512_fp16 = sets.avx512f && bit(extended.d, 23);
  sets.avx512_bf16 = sets.avx512f && bit(more.a, 5);
  sets.amx_tile = tiles_saved && bit(extended.d, 24) && ask_for_amx();
  sets.amx_bf16 = sets.amx_tile && bit(extended.d, 22);
  sets.amx_int8 = sets.amx_tile && bit(extended.d, 25);
  return sets;
}
#else
InstructionSets detect_instruction_sets() { return {}; }
#endif

std::string read_cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname names{};
  return ::uname(&names) == 0 ? names.machine : "unknown";
}

// "0-3,8" has five processors.
int64_t processors_in(const std::string& list) {
  int64_t count = 0;
  std::stringstream stream(list);
  std::string part;
  while (std::getline(stream, part, ',')) {
    const size_t dash = part.find('-');
    const int64_t first = std::strtoll(part.c_str(), nullptr, 10);
    const int64_t last = dash == std::string::npos ? first : std::strtoll(part.c_str() + dash + 1, nullptr, 10);
    count += last - first + 1;
  }
  return std::max<int64_t>(1, count);
}

std::vector<Cache> read_caches() {
  std::vector<Cache> caches;
  for (int index = 0; index < 16; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    const std::string size = first_line(folder + "/size");
    if (size.empty()) break;
    Cache cache;
    cache.level = static_cast<int>(number_in(folder + "/level", 0));
    cache.type = first_line(folder + "/type");
    char* unit = nullptr;
    cache.bytes = std::strtoll(size.c_str(), &unit, 10);
    if (*unit == 'K') cache.bytes <<= 10;
    if (*unit == 'M') cache.bytes <<= 20;
    cache.shared_by = processors_in(first_line(folder + "/shared_cpu_list"));
    caches.push_back(cache);
  }
#if defined(__x86_64__)
  // Some virtual machines and sandboxes have no such folder; the processor itself knows (leaf 4; AMD: 0x8000001D).
  const bool amd = cpuid(0).c == 0x444d4163;  // "cAMD"
  for (unsigned index = 0; caches.empty() || index > 0; ++index) {
    const Registers facts = cpuid(amd ? 0x8000001D : 4, index);
    const unsigned kind = facts.a & 0x1F;
    if (kind == 0 || index >= 16) break;
    constexpr const char* kTypes[] = {"", "Data", "Instruction", "Unified"};
    Cache cache;
    cache.level = static_cast<int>(facts.a >> 5 & 0x7);
    cache.type = kind < 4 ? kTypes[kind] : "unknown";
    cache.bytes = static_cast<int64_t>((facts.b >> 22) + 1) * ((facts.b >> 12 & 0x3FF) + 1) * ((facts.b & 0xFFF) + 1) *
                  (static_cast<int64_t>(facts.c) + 1);
    cache.shared_by = (facts.a >> 14 & 0xFFF) + 1;
    caches.push_back(cache);
  }
#endif
  std::stable_sort(caches.begin(), caches.end(), [](const Cache& a, const Cache& b) { return a.level < b.level; });
  return caches;
}

// "always [madvise] never": the word in brackets is in force.
std::string read_huge_pages() {
  const std::string line = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t open = line.find('['), close = line.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "unknown";
  return line.substr(open + 1, close - open - 1);
}

}  // namespace

const InstructionSets& instruction_sets() {
  static const InstructionSets sets = detect_instruction_sets();
  return sets;
}

std::vector<std::string> instruction_set_names(const InstructionSets& sets) {
  const std::vector<std::pair<bool, const char*>> all = {{sets.avx2, "avx2"},
                                                         {sets.fma, "fma"},
                                                         {sets.f16c, "f16c"},
                                                         {sets.avx512f, "avx512f"},
                                                         {sets.avx512bw, "avx512bw"},
                                                         {sets.avx512dq, "avx512dq"},
                                                         {sets.avx512vl, "avx512vl"},
                                                         {sets.avx512_vnni, "avx512_vnni"},
                                                         {sets.avx512_bf16, "avx512_bf16"},
                                                         {sets.avx512_fp16, "avx512_fp16"},
                                                         {sets.amx_tile, "amx_tile"},
                                                         {sets.amx_bf16, "amx_bf16"},
                                                         {sets.amx_int8, "amx_int8"}};
  std::vector<std::string> names;
  for (const auto& [present, name] : all) {
    if (present) names.emplace_back(name);
  }
  return names;
}

Machine read_machine() {
  Machine machine;
  machine.cpu_model = read_cpu_model();
  machine.cores = available_cores();
  machine.logical_processors = std::max(1u, std::thread::hardware_concurrency());
  if (const long online = ::sysconf(_SC_NPROCESSORS_ONLN); online > 0) machine.logical_processors = online;
  machine.instructions = instruction_sets();
  machine.caches = read_caches();
  machine.memory_total_bytes = memory_total();
  machine.memory_available_bytes = memory_available();
  machine.huge_pages = read_huge_pages();
  utsname names{};
  if (::uname(&names) == 0) machine.system = std::string(names.sysname) + " " + names.release;
  return machine;
}

int64_t memory_total() { return std::min(kilobytes_line("/proc/meminfo", "MemTotal"), cgroup_memory().limit); }

int64_t memory_available() {
  const CgroupMemory group = cgroup_memory();
  const int64_t left_in_group = group.limit == kNoLimit ? kNoLimit : std::max<int64_t>(0, group.limit - group.used);
  return std::min(kilobytes_line("/proc/meminfo", "MemAvailable"), left_in_group);
}

int64_t peak_memory_bytes() { return kilobytes_line("/proc/self/status", "VmHWM"); }
int64_t own_memory_bytes() { return kilobytes_line("/proc/self/status", "RssAnon"); }

namespace {
const auto loaded_at = std::chrono::steady_clock::now();

// From /proc/self/stat, whose 22nd field is the start of the process in ticks since boot; negative if it cannot be
// read.
double seconds_by_proc() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');  // the program's name may contain spaces
  if (name_end == std::string::npos) return -1;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  timespec now{};
  const long ticks = ::sysconf(_SC_CLK_TCK);
  if (!fields || ticks <= 0 || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return -1;
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         std::strtod(field.c_str(), nullptr) / static_cast<double>(ticks);
}
}  // namespace

double seconds_since_process_start() {
  const double since_loaded = std::chrono::duration<double>(std::chrono::steady_clock::now() - loaded_at).count();
  const double since_start = seconds_by_proc();
  constexpr double kSlowestLoad = 60;
  return since_start > since_loaded && since_start < since_loaded + kSlowestLoad ? since_start : since_loaded;
}

int64_t disk_free_bytes(const std::string& path) {
  std::filesystem::path place = std::filesystem::absolute(path.empty() ? "." : path);
  while (!file_exists(place.string()) && place.has_parent_path() && place != place.parent_path())
    place = place.parent_path();
  struct statvfs facts {};
  if (::statvfs(place.c_str(), &facts) != 0)
    user_error("{}: cannot determine the free space: {}", path, explain_errno(errno));
  return static_cast<int64_t>(facts.f_bavail) * static_cast<int64_t>(facts.f_frsize);
}

}  // namespace brisk
