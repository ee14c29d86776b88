// The map: buses and branches on a canvas, coloured by risk or by what the open outage does.
const canvas = $("canvas"), eye = { zoom: 1, x: 0, y: 0, mode: "risk", hover: null };
const outagesOf = Array.from({ length: G.labels.length }, () => []);
R.label.forEach((label, i) => label.split(",").forEach((one) => elementNumber.has(one) && outagesOf[elementNumber.get(one)].push(i)));
const branchesOf = Array.from({ length: G.labels.length }, () => []);
ELEMENT.forEach((n, e) => n >= 0 && branchesOf[n].push(e));
// The risk of losing a branch: the worst outage that it belongs to; -1 lost supply, null none.
const riskOf = new Array(E).fill(null), PARTS = [0.001, 0.03, 0.3, 1];
ELEMENT.forEach((n, e) => {
  if (n < 0) return;
  for (const i of outagesOf[n]) {
    if (R.mw[i] !== null) riskOf[e] = -1;
    else if (riskOf[e] !== -1) riskOf[e] = Math.max(riskOf[e] ?? 0, R.severity[i] - D.intactSeverity);
  }
  if (riskOf[e] === null && G.labels[n] in D.splitting) riskOf[e] = -1;
});
const spanX = Math.max(1, ...XY.filter((_, k) => k % 2 === 0)), spanY = Math.max(1, ...XY.filter((_, k) => k % 2));
$("maplead").textContent = G.given ? "Buses lie where the grid's file says." :
  "The grid's file has no positions of buses; they are laid out by how they are joined.";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
function size() {
  const width = canvas.clientWidth, height = canvas.clientHeight, room = 22;
  const scale = Math.min((width - 2 * room) / spanX, (height - 2 * room) / spanY) * eye.zoom;
  return { width, height, scale, left: width / 2 - (spanX / 2 - eye.x) * scale, low: height / 2 + (spanY / 2 - eye.y) * scale };
}
const at = (s, b) => [s.left + XY[2 * b] * s.scale, s.low - XY[2 * b + 1] * s.scale];
const classOf = (value) => PARTS.filter((part) => value >= part).length;
const classOfLoading = (value) => [0.7, 0.9, 1, 1.2].filter((part) => value >= part).length;

function drawMap() {
  const s = size(), ratio = devicePixelRatio || 1, pen = canvas.getContext("2d");
  canvas.width = s.width * ratio;
  canvas.height = s.height * ratio;
  pen.scale(ratio, ratio);
  const ramp = ["--r0", "--r1", "--r2", "--r3", "--r4"].map(colour), faint = colour("--faint");
  const violet = colour("--violet"), ink = colour("--ink"), page = colour("--page");
  const of = eye.mode === "outage" && view.open >= 0 ? detail(view.open) : null, outage = eye.mode === "outage" && view.open >= 0;
  const gone = new Set(outage ? R.label[view.open].split(",").flatMap((label) => branchesOf[elementNumber.get(label)] || []) : []);
  const place = new Map();
  if (of) of.branches.forEach((e, k) => place.set(e, k));
  const thin = B > 600 ? 0.8 : 1.4, strokes = [];
  for (let e = 0; e < E; e++) {
    if (FROM[e] === TO[e]) continue;
    let style = [-1, faint, thin, []];
    if (outage) {
      const k = place.get(e);
      if (gone.has(e)) style = [9, ink, 3, [5, 4]];
      else if (k !== undefined && known(of.branch.p95[k])) {
        const c = classOfLoading(of.branch.p95[k] / 1000);
        style = [c, ramp[c], thin + 0.7 * c, []];
      }
    } else if (riskOf[e] === -1) style = [6, violet, thin + 1.4, []];
    else if (riskOf[e] !== null) { const c = classOf(riskOf[e]); style = [c, ramp[c], thin + 0.7 * c, []]; }
    if (!ON[e]) style = [-2, faint, thin, [2, 3]];
    strokes.push([e, ...style]);
  }
  strokes.sort((a, b) => a[1] - b[1]);
  for (const [e, , paint, wide, dash] of strokes) {
    const [x1, y1] = at(s, FROM[e]), [x2, y2] = at(s, TO[e]);
    pen.setLineDash(dash);
    pen.strokeStyle = paint;
    pen.lineWidth = eye.hover?.branch === e ? wide + 3 : wide;
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
    pen.stroke();
  }
  pen.setLineDash([]);
  const dot = Math.max(1, Math.min(4, (B > 600 ? 1.1 : 2.4) * Math.sqrt(eye.zoom)));
  const share = new Map();
  if (of) of.buses.forEach((b, k) => share.set(b, known(of.bus.mean[k]) ? busShare(of.bus, k) : null));
  const off = new Set(outage ? R.cut[view.open] : []);
  for (let b = 0; b < B; b++) {
    const [x, y] = at(s, b), p = share.get(b);
    pen.fillStyle = off.has(b) ? violet : p > 0 ? ramp[p < 0.05 ? 1 : p < 0.25 ? 2 : p < 0.75 ? 3 : 4] : outage ? ramp[0] : ink;
    const radius = dot + (off.has(b) || p > 0 ? 3 : 0) + (eye.hover?.bus === b ? 2.5 : 0);
    pen.beginPath();
    pen.arc(x, y, radius, 0, 7);
    pen.fill();
    if (radius > 4) { pen.strokeStyle = page; pen.lineWidth = 1; pen.stroke(); }
  }
  const item = (name, text) => `<span><i style="background:var(${name})"></i>${text}</span>`;
  $("legend").innerHTML = outage ?
    (RATED.length ? `<span class="soft">lines, 95 % quantile of the loading:</span>` + ["below 70 %", "to 90 %", "to 100 %", "to 120 %", "above"].map((text, c) => item(`--r${c}`, text)).join("") : "") +
    `<span class="soft">big dots, share of scenarios outside voltage limits:</span>` + ["to 5 %", "to 25 %", "to 75 %", "above"].map((text, c) => item(`--r${c + 1}`, text)).join("") + `<span class="soft">dashed: out</span>` + (off.size ? item("--violet", "cut off") : "") :
    `<span class="soft">severity that the loss adds:</span>` + ["below 0.001", "to 0.03", "to 0.3", "to 1", "above 1"].map((text, c) => item(`--r${c}`, text)).join("") +
    item("--violet", "cuts demand off or has no solution") + item("--faint", "not in this study") + ``;
}
function setMode(mode) {
  eye.mode = mode;
  for (const one of ["risk", "outage"]) $(`mode-${one}`).setAttribute("aria-pressed", String(one === mode));
  drawMap();
}
$("mode-risk").addEventListener("click", () => setMode("risk"));
$("mode-outage").addEventListener("click", () => setMode("outage"));

function nearest(event) {
  const s = size(), box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
  let found = null, best = 9;
  for (let b = 0; b < B; b++) {
    const [x, y] = at(s, b), d = Math.hypot(px - x, py - y);
    if (d < best) { best = d; found = { bus: b }; }
  }
  if (found && best < 6) return found;
  for (let e = 0; e < E; e++) {
    if (FROM[e] === TO[e]) continue;
    const [x1, y1] = at(s, FROM[e]), [x2, y2] = at(s, TO[e]), long = (x2 - x1) ** 2 + (y2 - y1) ** 2 || 1;
    const t = Math.max(0, Math.min(1, ((px - x1) * (x2 - x1) + (py - y1) * (y2 - y1)) / long));
    const d = Math.hypot(px - x1 - t * (x2 - x1), py - y1 - t * (y2 - y1));
    if (d < best - 1) { best = d; found = { branch: e }; }
  }
  return found;
}
// Outages after which a bus or branch is violated most, among those whose numbers are here.
function strained(bus, branch) {
  const found = [];
  for (const key of Object.keys(D.details)) {
    const i = Number(key), of = detail(i);
    const k = bus !== undefined ? (of.whole ? bus : of.buses.indexOf(bus)) : (of.whole ? ratedPlace.get(branch) ?? -1 : of.branches.indexOf(branch));
    if (k < 0) continue;
    const p = bus !== undefined ? busShare(of.bus, k) : branchShare(of.branch, k);
    const far = bus !== undefined ? Math.abs(of.bus.mean[k] - INTACT.bus.mean[bus]) : of.branch.p99[k];
    if (known(bus !== undefined ? of.bus.mean[k] : of.branch.mean[k])) found.push([p, far, i]);
  }
  return found.sort((x, y) => y[0] - x[0] || y[1] - x[1]).slice(0, 6);
}
function tell({ bus, branch }) {
  let text = `<h3>${html(bus !== undefined ? G.buses[bus] : branchText(branch))}</h3>`;
  if (branch !== undefined) {
    const outages = ELEMENT[branch] < 0 ? [] : outagesOf[ELEMENT[branch]], label = branchLabel(branch);
    if (outages.length) text += `<p class="small">Losing it: ${outages.slice(0, 5).map(outageLink).join("<br>")}${outages.length > 5 ? `<br>and ${outages.length - 5} more` : ""}</p>`;
    else if (label in D.splitting) text += `<p class="small">Losing it cuts ${number(D.splitting[label])} MW off; it is not ranked.</p>`;
    else text += `<p class="small">Its loss is not in this study.</p>`;
  }
  const list = bus === undefined && !ratedPlace.has(branch) ? [] : strained(bus, branch);
  if (bus === undefined && !ratedPlace.has(branch)) text += `<p class="small">It has no rating.</p>`;
  if (list.length) text += `<p class="small" style="margin-bottom:0">It suffers most after</p><ul>${list.map(([p, far, i]) =>
    `<li>${outageLink(i)}: ${bus !== undefined ? `outside limits in ${percent(p)}` : `overloaded in ${percent(p)}, 99 % at ${(far / 10).toFixed(0)} %`}</li>`).join("")}</ul>`;
  $("about").innerHTML = text;
  const first = branch !== undefined && ELEMENT[branch] >= 0 ? outagesOf[ELEMENT[branch]][0] : undefined;
  if (first !== undefined) open(first, false);
}
function zoom(factor) {
  if (!factor) Object.assign(eye, { zoom: 1, x: 0, y: 0 });
  else eye.zoom = Math.max(0.5, Math.min(60, eye.zoom * factor));
  drawMap();
}
document.querySelectorAll("[data-zoom]").forEach((button) => button.addEventListener("click", () => zoom(Number(button.dataset.zoom))));
let grip = null;
canvas.addEventListener("pointerdown", (event) => { grip = { x: event.clientX, y: event.clientY, moved: false }; });
canvas.addEventListener("pointermove", (event) => {
  if (grip && event.buttons) {
    const s = size(), dx = event.clientX - grip.x, dy = event.clientY - grip.y;
    if (grip.moved || Math.hypot(dx, dy) > 4) {
      eye.x += dx / s.scale;
      eye.y -= dy / s.scale;
      Object.assign(grip, { x: event.clientX, y: event.clientY, moved: true });
      drawMap();
    }
    return;
  }
  const found = nearest(event), tip = $("tip"), box = canvas.getBoundingClientRect();
  tip.style.visibility = found ? "visible" : "hidden";
  if (found) {
    tip.textContent = found.bus !== undefined ? G.buses[found.bus] : branchText(found.branch);
    tip.style.left = `${Math.min(event.clientX - box.left + 12, box.width - 180)}px`;
    tip.style.top = `${event.clientY - box.top + 14}px`;
  }
  if (found?.bus !== eye.hover?.bus || found?.branch !== eye.hover?.branch) { eye.hover = found; drawMap(); }
});
canvas.addEventListener("pointerleave", () => { $("tip").style.visibility = "hidden"; eye.hover = null; drawMap(); });
canvas.addEventListener("pointerup", (event) => {
  const moved = grip?.moved;
  grip = null;
  const found = !moved && nearest(event);
  if (found) tell(found);
});
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 200));
}, { passive: false });
canvas.addEventListener("keydown", (event) => {
  const move = 6000 / eye.zoom, moves = { ArrowLeft: [move, 0], ArrowRight: [-move, 0], ArrowUp: [0, -move], ArrowDown: [0, move] };
  if (event.key === "+") zoom(1.5);
  else if (event.key === "-") zoom(1 / 1.5);
  else if (event.key === "0") zoom(0);
  else if (moves[event.key]) { eye.x += moves[event.key][0]; eye.y += moves[event.key][1]; drawMap(); }
  else return;
  event.preventDefault();
});

// Begin -----------------------------------------------------------------------------------------
drawTable();
const first = R.label.findIndex((_, i) => detail(i));
if (!openHash(false)) NUM ? open(Math.max(0, first), false) : drawOutage();
drawMap();
drawHeat("voltage");
drawHeat("overload");
drawBeside();
drawHoldout();
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; drawCharts(); drawBeside(); drawHoldout(); } drawMap(); });
addEventListener("beforeprint", () => { drawMap(); drawCharts(); });
addEventListener("afterprint", drawMap);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawMap);
matchMedia("print").addEventListener("change", drawMap);
