#include "report/page/ledger_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/terminal/terminal.h"
#include "report/page/html.h"

namespace brisk {

namespace {

struct PhaseLook {
  const char* phase;
  const char* colour;  // a variable of the page's style
  const char* words;
};

constexpr std::array<PhaseLook, 21> kLooks = {{{"start_up", "--start", "start-up"},
                                               {"data_wait", "--wait", "waiting for data"},
                                               {"copy", "--copy", "copying batches"},
                                               {"forward_embedding", "--f5", "forward: embedding"},
                                               {"forward_linear", "--f2", "forward: linear layers"},
                                               {"forward_attention", "--f1", "forward: attention"},
                                               {"forward_norm", "--f3", "forward: norms"},
                                               {"forward_elementwise", "--f4", "forward: elementwise"},
                                               {"loss", "--loss", "output layer and loss"},
                                               {"backward_embedding", "--b5", "backward: embedding"},
                                               {"backward_linear", "--b2", "backward: linear layers"},
                                               {"backward_attention", "--b1", "backward: attention"},
                                               {"backward_norm", "--b3", "backward: norms"},
                                               {"backward_elementwise", "--b4", "backward: elementwise"},
                                               {"communication", "--comm", "communication"},
                                               {"clipping", "--clip", "clipping"},
                                               {"optimizer", "--opt", "optimizer"},
                                               {"evaluation", "--eval", "evaluation and samples"},
                                               {"checkpoint", "--save", "checkpoints"},
                                               {"logging", "--log", "logging"},
                                               {"other", "--other", "other"}}};

PhaseLook look_of(const std::string& phase) {
  const auto found =
      std::find_if(kLooks.begin(), kLooks.end(), [&](const PhaseLook& look) { return phase == look.phase; });
  return found != kLooks.end() ? *found : PhaseLook{"", "--other", phase.c_str()};
}

double sum_of(const PhaseSeconds& ledger) {
  double sum = 0;
  for (const auto& [phase, seconds] : ledger) sum += seconds;
  return sum;
}

}  // namespace

std::string phase_words(const std::string& phase) { return look_of(phase).words; }

Html ledger_bars_html(const std::vector<LedgerBar>& bars) {
  Html rows;
  for (const LedgerBar& bar : bars) {
    const double all = sum_of(bar.ledger);
    Html phases;
    for (const auto& [phase, seconds] : bar.ledger) {
      const PhaseLook look = look_of(phase);
      const double share = all > 0 ? 100 * seconds / all : 0;
      if (!(share > 0)) continue;
      phases += html("<i style=\"width:{:.3f}%;background:var({})\" title=\"{}: {}, {:.1f} %\"></i>", share,
                     look.colour, look.words, format_duration(seconds), share);
    }
    rows +=
        html("<span>{}</span><div class=\"bar\">{}</div><span class=\"r\">{}</span>\n", bar.name, phases, bar.detail);
  }
  return html("<div class=\"bars\">{}</div>\n", rows);
}

Html ledger_legend_html(const std::vector<LedgerBar>& bars) {
  Html names;
  for (const PhaseLook& look : kLooks) {
    const bool shown = std::any_of(bars.begin(), bars.end(), [&](const LedgerBar& bar) {
      return std::any_of(bar.ledger.begin(), bar.ledger.end(), [&](const auto& phase) {
        return phase.first == look.phase && phase.second >= 0.005 * sum_of(bar.ledger);
      });
    });
    if (!shown) continue;
    names += html("<span><i class=\"box\" style=\"background:var({})\"></i>{}</span>", look.colour, look.words);
  }
  return html("<div class=\"legend\">{}</div>\n", names);
}

Html ledger_table_html(const PhaseSeconds& ledger, double steps) {
  HtmlTable table;
  table.numbers = true;
  table.header = {"phase", "time", "share", "per step"};
  const double all = sum_of(ledger);
  const auto per_step = [&](double seconds) { return steps > 0 ? format_duration(seconds / steps) : std::string("–"); };
  for (const auto& [phase, seconds] : ledger) {
    const PhaseLook look = look_of(phase);
    table.rows.push_back({html("<span class=\"legend\" style=\"margin:0;color:inherit\"><span><i class=\"box\" "
                               "style=\"background:var({})\"></i>{}</span></span>",
                               look.colour, look.words),
                          format_duration(seconds), fmt::format("{:.1f} %", all > 0 ? 100 * seconds / all : 0),
                          per_step(seconds)});
  }
  table.rows.push_back({html("<b>all</b>"), html("<b>{}</b>", format_duration(all)), html("<b>100.0 %</b>"),
                        html("<b>{}</b>", per_step(all))});
  return html_table(table);
}

}  // namespace brisk
