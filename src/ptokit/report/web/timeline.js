"use strict";
// The timeline: a lane per core and pipe, signals as arrows, the longest chain as a line.

class Timeline {
  constructor(canvas) {
    this.canvas = canvas;
    this.hover = null;
    this.folded = new Set();
    this.rows = [];
    this.wanted = false;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, (event) => this.release(event));
    }
    canvas.addEventListener("pointerleave", () => { this.hover = null; showTip(""); this.draw(); });
    canvas.addEventListener("dblclick", () => this.zoomToSelected());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.pointers = new Map();
  }

  get gutter() { return this.canvas.clientWidth < 600 ? 66 : 118; }
  get laneHeight() { return this.canvas.clientWidth < 600 ? 20 : 24; }

  show() {
    const { cores } = state.view;
    this.folded = new Set(cores.length > 4 ? cores.slice(4).map((core) => core.number) : []);
    this.draw();
  }

  /** What lies where: a header per core, a lane per pipe. */
  layout() {
    const rows = [];
    let y = 22;
    for (const core of state.view.cores) {
      rows.push({ core, y, height: 20 });
      y += 20;
      if (this.folded.has(core.number)) continue;
      for (const lane of core.lanes) {
        rows.push({ core, lane, y, height: this.laneHeight });
        y += this.laneHeight;
      }
      y += 4;
    }
    this.rows = rows;
    return y + 4;
  }

  x(cycles) {
    const [from, to] = state.range;
    return this.gutter + (cycles - from) / (to - from) * (this.canvas.clientWidth - this.gutter);
  }
  time(x) {
    const [from, to] = state.range;
    return from + (x - this.gutter) / (this.canvas.clientWidth - this.gutter) * (to - from);
  }

  draw() {
    if (this.wanted) return;
    this.wanted = true;
    requestAnimationFrame(() => { this.wanted = false; this.paint(); });
  }

  paint() {
    const [context, width] = prepared(this.canvas, this.layout());
    this.ink = { text: css("--ink"), soft: css("--soft"), line: css("--line"), well: css("--well"),
      accent: css("--accent"), card: css("--card") };
    this.axis(context, width);
    for (const row of this.rows) {
      if (row.lane) this.lane(context, row, width); else this.heading(context, row, width);
    }
    context.save();
    context.beginPath();
    context.rect(this.gutter, 0, width, 1e5);
    context.clip();
    if (state.path) this.chain(context);
    this.signals(context, width);
    context.restore();
  }

  axis(context, width) {
    const [from, to] = state.range.map((cycles) => cycles / state.view.perUs);
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    for (const [at, label] of ticks(from, to, Math.max(3, (width - this.gutter) / 110))) {
      const x = this.x(at * state.view.perUs);
      context.strokeStyle = this.ink.line;
      context.beginPath(); context.moveTo(x, 18); context.lineTo(x, 1e4); context.stroke();
      context.fillStyle = this.ink.soft;
      context.fillText(`${label} µs`, Math.min(width - 24, x), 13);
    }
    context.textAlign = "left";
  }

  heading(context, row, width) {
    context.fillStyle = this.ink.well;
    context.fillRect(0, row.y, width, row.height - 2);
    context.fillStyle = this.ink.text;
    context.font = "600 11.5px system-ui, sans-serif";
    const mark = this.folded.has(row.core.number) ? "▸" : "▾";
    context.fillText(`${mark} ${row.core.name}`, 4, row.y + 13);
  }

  lane(context, row, width) {
    const { core, lane, y, height } = row, [from, to] = state.range;
    const colour = PIPE_COLOURS[lane.pipe] || "#888", top = y + 2, tall = height - 5;
    context.font = "11.5px system-ui, sans-serif";
    context.fillStyle = this.ink.soft;
    context.fillText(this.gutter < 100 ? lane.pipe.replace("(vector)", "v") : lane.pipe, 8, y + height / 2 + 3);
    const first = Math.max(0, this.firstAfter(core, lane, from) - 1);
    let painted = -1, before = null;
    for (let at = first; at < lane.nodes.length; at++) {
      const node = lane.nodes[at], start = core.start[node], end = start + core.length[node];
      if (start > to) break;
      const x0 = Math.max(this.gutter, this.x(start)), x1 = Math.min(width, this.x(end));
      if (before !== null && x0 - before > 1.5) {
        context.globalAlpha = 0.13;
        context.fillStyle = colour;
        context.fillRect(Math.max(this.gutter, before), top + tall / 2 - 2, x0 - Math.max(this.gutter, before), 4);
        context.globalAlpha = 1;
      }
      before = x1;
      if (x1 < this.gutter) continue;
      if (x1 - painted < 0.4 && !state.hasSelection && !state.query) continue;
      this.piece(context, core, node, Math.max(x0, painted), x1, top, tall, colour);
      painted = Math.max(x0 + 0.4, x1);
    }
  }

  piece(context, core, node, x0, x1, top, tall, colour) {
    const item = state.view.data.items[core.item[node]], wide = Math.max(0.8, x1 - x0);
    const matches = !state.query || isMatch(item, core.pipe[node]);
    const chosen = state.isSelected(item);
    const dimmed = !matches || (state.hasSelection && !chosen);
    const many = core.many.get(node);
    context.globalAlpha = dimmed ? 0.28 : many ? 0.45 + 0.55 * many.busy / core.length[node] : 1;
    context.fillStyle = colour;
    context.fillRect(x0, top, wide - (wide > 3 ? 0.7 : 0), tall);
    if (state.path && wide > 2 && state.view.onChain.has(key(core.number, node))) {
      context.fillStyle = this.ink.accent;
      context.fillRect(x0, top + tall - 2.5, wide, 2.5);
    }
    if (wide > 26) {
      context.fillStyle = "#fff";
      context.font = "11px system-ui, sans-serif";
      const label = many ? `${many.count} × ${item.label} …` : item.label;
      const room = Math.floor((wide - 6) / 6.4);
      context.fillText(label.length > room ? label.slice(0, Math.max(1, room)) : label, x0 + 3, top + tall / 2 + 4);
    }
    context.globalAlpha = 1;
    const own = state.node && state.node[0] === core.number && state.node[1] === node;
    if (own || (this.hover && this.hover.node === node && this.hover.core === core)) {
      context.strokeStyle = this.ink.text;
      context.lineWidth = own ? 2 : 1;
      context.strokeRect(x0, top, wide, tall);
    }
  }

  firstAfter(core, lane, time) {
    let low = 0, high = lane.nodes.length;
    while (low < high) {
      const middle = (low + high) >> 1, node = lane.nodes[middle];
      if (core.start[node] + core.length[node] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  /** The middle of the lane on which a node lies; null where its core is folded. */
  height(core, node) {
    const pipe = state.view.data.pipes[state.view.cores[core].pipe[node]];
    const row = this.rows.find((each) => each.lane && each.core.number === core && each.lane.pipe === pipe);
    return row ? row.y + row.height / 2 - 0.5 : null;
  }

  chain(context) {
    const { view } = state, [from, to] = state.range;
    context.strokeStyle = this.ink.accent;
    context.lineWidth = 1.3;
    context.globalAlpha = 0.8;
    context.beginPath();
    let drawn = 0, last = null;
    for (const [core, node] of view.chain) {
      const start = view.cores[core].start[node], end = view.end(core, node), y = this.height(core, node);
      if (last && y !== null && start >= from - (to - from) && last.end <= to && y !== last.y) {
        if (drawn++ > 1500) break;
        context.moveTo(this.x(last.end), last.y);
        context.lineTo(this.x(start), y);
      }
      last = y === null ? null : { end, y };
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  signals(context, width) {
    const { view } = state, shown = [];
    const add = ([core, node]) => {
      for (const [other, at] of view.into.get(key(core, node)) || []) shown.push([other, at, core, node]);
      for (const [other, at] of view.outOf.get(key(core, node)) || []) shown.push([core, node, other, at]);
    };
    if (state.arrows) {
      for (const flow of view.flows) {
        if (view.end(flow[0], flow[1]) < state.range[1] && view.cores[flow[2]].start[flow[3]] > state.range[0]) {
          shown.push(flow);
          if (shown.length > 600) break;
        }
      }
    }
    if (state.node) add(state.node);
    if (this.hover && this.hover.node !== undefined) add([this.hover.core.number, this.hover.node]);
    context.lineWidth = 1.2;
    for (const [core, node, other, at] of shown) {
      const y0 = this.height(core, node), y1 = this.height(other, at);
      if (y0 === null || y1 === null) continue;
      const x0 = this.x(view.end(core, node)), x1 = this.x(view.cores[other].start[at]);
      const bend = Math.min(40, Math.max(8, (x1 - x0) / 2));
      context.strokeStyle = context.fillStyle = this.ink.text;
      context.globalAlpha = state.arrows && !state.node && !this.hover ? 0.45 : 0.85;
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
      context.stroke();
      context.beginPath();
      context.moveTo(x1 + 1, y1); context.lineTo(x1 - 5, y1 - 3); context.lineTo(x1 - 5, y1 + 3);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  // ---- hands ----------------------------------------------------------------------------------

  found(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const row = this.rows.find((each) => y >= each.y && y < each.y + each.height);
    if (!row || !row.lane) return row && { core: row.core, heading: true };
    if (x < this.gutter) return null;
    const time = this.time(x), slack = 3 * (state.range[1] - state.range[0]) / this.canvas.clientWidth;
    const { core, lane } = row, at = this.firstAfter(core, lane, time - slack);
    const node = lane.nodes[at];
    if (node === undefined) return null;
    if (core.start[node] <= time + slack) return { core, lane, node };
    return at > 0 ? { core, lane, before: node, behind: lane.nodes[at - 1] } : { core, lane, before: node };
  }

  press(event) {
    this.pointers.set(event.pointerId, event.clientX);
    this.canvas.setPointerCapture(event.pointerId);
    this.moved = 0;
  }

  drag(event) {
    if (!this.pointers.has(event.pointerId)) return this.look(event);
    const wide = this.canvas.clientWidth - this.gutter, last = this.pointers.get(event.pointerId);
    if (this.pointers.size === 1) {
      this.moved += Math.abs(event.clientX - last);
      if (this.moved > 3) state.move((last - event.clientX) / wide);
    } else {
      const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
      const other = others[0][1], gap = Math.abs(event.clientX - other);
      if (gap > 8) {
        const box = this.canvas.getBoundingClientRect();
        state.zoomBy(Math.abs(last - other) / gap, this.time((event.clientX + other) / 2 - box.left));
      }
      this.moved = 9;
    }
    this.pointers.set(event.pointerId, event.clientX);
    return undefined;
  }

  release(event) {
    const was = this.pointers.delete(event.pointerId);
    if (!was || this.moved > 3 || event.type === "pointercancel") return;
    const found = this.found(event);
    if (found && found.heading) {
      const number = found.core.number;
      if (!this.folded.delete(number)) this.folded.add(number);
      this.draw();
    } else if (found && found.node !== undefined) {
      state.selectNode(found.core.number, found.node);
    } else if (found && found.before !== undefined) {
      state.selectNode(found.core.number, found.before);
    } else {
      state.clear();
    }
  }

  look(event) {
    this.hover = this.found(event);
    showTip(this.hover ? describe(this.hover) : "", event.clientX, event.clientY);
    this.draw();
  }

  wheel(event) {
    const box = this.canvas.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      state.zoomBy(Math.exp(event.deltaY * 0.002), this.time(event.clientX - box.left));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      state.move((event.deltaX || event.deltaY) / this.canvas.clientWidth);
    }
  }

  /** The node before or behind the selected one on its lane, or the nearest of a lane beside. */
  step(along, across) {
    const { view } = state, [core, node] = state.node || view.chain[0] || [0, 0];
    if (!state.node) return this.reveal(core, node);
    const lanes = view.cores.flatMap((each) => each.lanes.map((lane) => ({ core: each, lane })));
    const mine = lanes.findIndex((each) => each.core.number === core && each.lane.nodes.includes(node));
    const other = lanes[Math.max(0, Math.min(lanes.length - 1, mine + across))];
    let at = across
      ? Math.min(other.lane.nodes.length - 1, this.firstAfter(other.core, other.lane, view.cores[core].start[node]))
      : other.lane.nodes.indexOf(node) + along;
    at = Math.max(0, Math.min(other.lane.nodes.length - 1, at));
    return this.reveal(other.core.number, other.lane.nodes[at]);
  }

  reveal(core, node) {
    this.folded.delete(core);
    const start = state.view.cores[core].start[node], end = state.view.end(core, node), [from, to] = state.range;
    if (end < from || start > to) state.zoom((start + end - (to - from)) / 2, (start + end + (to - from)) / 2);
    state.selectNode(core, node);
  }

  zoomToSelected() {
    if (!state.node) return;
    const [core, node] = state.node, start = state.view.cores[core].start[node];
    const margin = 4 * state.view.cores[core].length[node];
    state.zoom(start - margin, state.view.end(core, node) + margin);
  }
}

function isMatch(item, pipe) {
  const { view, query } = state, wanted = query.toLowerCase();
  return item.label.toLowerCase().includes(wanted) || view.line(item.place).toLowerCase().endsWith(wanted)
    || String(view.data.pipes[pipe]).toLowerCase() === wanted
    || (wanted.length > 2 && view.source(item.place).toLowerCase().includes(wanted));
}

/** What a node waited for, in words. */
function waited(core, node) {
  const { view } = state;
  return (view.into.get(key(core, node)) || []).map(([other, at]) => {
    const item = view.item(other, at), pipe = view.data.pipes[view.cores[other].pipe[at]];
    const whose = other === core ? "" : ` of ${view.cores[other].place}`;
    return { core: other, node: at, end: view.end(other, at), text: `${item.label} on ${pipe}${whose}`, place: item.place };
  });
}

function describe(found) {
  const { view } = state, { core } = found;
  if (found.heading) return `${core.name}\nclick to fold`;
  if (found.node === undefined) {
    const next = found.before, from = found.behind === undefined ? 0 : view.end(core.number, found.behind);
    const last = waited(core.number, next).sort((a, b) => b.end - a.end)[0];
    const why = last ? `\nfor ${last.text}, ${view.line(last.place)}` : "";
    return `${found.lane.pipe} stands still for ${view.us(core.start[next] - from)}${why}`;
  }
  const item = view.item(core.number, found.node), many = core.many.get(found.node);
  const head = many ? `${many.count} instructions, most of it ${item.label}` : item.label;
  return `${head}  ${view.us(core.length[found.node])}, ${thousands(core.length[found.node])} cycles\n`
    + `${found.lane.pipe}, ${view.line(item.place)}: ${view.source(item.place)}`;
}
