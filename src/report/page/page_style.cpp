#include "report/page/page_style.h"

namespace brisk {

// Colours: lines 1 to 8 differ in lightness as well as in hue, so that they can be told apart without colour vision;
// the phases of the ledger are shades by family (forward blue, backward green).
const std::string_view kPageStyle = R"css(
:root{color-scheme:light dark;--bg:#f7f7f5;--card:#fff;--ink:#1d2126;--soft:#5d6670;--line:#e2e3e0;--grid:#ececea;
--l1:#2563c9;--l2:#d9690a;--l3:#0f8a5f;--l4:#b83280;--l5:#6d45c4;--l6:#1793b8;--l7:#8a5a22;--l8:#6a7280;
--start:#9aa3ad;--wait:#e3a008;--copy:#f3cf6b;--f1:#12469b;--f2:#2563c9;--f3:#5a8ee0;--f4:#8db3ee;--f5:#bcd3f7;--loss:#6d45c4;
--b1:#07553c;--b2:#0f8a5f;--b3:#43ad86;--b4:#82cbb0;--b5:#b9e2d2;--comm:#8a5a22;--clip:#f0a48a;--opt:#cf4a22;--eval:#b83280;
--save:#e391bd;--log:#6a7280;--other:#c9cdd2;
--good:#0f7a52;--good-bg:#e3f4ec;--busy:#1d56b3;--busy-bg:#e5eefb;--warn:#9a5200;--warn-bg:#fcefdc;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1c2024;--ink:#e8eaed;--soft:#9aa4af;--line:#2f353b;--grid:#272c32;
--l1:#6ea3f5;--l2:#f59b4b;--l3:#48c795;--l4:#ef7fbb;--l5:#a88bf0;--l6:#59c3e3;--l7:#c99a63;--l8:#a3abb5;
--start:#7d8791;--wait:#e3a92a;--copy:#f1d58a;--f1:#2a5fb8;--f2:#4b85dd;--f3:#79a6ec;--f4:#a5c4f4;--f5:#cfe0fa;--loss:#a88bf0;
--b1:#12704f;--b2:#2b9d72;--b3:#59bd97;--b4:#93d6bd;--b5:#c6ebdd;--comm:#c99a63;--clip:#f5b8a3;--opt:#ea7350;--eval:#ef7fbb;
--save:#f5bddb;--log:#a3abb5;--other:#59616a;
--good:#6fd3a8;--good-bg:#173527;--busy:#8fb8fa;--busy-bg:#1a2b47;--warn:#f2b36b;--warn-bg:#3d2a12;--bad:#ff8a80}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
main{max-width:1080px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 6px;overflow-wrap:anywhere;display:flex;flex-wrap:wrap;align-items:center;gap:4px 10px}
h1 .pill{white-space:normal;border-radius:12px}
h2{font-size:1.15rem;margin:0 0 4px}
h3{font-size:.95rem;margin:18px 0 6px;overflow-wrap:anywhere}
p{margin:0 0 10px}.lead{color:var(--soft);overflow-wrap:anywhere}.why{color:var(--soft);font-size:.88rem}
a{color:var(--l1)}code,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.86em}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 20px;margin-top:18px}
.pill{display:inline-block;font-size:.78rem;font-weight:600;border-radius:99px;padding:2px 10px;white-space:nowrap}
.good{color:var(--good);background:var(--good-bg)}.busy{color:var(--busy);background:var(--busy-bg)}.warn{color:var(--warn);background:var(--warn-bg)}
.notes{background:var(--warn-bg);color:var(--warn);border-radius:10px;padding:10px 16px 10px 32px;margin:14px 0 0;font-size:.88rem;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(160px,1fr));gap:12px;margin-top:18px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:12px 14px;display:flex;flex-direction:column}
.tile span{color:var(--soft);font-size:.8rem}.tile b{font-size:1.35rem;line-height:1.3;font-weight:650;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.tile small{color:var(--soft);font-size:.78rem;overflow-wrap:anywhere}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:18px}
.grid{margin-top:18px}.grid>section{min-width:0;margin-top:0}
.choice{position:relative}.tabs{display:inline-flex;flex-wrap:wrap;border:1px solid var(--line);border-radius:8px;overflow:hidden;margin-bottom:10px}
.tabs input{position:absolute;opacity:0;pointer-events:none}.tabs span{display:block;padding:3px 12px;font-size:.82rem;color:var(--soft);cursor:pointer}
.tabs input:checked+span{background:var(--l1);color:var(--card);font-weight:600}.tabs input:focus-visible+span{outline:2px solid var(--l2);outline-offset:-2px}
.view{display:none}
.choice:has(label:nth-child(1) input:checked)>.view:nth-child(2),.choice:has(label:nth-child(2) input:checked)>.view:nth-child(3),
.choice:has(label:nth-child(3) input:checked)>.view:nth-child(4),.choice:has(label:nth-child(4) input:checked)>.view:nth-child(5){display:block}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:.82rem;color:var(--soft);margin:2px 0 8px}
.legend i{display:inline-block;width:14px;height:3px;border-radius:2px;margin-right:6px;vertical-align:middle}
.legend i.box{width:11px;height:11px;border-radius:3px}
.chart{margin:0}.frame{display:grid;grid-template-columns:58px 1fr;padding-right:22px}
.yaxis{position:relative}.yaxis span{position:absolute;right:8px;transform:translateY(-50%);white-space:nowrap}
.xaxis{grid-column:2;position:relative;height:22px}.xaxis span{position:absolute;top:5px;transform:translateX(-50%);white-space:nowrap}
.yaxis,.xaxis,figcaption{font-size:.76rem;color:var(--soft);font-variant-numeric:tabular-nums}
figcaption{text-align:center;padding-left:36px}
.plot{position:relative;height:var(--h,280px);border-left:1px solid var(--line);border-bottom:1px solid var(--line);touch-action:pan-y}
.plot svg{position:absolute;inset:0;width:100%;height:100%;overflow:visible;clip-path:inset(0 -6px)}
.plot polyline,.plot path{fill:none;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.plot .g{stroke:var(--grid);stroke-width:1}.bold{stroke-width:2.1}.thin{stroke-width:1.1;opacity:.35}.dot{stroke-width:7;stroke-linecap:round}
.dash{stroke-dasharray:6 4}
.c1{stroke:var(--l1)}.c2{stroke:var(--l2)}.c3{stroke:var(--l3)}.c4{stroke:var(--l4)}.c5{stroke:var(--l5)}.c6{stroke:var(--l6)}.c7{stroke:var(--l7)}.c8{stroke:var(--l8)}
i.c1{background:var(--l1)}i.c2{background:var(--l2)}i.c3{background:var(--l3)}i.c4{background:var(--l4)}i.c5{background:var(--l5)}i.c6{background:var(--l6)}i.c7{background:var(--l7)}i.c8{background:var(--l8)}
.cursor{position:absolute;top:0;bottom:0;width:1px;background:var(--soft);display:none}
.tip{position:absolute;top:6px;display:none;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:6px 10px;font-size:.78rem;white-space:nowrap;pointer-events:none;box-shadow:0 3px 14px #0003;z-index:2;font-variant-numeric:tabular-nums}
.bar{display:flex;height:26px;border-radius:6px;overflow:hidden;background:var(--grid)}.bar i{display:block;min-width:0}
.bars{display:grid;grid-template-columns:max-content 1fr max-content;gap:8px 12px;align-items:center;font-size:.84rem;margin-bottom:14px}
.bars .r{text-align:right;color:var(--soft);font-variant-numeric:tabular-nums}
.hbars .of{display:grid;grid-template-columns:minmax(120px,30%) 1fr minmax(90px,max-content);gap:2px 12px;align-items:center;margin:0 0 9px;font-size:.86rem}
.hbars span{overflow-wrap:anywhere;line-height:1.3}.hbars small{display:block;color:var(--soft);font-size:.76rem}
.hbars b{font-weight:600;text-align:right;font-variant-numeric:tabular-nums;min-width:90px}.track{position:relative;height:20px;background:var(--grid);border-radius:5px}
.track i{display:block;height:100%;border-radius:5px;min-width:2px}.hbars .pale i{opacity:.38}.hbars .pale b,.hbars .pale span{color:var(--soft);font-weight:500}
.track u{position:absolute;top:5px;bottom:5px;min-width:3px;border:solid var(--ink);border-width:0 2px;background:linear-gradient(var(--ink),var(--ink)) center/100% 2px no-repeat}
.checks{list-style:none;margin:0;padding:0}.checks li{display:grid;grid-template-columns:1.7em minmax(0,5fr) minmax(0,6fr);gap:2px 8px;padding:6px 0;border-bottom:1px solid var(--line);font-size:.88rem}
.checks li:last-child{border-bottom:0}.checks i{font-style:normal;font-weight:700}.checks b{font-weight:500;color:var(--soft);overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
.checks .yes i{color:var(--good)}.checks .no i{color:var(--bad)}.checks .no b{color:var(--ink)}.checks .open i{color:var(--soft)}.checks span{overflow-wrap:anywhere}
.scroll{overflow-x:auto;max-width:100%;background:linear-gradient(to left,var(--card) 20px,transparent) 100%/44px 100% no-repeat local,linear-gradient(to left,#0003,transparent) 100%/10px 100% no-repeat}
table{border-collapse:collapse;width:100%;font-size:.86rem}th,td{text-align:left;padding:5px 12px 5px 0;border-bottom:1px solid var(--line);vertical-align:top;font-variant-numeric:tabular-nums}
thead th{color:var(--soft);font-weight:600;font-size:.78rem;vertical-align:bottom}tbody th{font-weight:500}
tbody tr:last-child>*{border-bottom:0}tr.total>*{font-weight:650}
table.num td,table.num th{text-align:right;white-space:nowrap;padding:5px 0 5px 18px}
table.num th:first-child{text-align:left;padding-left:0}.scroll th:first-child{position:sticky;left:0;background:var(--card);z-index:1}
.label{white-space:nowrap}.label i{display:inline-block;width:14px;height:3px;border-radius:2px;margin-right:6px;vertical-align:middle}
.heat{display:block;border-radius:5px;padding:1px 9px;min-width:2.6em}.heat.right{background:rgb(43 157 114/calc(var(--share)*.6))}
.heat.wrong{background:rgb(234 115 80/calc(var(--share)*.9))}
td.best,b.best{color:var(--good)}.dim,.dim *{color:var(--soft)}.set td,.set th{font-weight:650}
.key{white-space:nowrap}.value{overflow-wrap:anywhere;min-width:90px}span.value{display:inline-block}
.sample{border-left:3px solid var(--line);padding:2px 0 2px 12px;margin:8px 0}.sample small{color:var(--soft);display:block}
.sample p{margin:2px 0;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate}.sample p b{font-weight:650}
.read{display:grid;grid-template-columns:repeat(3,minmax(0,1fr));gap:14px;align-items:start}.read img{max-width:100%;border:1px solid var(--line)}
.finding{border-top:1px solid var(--line);padding:10px 0 2px}.finding:first-of-type{border-top:0}.finding h3{margin:0 0 6px;font-size:1rem}
.finding p,.finding li,.finding code{overflow-wrap:anywhere}.finding ul{margin:0 0 10px;padding-left:20px;font-size:.88rem}
.step{display:inline-block;min-width:140px;max-width:260px;white-space:normal;overflow-wrap:anywhere}
pre{margin:0 0 10px;padding:10px 12px;background:var(--bg);border-radius:8px;font-size:.82rem;white-space:pre-wrap;overflow-wrap:anywhere}
details summary{cursor:pointer;color:var(--soft);font-size:.86rem;padding:4px 0}
footer{color:var(--soft);font-size:.8rem;margin-top:26px;overflow-wrap:anywhere}
@media(max-width:640px){main{padding:18px 12px 40px}section{padding:14px}.frame{grid-template-columns:46px 1fr;padding-right:14px}
.xaxis span:nth-child(even){display:none}.plot{height:calc(var(--h,280px)*.8)}.bars{grid-template-columns:max-content 1fr}.bars .r{grid-column:2;margin-top:-6px;text-align:left}
.hbars .of{grid-template-columns:minmax(0,1fr) max-content;margin-bottom:12px}.hbars .track{grid-column:1/3;grid-row:2;height:14px}.track u{top:2px;bottom:2px}.hbars b{min-width:0}
table{font-size:.78rem}thead th{font-size:.7rem}table.num{font-size:.74rem}table.num td,table.num th{padding-left:4px}table.num th,.label{white-space:normal}table.num th:first-child{min-width:60px}.step{min-width:118px;max-width:150px}.checks li{grid-template-columns:1.5em 1fr}.checks b{grid-column:2}
.settings td.dim{display:none}.settings .key{white-space:normal;overflow-wrap:anywhere}
.tiles{grid-template-columns:repeat(auto-fit,minmax(130px,1fr))}}
@media print{section{break-inside:avoid}}
)css";

const std::string_view kPageScript = R"js(
for (const plot of document.querySelectorAll('.plot')) {
  const d = plot.dataset, tip = plot.querySelector('.tip'), cursor = plot.querySelector('.cursor');
  const lines = [...plot.querySelectorAll('polyline[data-name]')].map(line => ({
    name: line.dataset.name, colour: getComputedStyle(line).stroke,
    points: line.getAttribute('points').split(' ').map(p => p.split(',').map(Number))}));
  const digits = v => v === 0 ? '0' : Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3 ? v.toExponential(2)
    : String(+v.toPrecision(5));
  const time = s => s < 60 ? digits(s) + ' s' : s < 3600 ? Math.floor(s / 60) + 'm ' + Math.round(s % 60) + 's'
    : Math.floor(s / 3600) + 'h ' + Math.round(s % 3600 / 60) + 'm';
  const x = p => +d.x0 + p / 1000 * (d.x1 - d.x0);
  const y = p => { const v = +d.y1 - p / 1000 * (d.y1 - d.y0); return d.log ? 10 ** v : v; };
  plot.onpointermove = event => {
    const box = plot.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * 1000;
    let nearest = null;
    tip.replaceChildren();
    for (const line of lines) {
      let best = line.points[0];
      for (const p of line.points) if (Math.abs(p[0] - at) < Math.abs(best[0] - at)) best = p;
      if (nearest === null || Math.abs(best[0] - at) < Math.abs(nearest - at)) nearest = best[0];
      const row = document.createElement('div'), name = document.createElement('b');
      name.textContent = line.name + ' '; name.style.color = line.colour;
      row.append(name, digits(y(best[1])));
      tip.append(row);
    }
    if (nearest === null) return;
    const head = document.createElement('div');
    head.textContent = d.time ? time(x(nearest)) : d.xname + ' ' + Math.round(x(nearest)).toLocaleString('en');
    tip.prepend(head);
    tip.style.display = cursor.style.display = 'block';
    cursor.style.left = nearest / 10 + '%';
    const left = nearest / 1000 * box.width;
    tip.style.left = (left + tip.offsetWidth + 16 > box.width ? Math.max(0, left - tip.offsetWidth - 12) : left + 12) + 'px';
  };
  plot.onpointerleave = () => { tip.style.display = cursor.style.display = 'none'; };
}
)js";

}  // namespace brisk
