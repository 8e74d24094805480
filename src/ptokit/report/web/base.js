"use strict";
// The numbers of the page, and what its parts share: colours, words, and what is selected.

const NUMBERS = JSON.parse(document.getElementById("numbers").textContent);
const $ = (id) => document.getElementById(id);

const PIPE_COLOURS = {
  "MTE2": "#3b7dd8", "MTE2 (vector)": "#5a9bea", "MTE1": "#1f9d8f", "M": "#7d5bd9",
  "V": "#e0762f", "FIX": "#5a9e2f", "MTE3": "#b58a12", "S": "#87909e",
};
const PIPE_ORDER = ["S", "MTE2", "MTE2 (vector)", "MTE1", "M", "V", "FIX", "MTE3"];
const BLOCK_COLOURS = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#9c755f", "#d4a72c"];

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "text") made.textContent = value;
    else if (name === "style") Object.assign(made.style, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A launch as the page works with it. */
class LaunchView {
  constructor(data) {
    this.data = data;
    this.perUs = data.clock_ghz * 1e3;
    this.cores = data.cores.map((core, number) => this.core(core, number));
    this.into = new Map();
    this.outOf = new Map();
    this.flows = data.flows.flatMap((each) => {
      const takers = summed(each.taker);
      return summed(each.giver).map((giver, at) => [each.from, giver, each.to, takers[at]]);
    });
    for (const [core, node, other, at] of this.flows) {
      push(this.outOf, key(core, node), [other, at]);
      push(this.into, key(other, at), [core, node]);
    }
    this.chain = summed(data.chain.node).map((node, at) => [data.chain.core[at], node]);
    this.onChain = new Set(this.chain.map(([core, node]) => key(core, node)));
    this.memory = data.memory.map((entry) => ({
      ...entry, blocks: entry.blocks.map((block) => ({ ...block, lives: summed(block.lives) })),
    }));
  }

  core(core, number) {
    const start = Float64Array.from(summed(core.start)), { count, busy } = core.many;
    const lanes = new Map();
    core.pipe.forEach((pipe, index) => push(lanes, pipe, index));
    const named = [...lanes].map(([pipe, nodes]) => ({ pipe: this.data.pipes[pipe], nodes }));
    named.sort((a, b) => PIPE_ORDER.indexOf(a.pipe) - PIPE_ORDER.indexOf(b.pipe));
    const many = new Map(summed(core.many.at).map((index, at) => [index, { count: count[at], busy: busy[at] }]));
    return { ...core, number, start, lanes: named, many };
  }

  item(core, node) { return this.data.items[this.cores[core].item[node]]; }
  end(core, node) { return this.cores[core].start[node] + this.cores[core].length[node]; }

  us(cycles) {
    const value = cycles / this.perUs;
    return `${value < 10 ? value.toFixed(2) : value < 1000 ? value.toFixed(1) : Math.round(value)} µs`;
  }
  percent(cycles) { return percent(cycles / this.data.cycles); }

  line(place) {
    if (place < 0) return "";
    const [file, line] = this.data.places[place];
    return `${this.data.files[file].name}:${line}`;
  }
  source(place) {
    if (place < 0) return "";
    const [file, line] = this.data.places[place];
    return (this.data.files[file].lines[line - 1] || "").trim();
  }
}

const key = (core, node) => core * 67108864 + node;
const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
const bytes = (n) => n >= 1 << 20 ? `${+(n / 1048576).toFixed(1)} MB` : n >= 1024 ? `${+(n / 1024).toFixed(1)} KB` : `${n} B`;
const thousands = (n) => Math.round(n).toLocaleString("en-US");

/** Numbers from the steps between them. */
function summed(steps) {
  let at = 0;
  return steps.map((step) => (at += step));
}

function push(map, at, value) {
  const found = map.get(at);
  if (found) found.push(value); else map.set(at, [value]);
}

/** What is shown and selected; whoever draws listens. */
const state = {
  view: null,
  range: [0, 1], // cycles
  node: null, // [core, index]
  places: new Set(),
  block: null, // { memory, start, stop }
  query: "",
  arrows: false,
  path: true,
  listeners: [],
  tell(what) { for (const each of this.listeners) each(what); },

  zoom(from, to) {
    const whole = this.view.data.cycles, least = Math.max(8, whole / 2e5);
    let width = Math.min(whole, Math.max(least, to - from));
    const start = Math.max(0, Math.min(whole - width, (from + to - width) / 2));
    this.range = [start, start + width];
    this.tell("range");
  },
  zoomBy(factor, around) {
    const [from, to] = this.range, at = around === undefined ? (from + to) / 2 : around;
    this.zoom(at - (at - from) * factor, at + (to - at) * factor);
  },
  move(share) {
    const [from, to] = this.range, whole = this.view.data.cycles;
    const step = Math.max(-from, Math.min(whole - to, share * (to - from)));
    this.range = [from + step, to + step];
    this.tell("range");
  },

  selectNode(core, index) {
    this.node = [core, index];
    this.block = null;
    this.places = new Set([this.view.item(core, index).place]);
    this.tell("select");
  },
  selectPlace(place) {
    this.node = this.block = null;
    this.places = new Set(place < 0 ? [] : [place]);
    this.tell("select");
  },
  selectBlock(memory, block) {
    this.node = null;
    this.block = { memory, start: block.start, stop: block.stop, name: block.name };
    this.places = new Set(this.view.data.items.filter((i) => touches(i, this.block)).map((i) => i.place));
    this.tell("select");
  },
  clear() {
    this.node = this.block = null;
    this.places = new Set();
    this.tell("select");
  },

  isSelected(item) {
    return this.block ? touches(item, this.block) : this.places.has(item.place);
  },
  get hasSelection() { return this.places.size > 0; },
};

function touches(item, block) {
  return (item.touches || []).some(([memory, start, stop]) =>
    memory === block.memory && start < block.stop && block.start < stop);
}

/** A canvas as sharp as the screen; gives back its context and size. */
function prepared(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.style.height = `${height}px`;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width];
}

function showTip(text, x, y) {
  const tip = $("tip");
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(window.innerWidth - width - 4, x + 14))}px`;
  tip.style.top = `${y + 18 + height > window.innerHeight ? y - height - 10 : y + 18}px`;
}

/** Round steps of a time axis, in microseconds. */
function ticks(from, to, count) {
  const raw = (to - from) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((each) => each >= raw);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return found.map((at) => [at, at.toFixed(digits)]);
}
