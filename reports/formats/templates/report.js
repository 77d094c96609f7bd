"use strict";
const cells = JSON.parse(document.getElementById("data").textContent);
const names = Object.keys(cells);
const dialog = document.getElementById("cell");
const rows = [...document.querySelectorAll("#table tbody tr")];

/* Return an element with attributes and children; strings become text nodes. */
function makeElement(tag, attributes, ...children) {
  const svg = ["svg", "path", "rect", "text", "g", "title"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/* ---- one cell ---- */

function makeTable(headings, lines, label) {
  const cellOf = (value, index) => makeElement("td", index ? { class: "r" } : {}, value);
  return makeElement("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, makeElement("table", { class: "trial-table" },
    makeElement("thead", {}, makeElement("tr", {}, ...headings.map((heading, index) => makeElement("th", index ? { class: "r", scope: "col" } : { scope: "col" }, heading)))),
    makeElement("tbody", {}, ...lines.map((line) => makeElement("tr", {}, ...line.map(cellOf))))));
}

function makeTrialTable(cell) {
  const headings = ["Verdict", "Trial", "Purpose", "Rate", "Sent", "Processed", "Lost / dup. / out of order / corr.", "Late", "Blocked", "Drained", "p50", "p99", "CPU used / requested", "Took"];
  const lines = cell.trials.map((one) => {
    const verdict = makeElement("span", {}, makeElement("b", { class: one.verdict }, one.verdict), one.why ? `: ${one.why}` : "", one.note ? makeElement("small", {}, ` ${one.note}`) : "");
    return [verdict, String(one.number), one.purpose, one.rate, one.sent, one.processed, one.errors, one.late, one.blocked, one.drained, one.p50 || "", one.p99 || "", one.cpu_used || "", one.seconds]
      .map((value) => (value === undefined ? "" : value));
  });
  return makeTable(headings, lines, "Trials");
}

function drawTicks(ticks, width) {
  return ticks.flatMap((tick) => [makeElement("path", { class: "g", d: `M0 ${tick.at}h${width}` }), makeElement("text", { class: "y", x: -6, y: tick.at }, tick.text)]);
}

function drawTimeline(one) {
  const [width, tall, low] = BOX, timeline = one.timeline;
  const shade = (height) => makeElement("rect", { class: "w", x: timeline.window[0], width: timeline.window[1], height });
  const lower = makeElement("g", { transform: `translate(0 ${tall + 32})` }, makeElement("text", { y: -8 }, "backlog (messages)"), shade(low), ...drawTicks(timeline.backlogs, width),
    makeElement("path", { class: "b", d: `${timeline.backlog}V${low}H0z` }),
    ...timeline.times.map((tick, index) => makeElement("text", { class: "x", x: tick.at, y: low + 19 }, tick.text + (index === timeline.times.length - 1 ? " s" : ""))));
  const drawing = makeElement("svg", { viewBox: `-60 -24 684 ${tall + low + 98}`, role: "img", "aria-label": `Timeline of ${one.title}` },
    makeElement("text", { y: -8 }, "messages"), shade(tall), ...drawTicks(timeline.counts, width),
    makeElement("path", { class: "s", d: timeline.sent }), makeElement("path", { class: "o", d: timeline.offered }), makeElement("path", { class: "p", d: timeline.processed }), lower);
  return makeElement("figure", { class: "trial" }, makeElement("figcaption", {}, one.title), drawing, makeElement("p", { class: "cpu" }, one.cores ? `CPU (cores): ${one.cores}` : ""));
}

function drawPosterior(posterior) {
  const high = 110, mark = (x, kind) => makeElement("path", { class: `tick ${kind}`, d: `M${x} ${high + 4}v12` });
  return makeElement("figure", { class: "trial posterior" },
    makeElement("figcaption", {}, "Posterior of the maximum sustainable throughput"),
    makeElement("svg", { viewBox: "-30 -10 664 168", role: "img", "aria-label": "Posterior of the maximum sustainable throughput over messages per second, with the interval of the result" },
      ...(posterior.interval ? [makeElement("rect", { class: "w", x: posterior.interval[0], width: Math.max(1, posterior.interval[1] - posterior.interval[0]), height: high })] : []),
      makeElement("path", { class: "b", d: `${posterior.curve}V${high}H0z` }),
      ...posterior.sustained.map((x) => mark(x, "up")), ...posterior.overloaded.map((x) => mark(x, "down")),
      ...posterior.ticks.map((tick) => makeElement("text", { class: "x", x: tick.at, y: high + 38 }, tick.text))),
    makeElement("p", { class: "cpu" }, "Probability density over messages/s, with a flat prior; shaded: the interval of the result. Ticks: trials that were sustained (green, upper) or overloaded (orange, lower)."));
}

function makeLegend() {
  const item = (kind, text) => [makeElement("span", { class: kind }), text];
  return makeElement("p", { class: "legend" }, ...item("line offered", "offered (due by then)"), ...item("line sent", "sent"), ...item("line processed", "processed"),
    ...item("area backlog", "backlog = offered − processed"), ...item("area window", "measured window"));
}

function makeBody(cell) {
  const parts = [makeElement("p", { class: "summary" }, makeElement("span", { class: `status ${cell.status.replaceAll(" ", "-")}` }, cell.status),
    cell.interval ? ` · interval ${cell.interval}.` : "", ...(cell.sentences || []).map((sentence) => ` ${sentence}`))];
  if (cell.command) {
    const copy = makeElement("button", { type: "button" }, "Copy");
    copy.addEventListener("click", () => { navigator.clipboard?.writeText(cell.command); copy.textContent = "Copied"; });
    parts.push(makeElement("h3", {}, "Repeat this cell"), makeElement("p", { class: "command" }, makeElement("code", {}, cell.command), copy));
  }
  const drawn = (cell.trials || []).filter((one) => one.timeline);
  if (cell.trials) parts.push(makeElement("h3", {}, `${cell.trials.length} trials`), makeTrialTable(cell));
  if (cell.posterior || cell.latency) parts.push(makeElement("div", { class: "pair" }, cell.posterior ? drawPosterior(cell.posterior) : null,
    cell.latency ? makeElement("div", {}, makeElement("h3", {}, "Latency of the sustained trials"), makeTable(["Rate", "Of maximum", "p50", "p90", "p99", "Max"], cell.latency, "Latency")) : null));
  if (cell.resources) parts.push(makeElement("h3", {}, "Resource usage"), makeTable(["Role", "CPU (cores)", "Memory", "Sent", "Received", "Disk read", "Disk written", "GC"], cell.resources, "Resource usage"),
    makeElement("p", { class: "none" }, "In the window of the deciding trial. On one machine, load generator, harness and system share its cores. Sent and received: over TCP, and of hosts of the site through their network cards. Disk: through the page cache; GC: share of the time, in JVMs."));
  if (drawn.length) parts.push(makeElement("h3", {}, "Timelines"), makeLegend(), makeElement("div", { class: "trials" }, ...drawn.map(drawTimeline)));
  else if (cell.trials) parts.push(makeElement("p", { class: "none" }, "This run is too large for the page to include the timelines of its trials, or none was stored; bench report RUN --format png draws them."));
  for (const log of cell.logs || []) parts.push(makeElement("h3", {}, `End of ${log.file} during these trials`), makeElement("pre", { tabindex: "0", role: "region", "aria-label": `End of ${log.file}` }, log.text));
  return parts;
}

function show(name) {
  const cell = cells[name];
  if (!cell) { if (dialog.open) dialog.close(); return; }
  const title = document.getElementById("cell-title");
  title.textContent = `${cell.system}, ${cell.point}: ${cell.claim}`;
  dialog.dataset.name = name;
  dialog.querySelector(".body").replaceChildren(...makeBody(cell));
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
  const button = makeElement("button", { type: "button" }, head.textContent);
  head.replaceChildren(button);
  button.addEventListener("click", () => {
    const downwards = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", downwards ? "descending" : "ascending");
    sorted(column, downwards);
  });
});

/* ---- filters and kinds of maps ---- */

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

const mapKinds = document.querySelector(".map-kinds");
function showMapKind() {
  const name = mapKinds.querySelector(":checked").value;
  for (const group of document.querySelectorAll(".map-group")) group.hidden = group.dataset.kind !== name;
}
mapKinds.hidden = false;
mapKinds.addEventListener("change", showMapKind);
document.querySelectorAll(".map-group h3").forEach((head) => head.classList.add("visually-hidden"));
showMapKind();
show(wanted());
