"use strict";
// Draws the view data of the page: no framework, no request, text only through textContent.
// One file, because the page is one file and nothing builds it.
(() => {
  const byId = (id) => document.getElementById(id);
  const page = JSON.parse(byId("view").textContent);
  const FEW_SNAPSHOTS = 3; // as many are drawn with all their manifests
  const ENDS = new Set(["swap", "finish", "refuse", "abort"]);
  const BIG = 14; // leaves of an unchanged part that is drawn folded
  let view = page.view;
  let trace = null, number = 0, at = 0;
  let chosen = null; // the snapshot whose files are shown; null: the head
  let everything = null; // all snapshots with their files; null: if they are few
  let walk = null; // explorer: the choices taken so far
  let refocus = false; // explorer: the keyboard was among the choices
  let unfolded = null; // whether the state is unfolded; null: if there is no table to look at
  let open = []; // explorer: what can happen next at each moment, and what does not hold there

  // ---- small helpers

  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "lane") element.style.setProperty("--lane", `var(--lane-${value % 8})`);
      else if (name.startsWith("--")) element.style.setProperty(name, value);
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
  }
  const put = (element, ...children) => element.replaceChildren(...children.flat().filter(Boolean));
  function fill(id, content) {
    const section = byId(id);
    section.hidden = !content;
    if (content) put(section.querySelector("div"), content);
    return section;
  }
  const laneOf = (name) => Math.max(0, trace.actors.indexOf(name));
  const moment = () => trace.moments[at];
  const isNarrow = () => innerWidth <= 900; // as in the style
  const end = () => trace.moments.length - 1;

  // ---- lanes

  function drawLanes() {
    const actors = trace.actors;
    const lanes = byId("lanes");
    lanes.style.setProperty("--lanes", actors.length);
    const heads = actors.map((name, lane) => make("span", { lane }, name));
    put(byId("heads"), byRail() ? heads : [make("i"), ...heads]);
    put(byId("rails"), make("i", { style: "border:0" }), actors.map((_, lane) => make("i", { lane })));
    put(byId("steps"), trace.moments.map(drawRow));
  }
  function byRail() {
    const narrow = (byId("lanes").clientWidth - 60) / trace.actors.length < 140; // too narrow for words
    byId("lanes").classList.toggle("by-rail", narrow);
    return narrow;
  }
  function drawRow(step) {
    const start = step.lane === null;
    const loop = trace.loop && trace.loop.length && step.number >= trace.loop[0];
    const what = make("span", { class: "what" },
      start ? null : make("span", { class: "who" }, step.actor + " "),
      make("strong", {}, step.title), step.label ? make("small", {}, breakable(step.label)) : null, badges(step),
      step.news.length ? make("small", { class: "print-only" }, step.news.map(newsInWords).join(" · ")) : null);
    const button = make("button", {
      type: "button", class: start ? "step start" : "step", id: `row-${step.number}`, tabindex: -1,
      "--at": start ? 0 : step.lane, lane: start ? null : step.lane, onclick: () => go(step.number, true),
    }, make("span", { class: "n" }, make("span", { class: "unseen" }, "step "), String(step.number)),
      busyAt(step.number), start ? null : make("span", { class: "dot" }), what);
    const notes = loop && step.number === trace.loop[0] ? make("p", { class: "loop-note" }, "⟲ from here on it repeats for ever") : null;
    const last = loop && step.number === trace.loop[1] ? make("p", { class: "loop-note" }, `↑ back to step ${trace.loop[0]}`) : null;
    const stuck = trace.loop && !trace.loop.length && step.number === end() ? make("p", { class: "loop-note" }, "from here on nobody moves any more") : null;
    return make("li", { class: loop ? "loop" : null }, notes, button, last, stuck);
  }
  // Who is between its start and its end at this step: bars side by side are commands that overlap in time.
  function busyAt(number) {
    return trace.actors.map((name, lane) => {
      const mine = trace.moments.filter((one) => one.lane === lane);
      const begun = mine.findLast((one) => one.number <= number && one.title.startsWith("start"));
      const done = begun && mine.find((one) => one.number > begun.number && ENDS.has(one.title));
      if (!begun || (done && done.number < number)) return null;
      const part = begun.number === number ? " begins" : done && done.number === number ? " ends" : "";
      return make("i", { class: `busy${part}`, lane, "--at": lane });
    }).filter(Boolean);
  }
  const breakable = (text) => text.split(/(?<=_)/).flatMap((part, index) => (index ? [make("wbr"), part] : [part]));
  function badges(step) {
    if (!step.badges.length) return null;
    return make("span", { class: "badges" }, step.badges.map((badge) => make("span", { class: `badge ${badge.tone}` }, badge.text)));
  }
  const newsInWords = (item) => `${item.what}: ${item.before && item.after ? `${item.before} → ${item.after}` : item.after || `− ${item.before}`}`;

  function showRow() {
    for (const button of byId("steps").querySelectorAll(".step")) {
      const here = button.id === `row-${at}`;
      button.tabIndex = here ? 0 : -1;
      if (here) button.setAttribute("aria-current", "step"); else button.removeAttribute("aria-current");
      button.classList.toggle("later", Number(button.id.slice(4)) > at);
    }
    // Only the panel scrolls: the page stays where the reader has it.
    const lanes = byId("lanes"), row = byId(`row-${at}`);
    const top = row.getBoundingClientRect().top - lanes.getBoundingClientRect().top + lanes.scrollTop;
    const margin = 70;
    if (top - margin < lanes.scrollTop) lanes.scrollTop = at === 0 ? 0 : top - margin;
    else if (top + row.offsetHeight + margin / 2 > lanes.scrollTop + lanes.clientHeight) {
      lanes.scrollTop = top + row.offsetHeight + margin / 2 - lanes.clientHeight;
    }
  }

  // ---- the current step

  function drawCurrent() {
    const step = moment(), section = byId("current");
    section.style.setProperty("--lane", step.lane === null ? "var(--strong-line)" : `var(--lane-${step.lane % 8})`);
    put(section,
      make("h3", {}, step.actor ? make("span", {}, step.actor) : null, step.actor ? " · " : null, step.title),
      step.label ? make("p", { class: "label" }, step.label) : null,
      step.caption ? make("p", { class: "caption" }, sentence(step.caption)) : null, badges(step),
      step.news.length ? make("ul", { class: "news", "aria-label": "What this step changed" }, step.news.map(drawNews)) : null,
      step.held.length ? make("details", { class: "fold" }, make("summary", {}, `what changed in ${step.actor} itself`),
        make("ul", { class: "news" }, step.held.map(drawNews))) : null);
    byId("status").textContent = `Step ${at} of ${end()}. ${step.actor ? step.actor + ": " : ""}${step.title}. ${step.label} ${step.badges.map((badge) => badge.text).join(", ")}`;
    byId("where").textContent = at ? `step ${at} of ${end()}` : `start of ${end()} steps`;
    byId("previous").disabled = byId("first").disabled = at === 0;
    byId("next").disabled = at === end() && !loops();
    byId("last").disabled = at === end();
  }
  const sentence = (text) => (/[.!?…]$/.test(text) ? text : text + ".");
  function drawNews(item) {
    return make("li", {}, make("span", { class: `place ${item.tone}` }, item.what),
      make("span", { class: `value ${item.tone}` }, change(item.before, item.after, item.tone)));
  }
  function change(before, after, tone) {
    return [before ? make("del", {}, before) : null, before && after ? make("span", { class: "arrow" }, " → ") : null,
      after ? make(tone ? "span" : "ins", {}, after) : null].filter(Boolean);
  }

  function drawChecks() {
    const step = moment();
    if (!step.checks.length) return fill("checks", null);
    const wrong = step.allowed && step.broken;
    const list = make("ul", { class: "checks" }, step.checks.map((check) => make("li", {},
      make("span", { class: `answer ${check.tone}` }, check.answer),
      make("span", {}, make("code", {}, check.check), check.because ? make("small", {}, check.because) : null))));
    const remark = wrong ? make("p", { class: "remark" }, `These checks let the commit of ${step.actor} through, and a reader now sees what it should not.`) : null;
    const section = fill("checks", make("div", {}, list, remark));
    section.classList.toggle("bad", wrong);
    byId("checks-title").textContent = wrong ? "What was checked, and passed wrongly" : step.allowed ? "Why the commit was allowed" : "What was checked";
  }

  // ---- readers

  function drawReaders() {
    const table = step_table();
    if (!table || !table.readers.length) return fill("readers", null);
    const cards = make("div", { class: "readers", tabindex: table.readers.length > 3 ? 0 : null, role: "group", "aria-label": "Rows at each snapshot" },
      table.readers.map((reader) => drawReader(reader, table.columns)));
    fill("readers", cards);
  }
  function drawReader(reader, columns) {
    const sees = rowsTable(reader.rows, columns, reader.snapshot, "sees");
    return make("article", { class: `reader${reader.head ? " head" : ""}${reader.agrees ? "" : " wrong"}` },
      make("h3", {}, reader.title, reader.head ? make("span", { class: "tag" }, "head") : null,
        reader.mark ? make("span", { class: `tag ${reader.mark}` }, reader.mark) : null,
        reader.agrees ? make("span", { class: "tag ok" }, "✓ as it should be") : make("span", { class: "tag wrong" }, "✗ wrong")),
      reader.command ? make("p", { class: "command" }, reader.command) : null,
      reader.agrees ? sees : make("div", { class: "both" },
        make("div", {}, make("h4", {}, "A reader sees"), sees),
        make("div", {}, make("h4", {}, "It should see"), rowsTable(reader.expected, columns, reader.snapshot, "should see"))));
  }
  function rowsTable(rows, columns, snapshot, what) {
    if (!rows.length) return make("p", { class: "none" }, "no row");
    return make("table", { class: columns.length > 4 ? "wide" : null, "aria-label": `What a reader of snapshot ${snapshot} ${what}` },
      columns.length ? make("thead", {}, make("tr", {}, columns.map((name) => make("th", { scope: "col" }, name)))) : null,
      make("tbody", {}, rows.map((row) => make("tr", { class: row.tone || null }, row.cells.map((cell, index) => make("td", { "data-column": columns[index] || null }, cell))))));
  }

  // ---- the metadata tree

  const step_table = () => (moment().table === null ? null : trace.tables[moment().table]);
  function drawTable() {
    const table = step_table();
    if (!table || !table.levels.length) return fill("table", null);
    const snapshots = table.levels.flatMap((level) => level.boxes).filter((box) => box.kind === "snapshot");
    const shown = snapshots.some((box) => box.of[0] === chosen) ? chosen : table.head;
    const all = everything === null ? snapshots.length <= FEW_SNAPSHOTS && !isNarrow() : everything;
    const drawn = table.levels.map((level) => drawLevel(level, shown, all));
    const above = table.levels.findIndex((level) => level.title === "Snapshots"); // catalog and metadata stand in one column
    const levels = make("div", { class: "levels" }, above > 1 ? make("div", { class: "stack" }, drawn.splice(0, above)) : null, drawn);
    const bar = make("div", { class: "tree-bar" },
      make("span", {}, shown === null ? "No snapshot yet" : `Strong lines: what a reader of snapshot ${shown} goes through.${!isNarrow() && table.links.some((link) => link.kind === "deletes") ? " Dashed: deletes rows of that file." : ""}`),
      snapshots.length > 1 ? make("button", { type: "button", onclick: () => { everything = !all; drawTable(); } },
        all ? `only snapshot ${shown}` : "all snapshots") : null);
    fill("table", make("div", {}, bar, make("div", { class: "tree", tabindex: 0, role: "group", "aria-label": "Metadata tree" }, levels)));
    drawLinks(levels, table, shown);
    observer.disconnect();
    observer.observe(levels);
  }
  const observer = new ResizeObserver(() => {
    const table = step_table(), levels = document.querySelector(".levels");
    if (table && levels) drawLinks(levels, table, levels.dataset.shown === "" ? null : Number(levels.dataset.shown));
  });
  function drawLevel(level, shown, all) {
    const boxes = level.boxes.filter((box) => all || box.kind === "snapshot" || !box.of.length || box.of.includes(shown));
    return make("section", { class: "level" }, make("h3", {}, level.title), boxes.map((box) => drawBox(box, shown)));
  }
  function drawBox(box, shown) {
    const snapshot = box.kind === "snapshot";
    const old = box.of.length > 0 && !box.of.includes(shown);
    const sort = /delete/.test(box.kind) ? " deletes" : "";
    const kind = /manifest$|file$/.test(box.kind) ? box.kind : "";
    return make(snapshot ? "button" : "div", {
      class: `box${sort}${box.mark ? " " + box.mark : ""}${old ? " old" : ""}`, "data-box": box.id,
      type: snapshot ? "button" : null, "aria-pressed": snapshot ? String(box.of[0] === shown) : null,
      onclick: snapshot ? () => { chosen = box.of[0]; drawTable(); document.querySelector(`[data-box="${box.id}"]`).focus(); } : undefined,
    }, make("b", {}, box.title), kind ? make("span", { class: "kind" }, kind) : null,
      box.mark ? make("span", { class: `tag ${box.mark}` }, box.mark) : null,
      box.lines.length ? make("ul", {}, box.lines.map((line) => make("li", { class: line.tone || null }, line.text))) : null);
  }
  function drawLinks(levels, table, shown) {
    levels.dataset.shown = shown === null ? "" : shown;
    levels.querySelector("svg")?.remove();
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("aria-hidden", "true");
    const home = levels.getBoundingClientRect(), places = new Map();
    for (const element of levels.querySelectorAll("[data-box]")) {
      const r = element.getBoundingClientRect();
      places.set(element.dataset.box, { x: r.left - home.left, y: r.top - home.top, w: r.width, h: r.height, old: element.classList.contains("old") });
    }
    for (const link of table.links) {
      const from = places.get(link.source), to = places.get(link.target);
      const line = from && to ? curve(from, to, link.kind) : null;
      if (!line) continue;
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", line);
      path.setAttribute("class", link.kind === "deletes" ? "deletes" : from.old || to.old ? "old" : "");
      svg.append(path);
    }
    levels.prepend(svg);
  }
  function curve(from, to, kind) {
    const down = isNarrow();
    if (kind === "deletes") {
      if (down || Math.abs(from.x - to.x) > 4) return null;
      const x1 = from.x + from.w, x2 = to.x + to.w, y1 = from.y + 16, y2 = to.y + 16;
      return `M${x1} ${y1} C${Math.max(x1, x2) + 24} ${y1} ${Math.max(x1, x2) + 24} ${y2} ${x2} ${y2}`;
    }
    if (down || (from.x < to.x + to.w && to.x < from.x + from.w)) {
      const x1 = from.x + Math.min(from.w / 2, 60), y1 = from.y + from.h, x2 = to.x + Math.min(to.w / 2, 60), y2 = to.y;
      return `M${x1} ${y1} C${x1} ${y1 + 18} ${x2} ${y2 - 18} ${x2} ${y2}`;
    }
    const x1 = from.x + from.w, y1 = from.y + Math.min(from.h / 2, 16), x2 = to.x, y2 = to.y + Math.min(to.h / 2, 16);
    const bend = Math.max(14, (x2 - x1) / 2);
    return `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  }

  // ---- any state

  function drawState() {
    const state = trace.states[moment().state];
    fill("shared", state.rest.length ? folded(drawNodes(state.rest)) : null);
    fill("actors", state.actors.length ? folded(make("div", { class: "holders" }, state.actors.map((node) => make("div", { class: "holder", lane: laneOf(node.key) },
      make("h3", {}, node.key), node.children.length ? drawNodes(node.children) : drawNodes([{ ...node, key: "" }]))))) : null);
  }
  function folded(content) {
    const shown = unfolded === null ? byId("table").hidden : unfolded;
    const details = make("details", { class: "fold", open: shown }, make("summary", {}, "every value of the model"), content);
    details.addEventListener("toggle", () => { if (details.isConnected) unfolded = details.open; });
    return details;
  }
  const leaves = (node) => (node.children.length ? node.children.reduce((sum, child) => sum + leaves(child), 0) : 1);
  const touched = (node) => node.mark !== "" || node.children.some(touched);
  function drawNodes(nodes) {
    return make("ul", { class: "state" }, nodes.map(drawNode));
  }
  function drawNode(node) {
    const key = node.key ? make("span", { class: "key" }, node.key) : null;
    const tag = node.mark && node.children.length ? make("span", { class: `tag ${node.mark}` }, node.mark) : null;
    if (!node.children.length) return make("li", { class: node.mark || null }, key, leaf(node));
    if (node.children.every((child) => !child.key && !child.children.length && child.text.length + child.before.length < 40)) {
      return make("li", { class: node.mark || null }, key, make("span", { class: "chips" }, node.children.map(chip)), tag);
    }
    const inside = drawNodes(node.children);
    if (leaves(node) > BIG && !touched(node)) {
      return make("li", {}, make("details", {}, make("summary", {}, `${node.key || "…"} (${leaves(node)} values, unchanged)`), inside));
    }
    return make("li", { class: node.mark || null }, key, tag, inside);
  }
  function leaf(node) {
    if (node.mark === "changed") return make("span", { class: "text" }, change(node.before, node.text, ""));
    if (node.mark === "gone") return make("del", { class: "text" }, node.text);
    return make(node.mark === "new" ? "ins" : "span", { class: "text" }, node.text);
  }
  function chip(node) {
    const text = node.mark === "changed" ? change(node.before, node.text, "") : [node.mark === "new" ? "+ " : "", node.text];
    return make("span", { class: node.mark || null }, ...text);
  }

  // ---- walking

  const loops = () => trace.loop && trace.loop.length > 0;
  function go(target, said) {
    if (loops() && target > end() && end() > 0) target = trace.loop[0]; // a lasso goes round
    at = Math.max(0, Math.min(end(), target));
    draw();
    if (said) remember();
  }
  function draw() {
    showRow(); drawCurrent(); drawChoices(); drawChecks(); drawReaders(); drawTable(); drawState();
  }
  function remember() {
    const place = walk === null ? `#${number ? `trace-${number + 1}-` : ""}step-${at}` : `#walk=${walk.join(".")}${at === end() ? "" : `&step-${at}`}`;
    history.replaceState(null, "", place);
  }
  function choose(which) {
    number = which;
    trace = view.traces[which];
    chosen = everything = null;
    for (const [index, button] of [...byId("traces").children].entries()) button.setAttribute("aria-pressed", String(index === which));
    drawLanes();
  }
  function drawTabs() {
    if (view.traces.length < 2) return;
    byId("traces").hidden = false;
    put(byId("traces"), view.traces.map((some, index) => make("button", { type: "button", onclick: () => { choose(index); go(end(), true); } }, some.properties.join(", ") || some.title)));
  }
  function fromHash() {
    const found = /^#(?:trace-(\d+)-)?step-(\d+)$/.exec(location.hash);
    if (!found && trace) return;
    const which = found && found[1] ? Math.min(Number(found[1]), view.traces.length) - 1 : 0;
    if (!trace || which !== number) choose(Math.max(0, which));
    go(found ? Number(found[2]) : end(), false);
  }
  const MOVES = { ArrowRight: 1, ArrowDown: 1, j: 1, ArrowLeft: -1, ArrowUp: -1, k: -1 };
  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !trace) return;
    const where = event.target instanceof Element ? event.target : document.body;
    if (where.closest("input, textarea, select")) return;
    const arrow = event.key.startsWith("Arrow");
    if (arrow && where.closest(".tree, .readers, footer")) return; // these scroll
    if (event.key in MOVES) go(at + MOVES[event.key], true);
    else if (event.key === "Home") go(0, true);
    else if (event.key === "End") go(end(), true);
    else if (walk !== null && event.key === "Backspace") takeBack();
    else if (walk !== null && /^[1-9]$/.test(event.key)) byId("choices").querySelector(`[data-choice="${Number(event.key) - 1}"]`)?.click();
    else return;
    event.preventDefault();
    if (where.closest("#steps")) byId(`row-${at}`).focus({ preventScroll: true });
  }

  // ---- explorer: the same page, with the steps that can happen next as buttons

  function drawChoices() {
    if (walk === null) return;
    const { choices, broken } = open[at], groups = new Map();
    choices.forEach((choice, index) => groups.set(choice.actor, [...(groups.get(choice.actor) || []), { ...choice, index }]));
    const content = make("div", { class: "choices" },
      [...groups].map(([actor, some]) => make("div", { class: "group", lane: laneOf(actor) }, make("h3", {}, actor), make("div", {}, some.map(drawChoice)))),
      choices.length ? null : make("p", { class: "none" }, "Nobody can move here: the run ends."),
      broken.length ? make("p", { class: "remark" }, `Violated here: ${broken.join(", ")}`) : null,
      make("div", {}, make("button", { type: "button", class: "back", disabled: at === 0, onclick: takeBack }, "take back")));
    fill("choices", content);
  }
  function drawChoice(choice) {
    return make("button", { type: "button", class: "choice", "data-choice": choice.index, title: choice.caption, "aria-pressed": String(at < walk.length && walk[at] === choice.index), onclick: () => take(choice.index) },
      choice.index < 9 ? make("kbd", { "aria-hidden": "true" }, String(choice.index + 1)) : null, choice.title, choice.label ? make("small", {}, choice.label) : null, choice.marks.length ? make("small", {}, choice.marks.join(", ")) : null);
  }
  function walkTo(moves) {
    refocus = byId("choices").contains(document.activeElement);
    location.hash = `walk=${moves.join(".")}`;
  }
  const take = (index) => walkTo([...walk.slice(0, at), index]);
  const takeBack = () => { if (at > 0) walkTo(walk.slice(0, at - 1)); };
  async function load() {
    const found = /^#walk=([\d.]*)(?:&step-(\d+))?$/.exec(location.hash);
    const said = await ask(found ? found[1] : page.walk.join("."));
    byId("main").hidden = false;
    if (said.error) {
      fill("choices", make("p", { class: "fault" }, `The explorer has no such walk: ${said.error.message}`));
      return;
    }
    view = said.view;
    walk = said.walk;
    open = said.choices.map((choices, index) => ({ choices, broken: said.broken[index] }));
    choose(0);
    go(found && found[2] ? Number(found[2]) : end(), false);
    if (!found) remember();
    if (refocus) byId("choices").querySelector(".choice, .back").focus({ preventScroll: true });
    refocus = false;
  }
  async function ask(moves) {
    try {
      return await (await fetch(`walk?moves=${moves}`)).json();
    } catch {
      return { error: { message: "its server has ended" } };
    }
  }

  // ---- start

  for (const [id, target] of [["first", () => 0], ["previous", () => at - 1], ["next", () => at + 1], ["last", end]]) {
    byId(id).addEventListener("click", () => go(target(), true));
  }
  addEventListener("keydown", onKey);
  let narrow = isNarrow();
  addEventListener("resize", () => {
    if (trace && narrow !== isNarrow()) { narrow = isNarrow(); drawLanes(); draw(); }
  });
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
  if (page.walk) {
    byId("lanes-title").textContent = "Your walk";
    put(byId("walk").querySelector(".keys"), make("kbd", {}, "1"), "–", make("kbd", {}, "9"), " take · ", make("kbd", {}, "⌫"), " take back · ", make("kbd", {}, "←"), make("kbd", {}, "→"), " look");
    addEventListener("hashchange", load);
    load();
  } else if (view.traces.length) {
    byId("main").hidden = false;
    drawTabs();
    addEventListener("hashchange", fromHash);
    fromHash();
  }
})();
