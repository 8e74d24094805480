"use strict";
// The page: summary, tables and charts around the timeline, and the keys.

const timeline = new Timeline($("lanes"));
let maps = [], panes = [], charts = [];

function show(number) {
  const view = state.view = new LaunchView(NUMBERS.launches[number]), { data } = view;
  state.range = [0, data.cycles];
  state.node = state.block = null;
  state.places = new Set();
  $("title").textContent = data.kernel;
  summary(view);
  shares(view);
  tables(view);
  const byCore = view.memory.map((entry) => ({ entry, core: data.cores[entry.core] }));
  maps = byCore.filter(({ entry }) => entry.blocks.length).map(({ entry }) => new MemoryMap(entry));
  const groups = [];
  byCore.forEach(({ core }, at) => {
    if (!at || byCore[at - 1].core !== core) groups.push(element("div", { class: "note", text: core.place }));
    groups.push(maps[at].root);
  });
  $("maps").replaceChildren(...groups);
  $("memory").hidden = !maps.length;
  const heat = heatOf(view);
  panes = [new CodePane("Source", sourceTexts(view), heat), new CodePane("IR", [data.ir]), new CodePane("C++", [data.cpp])];
  $("panes").replaceChildren(...panes.map((pane) => pane.root));
  tabs();
  inspect();
  const [hottest] = data.lines.reduce((most, line) => line[1] > most[1] ? line : most, [-1, 0]);
  panes.forEach((pane) => pane.reveal(hottest));
  draw();
}

function draw() {
  charts.forEach((chart) => chart.destroy());
  charts = [overview(), roofline()].filter(Boolean);
  timeline.show();
  maps.forEach((map) => map.paint());
}

// ---- summary --------------------------------------------------------------------------------------

function summary(view) {
  const { data } = view, errors = data.findings.filter((each) => each.severity === "error").length;
  const doubts = data.findings.length - errors, many = (n, word) => `${n} ${word}${n > 1 ? "s" : ""}`;
  const verdict = errors ? [many(errors, "error"), "bad"] : doubts ? [many(doubts, "warning"), "warn"]
    : data.checked === false ? ["not checked", ""] : ["no race found", "good"];
  $("chips").replaceChildren(
    element("span", { class: "chip", text: data.target }),
    element("span", { class: "chip", text: `${data.blocks} block${data.blocks > 1 ? "s" : ""} on ${data.device_cores} cores at ${data.clock_ghz} GHz` }),
    element("span", { class: `chip ${verdict[1]}`, text: verdict[0] }));
  const [value, unit] = view.us(data.cycles).split(" ");
  $("us").replaceChildren(value, " ", element("small", { text: unit }));
  $("band").textContent = data.band;
  const facts = [
    ["cycles", thousands(data.cycles)],
    ["roofline", `${data.roofline_us.toFixed(1)} µs, ${percent(data.roofline_us / data.us)}`],
    ["one by one", `${data.serial_us.toFixed(1)} µs`],
    ["events", thousands(data.events) + (data.aggregated ? ", drawn in groups" : "")],
    ["parameters", data.params],
  ];
  $("facts").replaceChildren(...facts.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text })]));
  const pipeOf = new Map();
  view.cores.forEach((core) => core.item.forEach((item, node) => pipeOf.set(data.items[item].label, data.pipes[core.pipe[node]])));
  const parts = data.breakdown.map((part) => {
    const behind = part.label.startsWith("behind ");
    const colour = part.label === "launch" ? "#6b7280" : PIPE_COLOURS[pipeOf.get(part.label.replace("behind ", ""))] || "#888";
    return { ...part, colour, behind };
  });
  $("chain").replaceChildren(...parts.map((part) => element("button", {
    text: part.cycles / data.cycles > 0.07 ? part.label : "", "data-place": part.place, tabindex: "-1",
    title: `${part.label} ${view.line(part.place)}: ${view.us(part.cycles)}, ${view.percent(part.cycles)}`,
    style: { flex: `${part.cycles} 0 0`, background: fill(part) },
  })));
  $("chain-legend").replaceChildren(...parts.slice(0, 9).map((part) => element("li", { "data-place": part.place, tabindex: "0" },
    element("span", { class: "dot", style: { background: fill(part) } }),
    element("span", { text: part.behind ? `${part.label}: landing, signal, issue` : part.label }),
    element("span", { class: "where", text: view.line(part.place) }),
    element("b", { text: view.percent(part.cycles) }))));
}

const fill = (part) => part.behind
  ? `repeating-linear-gradient(135deg, ${part.colour} 0 3px, ${part.colour}88 3px 6px)` : part.colour;

function shares(view) {
  const { data } = view, rows = [], cores = new Set(data.shares.map((each) => each.core));
  let last = "";
  const sorted = [...data.shares].sort((a, b) => a.core.localeCompare(b.core)
    || PIPE_ORDER.indexOf(a.pipe) - PIPE_ORDER.indexOf(b.pipe));
  for (const share of sorted) {
    if (cores.size > 1 && share.core !== last) rows.push(element("div", { class: "share" }, element("span", { class: "core", text: share.core })));
    last = share.core;
    const meter = element("div", { class: "meter" },
      element("span", { title: `works ${percent(share.busy)}`, style: { width: `${100 * share.busy}%`, background: PIPE_COLOURS[share.pipe] } }));
    let room = 1 - share.busy;
    for (const [name, part] of Object.entries(share.waits).sort((a, b) => b[1] - a[1])) {
      const wide = Math.min(part, room);
      room -= wide;
      meter.append(element("span", { class: "wait", title: `waits ${percent(part)} for ${name === "S" ? "what the scalar unit issues" : name}`,
        style: { width: `${100 * wide}%`, backgroundColor: `${PIPE_COLOURS[name] || "#888888"}40` } }));
    }
    rows.push(element("div", { class: "share" }, element("span", { text: share.pipe }), meter, element("b", { text: percent(share.busy) })));
  }
  $("shares").replaceChildren(...rows);
}

function tables(view) {
  const { data } = view;
  $("wait-rows").replaceChildren(...data.waits.slice(0, 200).map((wait) => element("tr", { "data-place": wait.place, tabindex: "0" },
    element("td", { class: "n", text: view.percent(wait.cycles) }),
    element("td", {}, element("span", { class: "pipe", text: wait.pipe, style: { color: PIPE_COLOURS[wait.pipe] } }),
      ` ${wait.reason} `, element("div", { class: "core", text: `${wait.core}, ${view.us(wait.cycles)}` })))));
  const found = data.findings.map((each) => element("li", { class: each.severity, "data-place": each.places[0], tabindex: "0" },
    element("b", { text: `${each.severity} ${each.code} ` }), element("span", { class: "where", text: each.places.map((p) => view.line(p)).join(", ") }),
    element("div", { text: each.message }), ...each.notes.map((note) => element("div", { class: "note", text: note })),
    ...(each.fix ? [element("div", { class: "note", text: `fix: ${each.fix}` })] : [])));
  const nothing = data.checked === false ? "The launch was not run: nothing has been checked." : "No race, hang or broken rule was found.";
  $("finding-rows").replaceChildren(...(found.length ? found : [element("li", { class: "note", text: nothing })]));
  const advice = data.advice || [];
  $("advice").hidden = !advice.length;
  $("advice-rows").replaceChildren(...advice.map((each) => element("li", { "data-place": each.place, tabindex: "0" },
    element("b", { text: `−${percent(each.gain)} ` }), each.text)));
  $("footer").textContent = `Predicted by ptokit, parameters ${data.params}. Charts by uPlot (MIT licence, in the source of this page).`;
}

// ---- charts ---------------------------------------------------------------------------------------

function axisStyle() {
  return { stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 }, font: "11px system-ui" };
}

/** The share of each pipe over time; dragging over it zooms. */
function overview() {
  const { view } = state, { data } = view, bins = 240, wide = data.cycles / bins, byPipe = new Map();
  for (const core of view.cores) {
    for (const lane of core.lanes) {
      const sums = byPipe.get(lane.pipe) || byPipe.set(lane.pipe, { busy: new Float64Array(bins), heads: 0 }).get(lane.pipe);
      sums.heads += core.weight;
      for (const node of lane.nodes) {
        const start = core.start[node], end = start + core.length[node], many = core.many.get(node);
        const dense = core.weight * (many ? many.busy / core.length[node] : 1);
        for (let bin = Math.floor(start / wide); bin < bins && bin * wide < end; bin++) {
          sums.busy[bin] += dense * (Math.min(end, (bin + 1) * wide) - Math.max(start, bin * wide));
        }
      }
    }
  }
  const pipes = PIPE_ORDER.filter((pipe) => byPipe.has(pipe)), box = $("overview");
  const x = Array.from({ length: bins }, (_, bin) => (bin + 0.5) * wide / view.perUs);
  const ys = pipes.map((pipe) => Array.from(byPipe.get(pipe).busy, (busy) => 100 * busy / wide / byPipe.get(pipe).heads));
  const chart = new uPlot({
    width: box.clientWidth, height: 74, legend: { show: false }, padding: [6, 0, 2, 0],
    cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false }, y: false },
    scales: { x: { time: false, range: [0, data.us] }, y: { range: [0, 100] } },
    axes: [{ show: false }, { ...axisStyle(), size: timeline.gutter, values: (_, v) => v.map((n) => `${n} %`), space: 26 }],
    series: [{}, ...pipes.map((pipe) => ({ label: pipe, stroke: PIPE_COLOURS[pipe], width: 1.4, fill: `${PIPE_COLOURS[pipe]}22`, points: { show: false } }))],
    hooks: {
      setSelect: [(u) => {
        if (u.select.width > 3) {
          const [from, to] = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
          state.zoom(from * view.perUs, to * view.perUs);
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }
      }],
      draw: [(u) => {
        const [from, to] = state.range.map((cycles) => u.valToPos(cycles / view.perUs, "x", true));
        const { left, top, width, height } = u.bbox;
        if (to - from > width - 2) return;
        u.ctx.fillStyle = "rgba(128,128,128,.28)";
        u.ctx.fillRect(left, top, from - left, height);
        u.ctx.fillRect(to, top, left + width - to, height);
      }],
    },
  }, [x, ...ys], box);
  return chart;
}

/** Work for a byte of traffic against the share of the peak, both on logarithmic scales. */
function roofline() {
  const { view } = state, { roofline: roof } = view.data, box = $("roof");
  $("roofline").hidden = !(roof.intensity > 0 && roof.share > 0);
  if ($("roofline").hidden) return null;
  const ridges = [...roof.roofs.map((each) => 1 / each.rate), roof.intensity], xs = [];
  const low = Math.min(...ridges) / 8, high = Math.max(...ridges) * 8;
  for (let at = low; at < high; at *= 1.1) xs.push(at);
  xs.push(roof.intensity);
  xs.sort((a, b) => a - b);
  const lines = roof.roofs.map((each) => xs.map((x) => 100 * Math.min(1, x * each.rate)));
  const point = xs.map((x) => x === roof.intensity ? 100 * roof.share : null);
  const floor = Math.min(...lines.flat(), 100 * roof.share) / 1.5;
  $("roof-note").textContent = `${roof.unit} would work ${percent(roof.share)} of the time at its best rate, over ${bytes(roof.bytes)} `
    + `of traffic (${bytes(roof.missed)} from beyond the L2). Busiest at best: `
    + Object.entries(roof.least).slice(0, 3).map(([pipe, cycles]) => `${pipe} ${percent(cycles / roof.slots / view.data.cycles)}`).join(", ") + ".";
  const colours = ["#3b7dd8", "#1f9d8f", "#e0762f"];
  return new uPlot({
    width: box.clientWidth, height: 210, legend: { show: true, live: false }, cursor: { show: false },
    scales: { x: { time: false, distr: 3 }, y: { distr: 3, range: [floor, 160] } },
    axes: [{ ...axisStyle(), label: `cycles of ${roof.unit} for a byte of global memory`, labelSize: 18, size: 28, labelFont: "11px system-ui",
      values: (_, v) => v.map((n) => n === null ? "" : String(+n.toPrecision(2))) },
      { ...axisStyle(), size: 52, values: (_, v) => v.map((n) => n === null ? "" : `${+n.toPrecision(2)} %`) }],
    series: [{}, ...roof.roofs.map((each, at) => ({ label: each.name, stroke: colours[at], width: 2, points: { show: false } })),
      { label: "this launch", stroke: css("--accent"), paths: () => null, points: { show: true, size: 11, fill: css("--accent") } }],
  }, [xs, ...lines, point], box);
}

// ---- what is selected -----------------------------------------------------------------------------

function inspect() {
  const { view } = state, box = $("inspector");
  if (state.node) return inspectNode(view, box, ...state.node);
  if (!state.hasSelection) {
    box.replaceChildren(element("span", { class: "note", text: "Click work, a line or bytes: whatever belongs to it is marked everywhere. ? lists the keys." }));
    return undefined;
  }
  const items = view.data.items.map((item, at) => at).filter((at) => state.isSelected(view.data.items[at])), chosen = new Set(items);
  let cycles = 0, times = 0;
  view.cores.forEach((core) => core.item.forEach((item, node) => {
    if (chosen.has(item)) { cycles += core.length[node] * core.weight; times += core.weight; }
  }));
  const what = state.block ? `${state.block.name || "bytes"} in ${state.block.memory}, ${bytes(state.block.stop - state.block.start)}`
    : [...state.places].map((place) => view.line(place)).join(", ");
  const lines = [...state.places].filter((place) => place >= 0).slice(0, 8).map((place) => element("button", {
    text: view.line(place), title: view.source(place), onclick: () => state.selectPlace(place) }));
  box.replaceChildren(element("div", { class: "row" }, element("span", { class: "what", text: what }),
    element("span", { text: `${thousands(times)} instructions, ${view.us(cycles)} of work on all cores` })),
  element("div", { class: "row" }, ...(state.block ? lines : [element("code", { text: view.source([...state.places][0]) })])));
  return undefined;
}

function inspectNode(view, box, core, node) {
  const at = view.cores[core], item = view.item(core, node), many = at.many.get(node);
  const facts = [item.kind, ...Object.entries(item.features || {}).map(([name, value]) => `${name.replace("_", " ")} ${value}`)];
  const rows = [element("div", { class: "row" },
    element("span", { class: "what", text: many ? `${many.count} instructions, most of it ${item.label}` : item.label,
      style: { color: PIPE_COLOURS[view.data.pipes[at.pipe[node]]] } }),
    element("span", { text: `${view.data.pipes[at.pipe[node]]} of ${at.name}` }),
    element("span", { text: `${view.us(at.start[node])} + ${view.us(at.length[node])}, ${thousands(at.length[node])} cycles` }),
    element("span", { class: "note", text: facts.filter(Boolean).join(", ") })),
  element("div", { class: "row" }, element("button", { text: view.line(item.place), onclick: () => state.selectPlace(item.place) }),
    element("code", { text: view.source(item.place) }))];
  const went = waited(core, node);
  if (went.length) {
    rows.push(element("div", { class: "row" }, element("span", { class: "note", text: "set by" }), ...went.map((each) => element("button", {
      text: `${each.text}, ${view.line(each.place)}`, onclick: () => timeline.reveal(each.core, each.node) }))));
  }
  const uses = (item.touches || []).map(([memory, start, stop, how, operand]) =>
    `${operand} ${how === "r" ? "read" : how === "w" ? "written" : "read and written"}: ${memory} 0x${start.toString(16)}..0x${stop.toString(16)}`);
  if (uses.length) rows.push(element("div", { class: "row note", text: uses.join("   ") }));
  box.replaceChildren(...rows);
}

// ---- hands ----------------------------------------------------------------------------------------

function tabs() {
  const names = ["Source", "IR", "C++"];
  const choose = (at) => {
    panes.forEach((pane, number) => pane.root.classList.toggle("shown", number === at));
    [...$("tabs").children].forEach((tab, number) => tab.setAttribute("aria-pressed", String(number === at)));
  };
  $("tabs").replaceChildren(...names.map((name, at) => element("button", { text: name, role: "tab", onclick: () => choose(at) })));
  choose(0);
}

let matching = [], current = -1;
function search(query) {
  const { view } = state;
  state.query = query;
  current = -1;
  matching = !query ? [] : view.cores.flatMap((core) => {
    const items = new Map();
    return Array.from(core.item, (item, node) => [core.number, node]).filter(([, node]) => {
      const name = `${core.item[node]}.${core.pipe[node]}`;
      if (!items.has(name)) items.set(name, isMatch(view.data.items[core.item[node]], core.pipe[node]));
      return items.get(name);
    });
  });
  $("matches").textContent = query ? `${thousands(matching.length)} found` : "";
  timeline.draw();
}

function next(step) {
  if (!matching.length) return;
  current = (current + step + matching.length) % matching.length;
  timeline.reveal(...matching[current]);
  $("matches").textContent = `${current + 1} of ${thousands(matching.length)}`;
}

function toggle(name) {
  state[name] = !state[name];
  $(name).setAttribute("aria-pressed", String(state[name]));
  timeline.draw();
}

function theme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  if (state.view) draw();
}

const KEYS = {
  "+": () => state.zoomBy(0.6), "=": () => state.zoomBy(0.6), "-": () => state.zoomBy(1 / 0.6),
  "0": () => state.zoom(0, state.view.data.cycles),
  "ArrowLeft": () => state.move(-0.15), "ArrowRight": () => state.move(0.15),
  ",": () => timeline.step(-1, 0), ".": () => timeline.step(1, 0), "z": () => timeline.zoomToSelected(),
  "/": () => $("search").focus(), "n": () => next(1), "p": () => next(-1),
  "a": () => toggle("arrows"), "c": () => toggle("path"),
  "t": () => theme(document.documentElement.dataset.theme !== "dark"),
  "?": () => $("help").showModal(), "Escape": () => state.clear(),
};

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const across = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  const act = across && event.target === $("lanes") ? () => timeline.step(0, across) : KEYS[event.key];
  if (act) { event.preventDefault(); act(); }
  const row = event.target.closest("[data-place][tabindex]");
  if (row && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); row.click(); }
});
document.addEventListener("click", (event) => {
  const row = event.target.closest("main [data-place]");
  if (row && !row.closest(".code")) state.selectPlace(Number(row.dataset.place));
});
$("search").addEventListener("input", (event) => search(event.target.value.trim()));
$("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter") next(event.shiftKey ? -1 : 1);
  if (event.key === "Escape") { event.target.value = ""; search(""); $("lanes").focus(); }
});
$("zoom-in").addEventListener("click", KEYS["+"]);
$("zoom-out").addEventListener("click", KEYS["-"]);
$("zoom-fit").addEventListener("click", KEYS["0"]);
$("arrows").addEventListener("click", KEYS.a);
$("path").addEventListener("click", KEYS.c);
$("theme").addEventListener("click", KEYS.t);
$("help-open").addEventListener("click", KEYS["?"]);
window.addEventListener("resize", () => draw());

state.listeners.push((what) => {
  if (what === "select") {
    panes.forEach((pane) => pane.mark(true));
    inspect();
  } else if (charts.length) {
    charts[0].redraw(false, false);
  }
  timeline.draw();
  maps.forEach((map) => map.paint());
});

const launches = $("launches");
NUMBERS.launches.forEach((data, at) => launches.append(element("option", { value: at, text: `${data.kernel}, ${data.us.toFixed(1)} µs` })));
launches.hidden = NUMBERS.launches.length < 2;
launches.addEventListener("change", () => show(Number(launches.value)));
theme(window.matchMedia("(prefers-color-scheme: dark)").matches);
show(0);
