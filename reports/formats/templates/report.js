"use strict";
const cells = JSON.parse(document.getElementById("data").textContent);
const names = Object.keys(cells);
const dialog = document.getElementById("cell");
const rows = [...document.querySelectorAll("#table tbody tr")];

/* An element with attributes and children; texts are texts. */
function made(tag, attributes, ...children) {
  const svg = ["svg", "path", "rect", "text", "g", "title"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/* ---- one cell ---- */

function table(heads, lines, label) {
  const cellOf = (value, index) => made("td", index ? { class: "r" } : {}, value);
  return made("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, made("table", { class: "attempts" },
    made("thead", {}, made("tr", {}, ...heads.map((head, index) => made("th", index ? { class: "r", scope: "col" } : { scope: "col" }, head)))),
    made("tbody", {}, ...lines.map((line) => made("tr", {}, ...line.map(cellOf))))));
}

function attempts(cell) {
  const heads = ["Verdict", "Trial", "For", "Rate", "Sent", "Processed", "Lost / dup. / dis. / corr.", "Late", "Blocked", "Drained", "p50", "p99", "Burnt / asked", "Took"];
  const lines = cell.attempts.map((one) => {
    const verdict = made("span", {}, made("b", { class: one.word }, one.word), one.why ? `: ${one.why}` : "", one.note ? made("small", {}, ` ${one.note}`) : "");
    return [verdict, String(one.number), one.purpose, one.rate, one.sent, one.processed, one.wrong, one.late, one.blocked, one.drained, one.p50 || "", one.p99 || "", one.burnt || "", one.seconds]
      .map((value) => (value === undefined ? "" : value));
  });
  return table(heads, lines, "Trials");
}

function ticksOf(marks, width) {
  return marks.flatMap((mark) => [made("path", { class: "g", d: `M0 ${mark.at}h${width}` }), made("text", { class: "y", x: -6, y: mark.at }, mark.text)]);
}

function timeline(one) {
  const [width, tall, low] = BOX, sketch = one.sketch;
  const shade = (height) => made("rect", { class: "w", x: sketch.window[0], width: sketch.window[1], height });
  const lower = made("g", { transform: `translate(0 ${tall + 32})` }, made("text", { y: -8 }, "backlog (messages)"), shade(low), ...ticksOf(sketch.left, width),
    made("path", { class: "b", d: `${sketch.backlog}V${low}H0z` }),
    ...sketch.times.map((mark, index) => made("text", { class: "x", x: mark.at, y: low + 19 }, mark.text + (index === sketch.times.length - 1 ? " s" : ""))));
  const drawing = made("svg", { viewBox: `-60 -24 684 ${tall + low + 98}`, role: "img", "aria-label": `Timeline of ${one.title}` },
    made("text", { y: -8 }, "messages"), shade(tall), ...ticksOf(sketch.counts, width),
    made("path", { class: "s", d: sketch.sent }), made("path", { class: "o", d: sketch.offered }), made("path", { class: "p", d: sketch.processed }), lower);
  return made("figure", { class: "trial" }, made("figcaption", {}, one.title), drawing, made("p", { class: "cpu" }, one.cpu ? `CPU (cores): ${one.cpu}` : ""));
}

function belief(found) {
  const high = 110, mark = (x, kind) => made("path", { class: `tick ${kind}`, d: `M${x} ${high + 4}v12` });
  return made("figure", { class: "trial belief" },
    made("figcaption", {}, "What the trials say of the top rate"),
    made("svg", { viewBox: "-30 -10 664 168", role: "img", "aria-label": "Posterior of the top rate over messages a second, with its 95 percent interval" },
      made("rect", { class: "w", x: found.interval[0], width: Math.max(1, found.interval[1] - found.interval[0]), height: high }),
      made("path", { class: "b", d: `${found.curve}V${high}H0z` }),
      ...found.sustained.map((x) => mark(x, "up")), ...found.overloaded.map((x) => mark(x, "down")),
      ...found.ticks.map((tick) => made("text", { class: "x", x: tick.at, y: high + 38 }, tick.text))),
    made("p", { class: "cpu" }, "Posterior with a flat prior over messages/s; shaded: 95 % of it. Ticks below: trials that were sustained (green) or overloaded (orange, lower)."));
}

function legend() {
  const item = (kind, text) => [made("span", { class: kind }), text];
  return made("p", { class: "legend" }, ...item("line offered", "offered (due by then)"), ...item("line sent", "sent"), ...item("line processed", "processed"),
    ...item("area backlog", "backlog = offered − processed"), ...item("area window", "measured window"));
}

function bodyOf(cell) {
  const parts = [made("p", { class: "what" }, made("span", { class: `status ${cell.status.replace(" ", "-")}` }, cell.status),
    cell.interval ? ` · interval ${cell.interval}.` : "", ...(cell.sentences || []).map((sentence) => ` ${sentence}`))];
  if (cell.command) {
    const copy = made("button", { type: "button" }, "Copy");
    copy.addEventListener("click", () => { navigator.clipboard?.writeText(cell.command); copy.textContent = "Copied"; });
    parts.push(made("h3", {}, "Measure it again"), made("p", { class: "command" }, made("code", {}, cell.command), copy));
  }
  const drawn = (cell.attempts || []).filter((one) => one.sketch);
  if (cell.attempts) parts.push(made("h3", {}, `${cell.attempts.length} trials`), attempts(cell));
  if (cell.belief || cell.latency) parts.push(made("div", { class: "pair" }, cell.belief ? belief(cell.belief) : null,
    cell.latency ? made("div", {}, made("h3", {}, "Latency of the sustained trials"), table(["Rate", "of the top", "p50", "p90", "p99", "most"], cell.latency, "Latency")) : null));
  if (cell.costs) parts.push(made("h3", {}, "What it took"), table(["Role", "CPU (cores)", "Memory", "TCP sent", "TCP received", "Disk read", "Disk written", "GC"], cell.costs, "What it took"),
    made("p", { class: "none" }, "In the window of the trial that the answer rests on. On one machine, load, harness and system share its cores. Disk: through the cache; GC: of the time, in JVMs."));
  if (drawn.length) parts.push(made("h3", {}, "Timelines"), legend(), made("div", { class: "trials" }, ...drawn.map(timeline)));
  else if (cell.attempts) parts.push(made("p", { class: "none" }, "This run is too large for the timelines of its trials to be in the page, or none was kept; bench report RUN --format png draws them."));
  for (const log of cell.logs || []) parts.push(made("h3", {}, `End of ${log.file} during these trials`), made("pre", { tabindex: "0", role: "region", "aria-label": `End of ${log.file}` }, log.text));
  return parts;
}

function show(name) {
  const cell = cells[name];
  if (!cell) { if (dialog.open) dialog.close(); return; }
  const title = document.getElementById("cell-title");
  title.textContent = `${cell.system}, ${cell.point}: ${cell.claim}`;
  dialog.dataset.name = name;
  dialog.querySelector(".body").replaceChildren(...bodyOf(cell));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  title.focus();
}

const wanted = () => decodeURIComponent(location.hash.slice(1));
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#cell-']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  show(wanted());
});
addEventListener("popstate", () => show(wanted()));
addEventListener("hashchange", () => show(wanted()));
dialog.addEventListener("close", () => { if (cells[wanted()]) history.replaceState(null, "", location.pathname + location.search); });
dialog.addEventListener("click", (event) => {
  const step = Number(event.target.dataset.step || 0);
  if (event.target.hasAttribute("data-close") || event.target === dialog) dialog.close();
  if (!step) return;
  const shown = rows.filter((row) => !row.hidden).map((row) => row.id), at = shown.indexOf(dialog.dataset.name);
  const next = shown[(at + step + shown.length) % shown.length];
  if (next) { history.replaceState(null, "", `#${next}`); show(next); event.target.focus(); }
});

/* ---- the table: sorted by a column ---- */

const keys = new Map(rows.map((row) => [row, JSON.parse(row.dataset.keys)]));
function sorted(column, downwards) {
  const body = document.querySelector("#table tbody");
  const order = (a, b) => {
    const [one, other] = [keys.get(a)[column], keys.get(b)[column]];
    if (one === null || other === null) return (one === null) - (other === null);
    return (typeof one === "string" ? one.localeCompare(other) : one - other) * (downwards ? -1 : 1);
  };
  rows.sort(order);
  body.append(...rows);
}
document.querySelectorAll("#table th").forEach((head, column, heads) => {
  const button = made("button", { type: "button" }, head.textContent);
  head.replaceChildren(button);
  button.addEventListener("click", () => {
    const downwards = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", downwards ? "descending" : "ascending");
    sorted(column, downwards);
  });
});

/* ---- filters and layers ---- */

const form = document.querySelector(".filters");
function filter() {
  const systems = new Set([...form.querySelectorAll("[name=system]:checked")].map((box) => box.value));
  const end = (kind, axis) => Number(form.querySelector(`[data-${kind}=${axis}]`).value);
  const within = (value, axis) => end("from", axis) <= value && value <= end("to", axis);
  const chosen = new Set(rows.filter((row) => { const [system, size, cost] = keys.get(row); return systems.has(system) && within(size, "size") && within(cost, "cost"); }).map((row) => row.id));
  for (const row of rows) row.hidden = !chosen.has(row.id);
  for (const figure of document.querySelectorAll("figure[data-system]")) figure.hidden = !systems.has(figure.dataset.system);
  for (const link of document.querySelectorAll(".map a")) link.classList.toggle("off", !chosen.has(link.getAttribute("href").slice(1)));
  form.querySelector("output").textContent = chosen.size === rows.length ? `${rows.length} cells` : `${chosen.size} of ${rows.length} cells`;
}
form.hidden = false;
form.addEventListener("change", filter);
form.addEventListener("reset", () => setTimeout(filter));
form.addEventListener("submit", (event) => event.preventDefault());
filter();

const layers = document.querySelector(".layers");
function layer() {
  const name = layers.querySelector(":checked").value;
  for (const part of document.querySelectorAll(".layer")) part.hidden = part.dataset.layer !== name;
}
layers.hidden = false;
layers.addEventListener("change", layer);
document.querySelectorAll(".layer h3").forEach((head) => head.classList.add("said"));
layer();
show(wanted());
