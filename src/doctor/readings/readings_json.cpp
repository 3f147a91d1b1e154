// Readings as JSON and back. Each struct has one list of its fields, which both directions follow; the compiler counts them.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <tuple>
#include <type_traits>

#include "base/error.h"
#include "base/parse_json.h"
#include "doctor/readings/readings.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

template <typename Struct, typename Value>
struct Field {
  const char* name;
  Value Struct::*member;
};

// Fits any field, so that braces full of them count how many an aggregate has.
struct AnyValue {
  template <typename Value>
  operator Value() const;  // NOLINT: never defined
};

template <typename Struct, typename... Values>
constexpr int count_fields() {
  if constexpr (requires { Struct{Values{}..., AnyValue{}}; }) {
    return count_fields<Struct, Values..., AnyValue>();
  } else {
    return sizeof...(Values);
  }
}

template <typename Struct, typename... Value>
constexpr auto field_list(Field<Struct, Value>... field) {
  static_assert(count_fields<Struct>() == sizeof...(Value), "a field of this struct is missing here");
  return std::tuple(field...);
}

template <typename Struct>
constexpr auto fields_of() {
  using S = Struct;
  if constexpr (std::is_same_v<S, MachineReadings>) {
    return field_list(Field{"cpu_model", &S::cpu_model}, Field{"isa", &S::isa}, Field{"cores", &S::cores},
                      Field{"logical_processors", &S::logical_processors}, Field{"quota_cores", &S::quota_cores},
                      Field{"memory_total_bytes", &S::memory_total_bytes},
                      Field{"memory_available_bytes", &S::memory_available_bytes}, Field{"has_bf16", &S::has_bf16},
                      Field{"peak_gflops", &S::peak_gflops}, Field{"product_gflops", &S::product_gflops},
                      Field{"memory_gb_per_second", &S::memory_gb_per_second},
                      Field{"gpu_launch_seconds", &S::gpu_launch_seconds}, Field{"gpus", &S::gpus},
                      Field{"no_gpu", &S::no_gpu}, Field{"visible_devices", &S::visible_devices});
  } else if constexpr (std::is_same_v<S, DataReadings::Bucket>) {
    return field_list(Field{"first", &S::first}, Field{"last", &S::last}, Field{"sequences", &S::sequences});
  } else if constexpr (std::is_same_v<S, DataReadings>) {
    return field_list(Field{"sequences", &S::sequences}, Field{"tokens", &S::tokens}, Field{"longest", &S::longest},
                      Field{"median", &S::median}, Field{"p90", &S::p90}, Field{"p99", &S::p99},
                      Field{"mean", &S::mean}, Field{"lengths", &S::lengths}, Field{"cut", &S::cut},
                      Field{"padded_rows", &S::padded_rows}, Field{"distinct_tokens", &S::distinct_tokens},
                      Field{"file_system", &S::file_system});
  } else if constexpr (std::is_same_v<S, ComponentReadings>) {
    return field_list(Field{"name", &S::name}, Field{"parameters", &S::parameters},
                      Field{"flop_per_token", &S::flop_per_token});
  } else if constexpr (std::is_same_v<S, ModelReadings>) {
    return field_list(Field{"parameters", &S::parameters}, Field{"trained_parameters", &S::trained_parameters},
                      Field{"vocabulary", &S::vocabulary}, Field{"width", &S::width}, Field{"layers", &S::layers},
                      Field{"flop_per_token", &S::flop_per_token}, Field{"components", &S::components},
                      Field{"attention_flop_share", &S::attention_flop_share},
                      Field{"head_flop_share", &S::head_flop_share}, Field{"optimizer_bytes", &S::optimizer_bytes},
                      Field{"optimizer_flop", &S::optimizer_flop}, Field{"precision", &S::precision});
  } else if constexpr (std::is_same_v<S, GpuReadings>) {
    return field_list(Field{"name", &S::name}, Field{"busy_share", &S::busy_share}, Field{"idle_share", &S::idle_share},
                      Field{"copy_share", &S::copy_share}, Field{"kernels_per_step", &S::kernels_per_step},
                      Field{"mean_kernel_seconds", &S::mean_kernel_seconds},
                      Field{"launch_seconds", &S::launch_seconds}, Field{"tensor_core_share", &S::tensor_core_share},
                      Field{"sm_mhz", &S::sm_mhz}, Field{"max_sm_mhz", &S::max_sm_mhz}, Field{"watts", &S::watts},
                      Field{"watt_limit", &S::watt_limit}, Field{"celsius", &S::celsius},
                      Field{"throttled", &S::throttled}, Field{"memory_used_bytes", &S::memory_used_bytes},
                      Field{"memory_bytes", &S::memory_bytes});
  } else if constexpr (std::is_same_v<S, StretchReadings>) {
    return field_list(
        Field{"steps", &S::steps}, Field{"micro_batches", &S::micro_batches}, Field{"sequences", &S::sequences},
        Field{"tokens", &S::tokens}, Field{"rows", &S::rows}, Field{"targets", &S::targets},
        Field{"seconds", &S::seconds}, Field{"median_step_seconds", &S::median_step_seconds},
        Field{"ledger", &S::ledger}, Field{"forwards_per_step", &S::forwards_per_step},
        Field{"user_seconds", &S::user_seconds}, Field{"system_seconds", &S::system_seconds},
        Field{"waiting_seconds", &S::waiting_seconds}, Field{"other_seconds", &S::other_seconds},
        Field{"threads", &S::threads}, Field{"minor_faults", &S::minor_faults}, Field{"major_faults", &S::major_faults},
        Field{"swapped_bytes", &S::swapped_bytes}, Field{"throttled_seconds", &S::throttled_seconds},
        Field{"disk_wait_seconds", &S::disk_wait_seconds}, Field{"peak_memory_bytes", &S::peak_memory_bytes},
        Field{"planned_memory_bytes", &S::planned_memory_bytes}, Field{"gpu", &S::gpu},
        Field{"sequences_per_step", &S::sequences_per_step}, Field{"shortened", &S::shortened});
  } else if constexpr (std::is_same_v<S, CourseReadings>) {
    return field_list(
        Field{"evaluation_seconds", &S::evaluation_seconds}, Field{"evaluations_per_epoch", &S::evaluations_per_epoch},
        Field{"save_seconds", &S::save_seconds}, Field{"saves_per_epoch", &S::saves_per_epoch},
        Field{"sample_seconds", &S::sample_seconds}, Field{"samples_per_epoch", &S::samples_per_epoch},
        Field{"logging_seconds", &S::logging_seconds}, Field{"loggings_per_epoch", &S::loggings_per_epoch},
        Field{"steps_per_epoch", &S::steps_per_epoch}, Field{"epochs", &S::epochs},
        Field{"start_up_seconds", &S::start_up_seconds});
  } else if constexpr (std::is_same_v<S, VitalSigns>) {
    return field_list(Field{"measured", &S::measured}, Field{"tensors", &S::tensors},
                      Field{"tensors_changed", &S::tensors_changed},
                      Field{"tensors_with_gradient", &S::tensors_with_gradient}, Field{"unchanged", &S::unchanged},
                      Field{"without_gradient", &S::without_gradient}, Field{"first_loss", &S::first_loss},
                      Field{"expected_first_loss", &S::expected_first_loss}, Field{"last_loss", &S::last_loss},
                      Field{"loss_finite", &S::loss_finite}, Field{"loss_falling", &S::loss_falling},
                      Field{"forwards_per_step", &S::forwards_per_step}, Field{"target_share", &S::target_share},
                      Field{"examples", &S::examples});
  } else if constexpr (std::is_same_v<S, CurvePoint>) {
    return field_list(Field{"x", &S::x}, Field{"tokens_per_second", &S::tokens_per_second}, Field{"loss", &S::loss},
                      Field{"memory_bytes", &S::memory_bytes});
  } else if constexpr (std::is_same_v<S, HistoryReadings>) {
    return field_list(Field{"training", &S::training}, Field{"validation", &S::validation},
                      Field{"steps_per_epoch", &S::steps_per_epoch}, Field{"best_by", &S::best_by},
                      Field{"rank_communication", &S::rank_communication}, Field{"rank_work", &S::rank_work},
                      Field{"rank_hosts", &S::rank_hosts}, Field{"rank_seconds", &S::rank_seconds});
  } else {
    static_assert(std::is_same_v<S, Readings>, "a struct without a list of its fields");
    return field_list(
        Field{"job", &S::job}, Field{"machine", &S::machine}, Field{"data", &S::data}, Field{"model", &S::model},
        Field{"stretch", &S::stretch}, Field{"course", &S::course}, Field{"vital_signs", &S::vital_signs},
        Field{"batch_curve", &S::batch_curve}, Field{"thread_curve", &S::thread_curve},
        Field{"process_curve", &S::process_curve}, Field{"rate_curve", &S::rate_curve},
        Field{"precision_tokens_per_second", &S::precision_tokens_per_second}, Field{"history", &S::history});
  }
}

// JSON has no number for these.
constexpr std::array<std::pair<const char*, double>, 3> kNotFinite = {
    {{"nan", NAN}, {"infinity", INFINITY}, {"-infinity", -INFINITY}}};

// --- to JSON

template <typename Value>
Json to_json_value(const Value& value);

Json to_json_value(const double& value) {
  if (std::isfinite(value)) return value;
  return kNotFinite[std::isnan(value) ? 0 : value > 0 ? 1 : 2].first;
}
Json to_json_value(const bool& value) { return value; }
Json to_json_value(const int64_t& value) { return value; }
Json to_json_value(const std::string& value) { return value; }
Json to_json_value(const Job& job) { return parse_own_json<Json>(job_to_json_text(job)); }
Json to_json_value(const std::pair<double, double>& pair) {
  return Json::array({to_json_value(pair.first), to_json_value(pair.second)});
}
Json to_json_value(const std::map<std::string, double>& map) {
  Json object = Json::object();
  for (const auto& [key, value] : map) object[key] = to_json_value(value);
  return object;
}
Json to_json_value(const Ledger::Totals& totals) {
  Json phases = Json::object();
  for (int i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    phases[std::string(phase_name(phase))] = totals.nanoseconds[static_cast<size_t>(i)];
  }
  return {{"nanoseconds", phases}, {"stamps", totals.stamps}, {"sampled", totals.sampled}};
}
template <typename Value>
Json to_json_value(const std::vector<Value>& list) {
  Json array = Json::array();
  for (const Value& value : list) array.push_back(to_json_value(value));
  return array;
}
template <typename Struct>
Json to_json_value(const Struct& of) {
  Json object = Json::object();
  std::apply([&](const auto&... field) { ((object[field.name] = to_json_value(of.*(field.member))), ...); },
             fields_of<Struct>());
  return object;
}

// --- from JSON

[[noreturn]] void refuse_reading(const std::string& place, const Json& json, std::string_view expected) {
  user_error("{}: found {}, expected {}; record the readings again with brisk doctor", place, json_in_message(json),
             expected);
}

void check_reading(bool right, const std::string& place, const Json& json, std::string_view expected) {
  if (!right) refuse_reading(place, json, expected);
}

void check_reading_keys(const Json& json, const std::string& place,
                        const std::function<bool(std::string_view)>& is_known) {
  check_reading(json.is_object(), place, json, "an object");
  for (const auto& [key, value] : json.items()) {
    if (!is_known(key)) user_error("{}: unknown key '{}'; remove it", place, key);
  }
}

template <typename Struct>
void read_value(const Json& json, const std::string& place, Struct& value);

void read_value(const Json& json, const std::string& place, double& value) {
  if (json.is_string()) {
    for (const auto& [word, number] : kNotFinite) {
      if (json.get_ref<const std::string&>() == word) {
        value = number;
        return;
      }
    }
  }
  check_reading(json.is_number(), place, json, "a number");
  value = json.get<double>();
}
void read_value(const Json& json, const std::string& place, bool& value) {
  check_reading(json.is_boolean(), place, json, "true or false");
  value = json.get<bool>();
}
void read_value(const Json& json, const std::string& place, int64_t& value) {
  const bool fits = json.is_number_integer() && (!json.is_number_unsigned() || json.get<uint64_t>() <= INT64_MAX);
  check_reading(fits, place, json, "an integer");
  value = json.get<int64_t>();
}
void read_value(const Json& json, const std::string& place, std::string& value) {
  check_reading(json.is_string(), place, json, "a string");
  value = json.get<std::string>();
}
void read_value(const Json& json, const std::string& place, Job& job) {
  check_reading(json.is_object(), place, json, "a job");
  job = job_from_json_text(json.dump(), place);
}
void read_value(const Json& json, const std::string& place, std::pair<double, double>& pair) {
  check_reading(json.is_array() && json.size() == 2, place, json, "a list of two numbers");
  read_value(json[0], place + "[0]", pair.first);
  read_value(json[1], place + "[1]", pair.second);
}
void read_value(const Json& json, const std::string& place, std::map<std::string, double>& map) {
  check_reading(json.is_object(), place, json, "an object of numbers");
  map.clear();
  for (const auto& [key, value] : json.items()) read_value(value, fmt::format("{}.{}", place, key), map[key]);
}
void read_value(const Json& json, const std::string& place, Ledger::Totals& totals) {
  check_reading_keys(json, place,
                     [](std::string_view key) { return key == "nanoseconds" || key == "stamps" || key == "sampled"; });
  if (json.contains("stamps")) read_value(json["stamps"], place + ".stamps", totals.stamps);
  if (json.contains("sampled")) read_value(json["sampled"], place + ".sampled", totals.sampled);
  if (!json.contains("nanoseconds")) return;
  const Json& phases = json["nanoseconds"];
  const std::string phases_place = place + ".nanoseconds";
  const auto find = [](std::string_view name) {
    int phase = 0;
    while (phase < kPhases && phase_name(static_cast<Phase>(phase)) != name) ++phase;
    return phase;
  };
  check_reading_keys(phases, phases_place, [&](std::string_view key) { return find(key) < kPhases; });
  for (const auto& [key, value] : phases.items())
    read_value(value, fmt::format("{}.{}", phases_place, key), totals.nanoseconds[static_cast<size_t>(find(key))]);
}
template <typename Value>
void read_value(const Json& json, const std::string& place, std::vector<Value>& list) {
  check_reading(json.is_array(), place, json, "a list");
  list.assign(json.size(), {});
  for (size_t i = 0; i < json.size(); ++i) read_value(json[i], fmt::format("{}[{}]", place, i), list[i]);
}
// A key that is missing leaves the field as it is: unknown.
template <typename Struct>
void read_value(const Json& json, const std::string& place, Struct& of) {
  std::apply(
      [&](const auto&... field) {
        check_reading_keys(json, place, [&](std::string_view key) { return ((key == field.name) || ...); });
        const std::string inside = place + (std::is_same_v<Struct, Readings> ? ": " : ".");
        const auto read = [&](const auto& one) {
          if (json.contains(one.name)) read_value(json[one.name], inside + one.name, of.*(one.member));
        };
        (read(field), ...);
      },
      fields_of<Struct>());
}

}  // namespace

// Bytes that are no UTF-8 (of an example that ends inside a character) become U+FFFD: JSON cannot hold them.
std::string readings_to_json(const Readings& readings) {
  return to_json_value(readings).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Readings readings_from_json(const std::string& text, const std::string& source) {
  const Json json = parse_json<Json>(text, source, "record the readings again with brisk doctor");
  Readings readings;
  read_value(json, source, readings);
  return readings;
}

}  // namespace brisk
