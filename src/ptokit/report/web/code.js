"use strict";
// The source with its cycles, and the IR and the C++ made of it: a click on one marks the others.

class CodePane {
  constructor(name, texts, heat) {
    this.heat = heat;
    this.code = element("div", { class: `code${heat ? " heat" : ""}`, tabindex: "0", role: "listbox", "aria-label": name });
    this.head = element("div", { class: "name" }, element("span", { text: name }));
    this.root = element("div", { class: "pane" }, this.head, this.code);
    this.texts = texts;
    this.lines = new Map(); // of what is shown, by place
    if (texts.length > 1) {
      texts.forEach((text, number) => this.head.append(
        element("button", { text: text.name, onclick: () => this.show(number) })));
    }
    this.code.addEventListener("click", (event) => {
      const line = event.target.closest("[data-place]");
      if (line) state.selectPlace(Number(line.dataset.place));
    });
    this.code.addEventListener("keydown", (event) => this.keys(event));
    this.show(0);
  }

  show(number) {
    this.shown = number;
    this.lines.clear();
    const { lines, places } = this.texts[number] || { lines: [], places: [] }, made = [];
    [...this.head.querySelectorAll("button")].forEach((button, at) => button.setAttribute("aria-pressed", String(at === number)));
    lines.forEach((text, at) => {
      const place = places[at], cost = this.heat && this.heat.get(place);
      const line = element("div", { class: "l", role: "option", "data-place": place >= 0 ? place : null },
        element("span", { class: "no", text: String(at + 1) }));
      if (this.heat) line.append(this.cost(cost));
      line.append(element("span", { text: text || " " }));
      if (place >= 0) push(this.lines, place, line);
      made.push(line);
    });
    this.code.replaceChildren(...made);
    this.mark(false);
  }

  cost(cost) {
    const cell = element("span", { class: "c" });
    if (!cost) return cell;
    const share = Math.min(1, cost.cycles / this.heat.most);
    cell.textContent = cost.cycles ? thousands(cost.cycles) : "";
    cell.style.background = `linear-gradient(to left, rgba(var(--hot), ${0.18 + 0.5 * share}) ${100 * share}%, transparent ${100 * share}%)`;
    cell.title = `${thousands(cost.cycles)} cycles of work in ${thousands(cost.times)} instructions, ${thousands(cost.waits)} of waiting`;
    return cell;
  }

  /** Mark the lines of what is selected, and bring the first of them into sight. */
  mark(scrolls) {
    for (const line of this.code.querySelectorAll(".on")) line.classList.remove("on");
    let first = null;
    if (scrolls && state.places.size && ![...state.places].some((place) => this.lines.has(place))) {
      const elsewhere = this.texts.findIndex((text) => text.places.some((place) => state.places.has(place)));
      if (elsewhere >= 0) { this.show(elsewhere); this.mark(true); return; }
    }
    for (const place of state.places) {
      for (const line of this.lines.get(place) || []) {
        line.classList.add("on");
        if (!first || line.offsetTop < first.offsetTop) first = line;
      }
    }
    if (first && scrolls) this.scrollTo(first);
  }

  scrollTo(line) {
    const { scrollTop, clientHeight } = this.code, top = line.offsetTop;
    if (top < scrollTop || top > scrollTop + clientHeight - 24) this.code.scrollTop = top - clientHeight / 2.5;
  }

  /** Bring the lines of a place into sight, in the file that has them. */
  reveal(place) {
    const number = this.texts.findIndex((text) => text.places.includes(place));
    if (number >= 0 && number !== this.shown) this.show(number);
    const lines = this.lines.get(place);
    if (lines) this.scrollTo(lines[0]);
  }

  keys(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const linked = [...this.code.querySelectorAll("[data-place]")];
    const at = linked.findIndex((line) => line.classList.contains("on"));
    const next = linked[Math.max(0, Math.min(linked.length - 1, at + step))];
    if (next) state.selectPlace(Number(next.dataset.place));
  }
}

/** The files of the launch, with the place of every line that has one. */
function sourceTexts(view) {
  return view.data.files.map((file, number) => {
    const places = new Array(file.lines.length).fill(-1);
    view.data.places.forEach(([of, line], place) => { if (of === number) places[line - 1] = place; });
    return { name: file.name, lines: file.lines, places };
  });
}

function heatOf(view) {
  const heat = new Map();
  heat.most = 1;
  for (const [place, cycles, waits, times] of view.data.lines) {
    heat.set(place, { cycles, waits, times });
    heat.most = Math.max(heat.most, cycles);
  }
  return heat;
}
