// What the page draws from, the table, and which outage is open.
const D = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const G = D.grid, R = D.rows, NONE = 65535, NUM = R.label.length;
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
const u2 = (text) => new Uint16Array(bytes(text)), u4 = (text) => new Uint32Array(bytes(text));
const B = G.buses.length, FROM = u4(G.from), TO = u4(G.to), E = FROM.length, RATED = u4(G.rated);
const XY = u2(G.xy), LOW = u2(G.low), HIGH = u2(G.high), ELEMENT = new Int32Array(bytes(G.element));
const ON = u2(G.on), elementNumber = new Map(G.labels.map((label, i) => [label, i]));
const ratedPlace = new Map([...RATED].map((branch, i) => [branch, i]));
const BUS_QUANTITIES = ["min", "p5", "mean", "p95", "max", "under", "over"];
const BRANCH_QUANTITIES = ["mean", "p95", "p99", "max", "over", ...(G.emergency ? ["emergency"] : [])];

const html = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const branchText = (e) => (ELEMENT[e] >= 0 ? G.elements[ELEMENT[e]] : `branch (${G.buses[FROM[e]]})`);
const branchLabel = (e) => (ELEMENT[e] >= 0 ? G.labels[ELEMENT[e]] : "branch");
const outageText = (i) => R.label[i].split(",").map(
  (label) => (elementNumber.has(label) ? G.elements[elementNumber.get(label)] : label)).join(", ") +
  (R.name[i] ? ` · ${R.name[i]}` : "");
const apart = (text) => {  // label, and what describes it
  const at = text.indexOf(" ");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
};

function number(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e5) return value.toExponential(2).replace("e+", "e");
  const rounded = Number(value.toPrecision(3));
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))));
  return rounded.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
function percent(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value > 0 && value < 0.001) return "< 0.1 %";
  return value === 0 || value === 1 ? `${100 * value} %` : `${(100 * value).toFixed(1)} %`;
}
function wilson(share, rows) {
  const w = 3.8415 / rows, half = Math.sqrt(3.8415) *
    Math.sqrt((share * (1 - share)) / rows + w / (4 * rows)) / (1 + w);
  const centre = (share + w / 2) / (1 + w);
  return [Math.max(0, centre - half), Math.min(1, centre + half)];
}
const sure = (share, rows) => {
  if (!rows) return "";
  const [low, high] = wilson(share, rows);
  return `${percent(low)} to ${percent(high)}`;
};

// The quantities of an outage: buses and rated branches by place in the detail.
const opened = new Map();
function detail(i) {
  if (opened.has(i)) return opened.get(i);
  const packed = i < 0 ? D.intact : D.details[i];
  let found = null;
  if (packed) {
    const buses = packed.bi ? u4(packed.bi) : null, branches = packed.li ? u4(packed.li) : null;
    const split = (text, names, size) => {
      const all = u2(text), of = {};
      names.forEach((name, q) => { of[name] = all.subarray(q * size, (q + 1) * size); });
      return of;
    };
    found = {
      whole: !buses,
      buses: buses || Uint32Array.from({ length: B }, (_, b) => b),
      branches: (branches || Uint32Array.from({ length: RATED.length }, (_, e) => e)).map((e) => RATED[e]),
      bus: split(packed.b, BUS_QUANTITIES, buses ? buses.length : B),
      branch: split(packed.l, BRANCH_QUANTITIES, branches ? branches.length : RATED.length),
    };
  }
  if (opened.size > 200) opened.delete([...opened.keys()].find((key) => key >= 0));
  opened.set(i, found);
  return found;
}
const known = (value) => value !== NONE && value !== undefined;
const busShare = (of, k) => ((known(of.under[k]) ? of.under[k] : 0) + (known(of.over[k]) ? of.over[k] : 0)) / 1e4;
const branchShare = (of, k) => (known(of.over[k]) ? of.over[k] / 1e4 : 0);
const INTACT = detail(-1);
const intactBus = (b) => busShare(INTACT.bus, b);
const intactBranch = (e) => branchShare(INTACT.branch, ratedPlace.get(e));

// Table -----------------------------------------------------------------------------------------
const bar = (share) => (share === null ? "–" :
  `${percent(share)}<span class="bar"><i style="width:${(100 * share).toFixed(1)}%"></i></span>`);
const hasEmergency = R.emergency.some((v) => v !== null);
const hasOverload = R.overload.some((v) => v !== null), hasError = R.error.some((v) => v !== null);
const place = (i) => (R.riseBus[i] >= 0 ? G.buses[R.riseBus[i]] :
  R.riseBranch[i] >= 0 ? branchText(R.riseBranch[i]) : "");
const twoLines = (text) => {
  const [label, more] = apart(text);
  return `${html(label)}${more ? `<small>${html(more)}</small>` : ""}`;
};
const COLUMNS = [
  ["#", (i) => i, (i) => i + 1, ""],
  ["outage", (i) => i, (i) => outageText(i).split("), ").map((text, k, all) =>
    twoLines(k < all.length - 1 ? text + ")" : text)).join("") + (R.status[i] === "solved" ? "" :
    ` <span class="tag" title="${html(R.reason[i])}">${html(R.status[i])}</span>`), "l"],
  ["severity", (i) => -R.severity[i], (i) => (R.mw[i] !== null ? `${number(R.mw[i])} MW` : number(R.severity[i])), "n"],
  ["adds", (i) => -R.rise[i], (i) => (R.n[i] ? percent(R.rise[i]) : "–"), "n"],
  ["at", (i) => place(i), (i) => (place(i) ? twoLines(place(i)) : "–"), "l wide"],
  ["some limit<br>exceeded", (i) => -(R.p[i] ?? -1), (i) => bar(R.p[i]), "n"],
  ...(hasEmergency ? [["emergency", (i) => -(R.emergency[i] ?? -1), (i) => percent(R.emergency[i]), "n wide"]] : []),
  ["voltage", (i) => -(R.voltage[i] ?? -1), (i) => percent(R.voltage[i]), "n wide"],
  ...(hasOverload ? [["overload", (i) => -(R.overload[i] ?? -1), (i) => percent(R.overload[i]), "n wide"]] : []),
  ["without<br>solution", (i) => -(R.unsolved[i] ?? -1), (i) => percent(R.unsolved[i]), "n wide"],
  ["shift,<br>p.u.", (i) => -(R.shift[i] ?? -1), (i) => number(R.shift[i]), "n wide"],
  ...(hasError ? [["error on<br>hold-out", (i) => -(R.error[i] ?? -1), (i) => number(R.error[i]), "n wide"]] : []),
];
const searchable = R.label.map((_, i) =>
  `${outageText(i)} ${place(i)} ${R.status[i]} ${R.cut[i].map((b) => G.buses[b]).join(" ")}`.toLowerCase());
const view = { sort: 0, down: false, shown: 40, open: -1 };

function order() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const kept = R.label.map((_, i) => i).filter((i) => words.every((word) => searchable[i].includes(word)));
  const key = COLUMNS[view.sort][1], sign = view.down ? -1 : 1;
  return kept.sort((a, b) => {
    const x = key(a), y = key(b);
    return sign * (x < y ? -1 : x > y ? 1 : 0) || a - b;
  });
}
function drawTable() {
  const kept = order();
  $("ranking").tHead.innerHTML = "<tr>" + COLUMNS.map(([name, , , kind], c) =>
    `<th class="${kind}"${c === view.sort ? ` aria-sort="${view.down ? "descending" : "ascending"}"` : ""}>` +
    `<button data-column="${c}">${name}</button></th>`).join("") + "</tr>";
  $("ranking").tBodies[0].innerHTML = kept.slice(0, view.shown).map((i) =>
    `<tr tabindex="0" data-outage="${i}"${i === view.open ? ' class="open" aria-current="true"' : ""}>` +
    COLUMNS.map(([, , cell, kind]) => `<td class="${kind}">${cell(i)}</td>`).join("") + "</tr>").join("");
  $("found").textContent = kept.length === NUM ? `${NUM.toLocaleString("en")} outages` :
    `${kept.length.toLocaleString("en")} of ${NUM.toLocaleString("en")} outages`;
  $("more").hidden = kept.length <= view.shown;
}
$("ranking").addEventListener("click", (event) => {
  const head = event.target.closest("button[data-column]"), row = event.target.closest("tr[data-outage]");
  if (head) {
    const column = Number(head.dataset.column);
    view.down = column === view.sort && !view.down;
    view.sort = column;
    drawTable();
    document.querySelector(`button[data-column="${column}"]`).focus();
  } else if (row) open(Number(row.dataset.outage), true);
});
$("ranking").addEventListener("keydown", (event) => {
  const row = event.target.closest("tr[data-outage]");
  if (!row || event.target !== row) return;
  if (event.key === "Enter" || event.key === " ") open(Number(row.dataset.outage), true);
  else if (event.key === "ArrowDown") row.nextElementSibling?.focus();
  else if (event.key === "ArrowUp") (row.previousElementSibling || row).focus();
  else return;
  event.preventDefault();
});
$("search").addEventListener("input", () => { view.shown = 40; drawTable(); });
$("more").addEventListener("click", () => { view.shown += 400; drawTable(); });
document.addEventListener("click", (event) => {
  const link = event.target.closest("button[data-open]");
  if (link) open(Number(link.dataset.open), true);
});
const outageLink = (i) => `<button class="link" data-open="${i}">${html(outageText(i))}</button>`;

function open(i, move) {
  if (i < 0 || i >= NUM) return;
  view.open = i;
  const hash = "#" + encodeURIComponent(R.label[i]);
  if (location.hash !== hash) history.replaceState(null, "", hash);
  document.querySelectorAll("tr.open").forEach((row) => {
    row.classList.remove("open");
    row.removeAttribute("aria-current");
  });
  const row = document.querySelector(`tr[data-outage="${i}"]`);
  row?.classList.add("open");
  row?.setAttribute("aria-current", "true");
  drawOutage();
  if (move) { setMode("outage"); $("outage").scrollIntoView(); $("detail").querySelector("h3")?.focus({ preventScroll: true }); }
  else drawMap();
}
function openHash(move) {
  const label = decodeURIComponent(location.hash.slice(1)), i = R.label.indexOf(label);
  if (i >= 0) open(i, move);
  return i >= 0;
}
addEventListener("hashchange", () => openHash(true));
