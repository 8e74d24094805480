"use strict";
// Memories: addresses over time, on the stretch of time that the timeline shows.

class MemoryMap {
  constructor(entry) {
    this.entry = entry;
    this.top = Math.max(...entry.blocks.map((block) => block.stop));
    const share = entry.capacity ? this.top / entry.capacity : 1;
    this.scale = share > 0.6 ? entry.capacity || this.top : this.top;
    this.canvas = element("canvas", { "aria-label": `Map of ${entry.memory}`, role: "img" });
    this.canvas.addEventListener("pointermove", (event) => this.look(event));
    this.canvas.addEventListener("pointerleave", () => showTip(""));
    this.canvas.addEventListener("click", (event) => {
      const block = this.found(event);
      if (block) state.selectBlock(entry.memory, block); else state.clear();
    });
    const held = covered(entry.blocks);
    const limit = entry.capacity ? ` of ${bytes(entry.capacity)}` : "";
    this.root = element("div", { class: "map" },
      element("div", { class: "about" },
        element("b", { text: entry.memory }),
        element("span", { text: `${bytes(held)}${limit}` }),
        element("div", { class: "gauge" }, element("i", { style: { width: `${100 * held / (entry.capacity || held)}%` } })),
        element("span", { text: this.scale < entry.capacity ? `drawn: the first ${bytes(this.scale)}` : "drawn: all of it" })),
      this.canvas);
  }

  get height() { return Math.min(190, Math.max(64, 16 * this.entry.blocks.length + 20)); }

  x(cycles) {
    const [from, to] = state.range;
    return (cycles - from) / (to - from) * this.canvas.clientWidth;
  }
  box(block) {
    const y = 4 + (this.height - 8) * block.start / this.scale;
    const tall = Math.max(5, (this.height - 8) * (block.stop - block.start) / this.scale - 1);
    return [Math.min(y, this.height - 4 - tall), tall];
  }

  paint() {
    const [context, width] = prepared(this.canvas, this.height), soft = css("--soft");
    context.fillStyle = css("--well");
    context.fillRect(0, 0, width, this.height);
    const edge = 4 + (this.height - 8) * Math.min(1, (this.entry.capacity || this.scale) / this.scale);
    context.strokeStyle = this.scale >= this.entry.capacity ? css("--accent") : "transparent";
    context.strokeRect(0, edge, width, 0.5);
    context.font = "11px system-ui, sans-serif";
    this.entry.blocks.forEach((block, number) => {
      const [y, tall] = this.box(block), own = state.block && state.block.memory === this.entry.memory
        && state.block.start < block.stop && block.start < state.block.stop;
      const used = own || (state.hasSelection && !state.block && this.isUsed(block));
      const colour = BLOCK_COLOURS[number % BLOCK_COLOURS.length];
      context.fillStyle = colour;
      context.globalAlpha = 0.13;
      context.fillRect(0, y, width, tall);
      context.globalAlpha = state.hasSelection && !used ? 0.3 : 1;
      let painted = -1, labelled = -1e9;
      for (let at = 0; at < block.lives.length; at += 2) {
        const x0 = Math.max(0, this.x(block.lives[at])), x1 = Math.min(width, this.x(block.lives[at + 1]));
        if (x1 < 0 || x0 > width || x1 - painted < 0.4) continue;
        context.fillStyle = colour;
        context.fillRect(x0, y, Math.max(1, x1 - x0 - 1), tall);
        if (tall > 10 && x1 - x0 > 7 * block.name.length + 8 && x0 - labelled > 240) {
          context.fillStyle = "#fff";
          context.fillText(block.name, x0 + 4, y + tall / 2 + 4);
          labelled = x0;
        }
        painted = x1;
      }
      context.globalAlpha = 1;
      if (own) {
        context.strokeStyle = css("--ink");
        context.strokeRect(0.5, y - 0.5, width - 1, tall + 1);
      }
    });
    context.fillStyle = soft;
  }

  isUsed(block) {
    const { memory } = this.entry;
    return state.view.data.items.some((item) => state.places.has(item.place)
      && touches(item, { memory, start: block.start, stop: block.stop }));
  }

  found(event) {
    const box = this.canvas.getBoundingClientRect(), y = event.clientY - box.top;
    const near = this.entry.blocks.map((block) => {
      const [top, tall] = this.box(block);
      return { block, off: y < top ? top - y : y > top + tall ? y - top - tall : 0, tall };
    }).filter((each) => each.off < 4).sort((a, b) => a.off - b.off || a.tall - b.tall);
    return near.length ? near[0].block : null;
  }

  look(event) {
    const block = this.found(event);
    if (!block) return showTip("");
    const box = this.canvas.getBoundingClientRect(), [from, to] = state.range;
    const time = from + (event.clientX - box.left) / box.width * (to - from);
    let life = "holds nothing here";
    for (let at = 0; at < block.lives.length; at += 2) {
      if (block.lives[at] <= time && time <= block.lives[at + 1]) {
        life = `in use from ${state.view.us(block.lives[at])} to ${state.view.us(block.lives[at + 1])}`;
      }
    }
    const hex = (n) => `0x${n.toString(16)}`;
    return showTip(`${block.name || "no tile of the program"}\n${hex(block.start)}..${hex(block.stop)}, `
      + `${bytes(block.stop - block.start)}\n${life}`, event.clientX, event.clientY);
  }
}

function covered(blocks) {
  let total = 0, end = 0;
  for (const block of [...blocks].sort((a, b) => a.start - b.start)) {
    total += Math.max(0, block.stop - Math.max(block.start, end));
    end = Math.max(end, block.stop);
  }
  return total;
}
