// A lattice that moves on while its tab is looked at: every frame is asked for, so nothing runs when nobody asks.
import { h, number, percent, replace } from "../dom.js";
import { button, choice, more, paintBytes, PALETTE, panel, slider, useStyle } from "./shared/controls.js";
import { chart } from "./shared/chart.js";
import { takeCanvas } from "./shared/take.js";

const KEPT = 400;
const SIZES = [32, 64, 128, 256, 512];
const METHODS = [["gibbs", "Gibbs (heat bath)"], ["metropolis", "Metropolis"], ["swendsen_wang", "Swendsen-Wang"], ["wolff", "Wolff"]];
const SHADES = (byte) => [24 + 0.75 * byte, 60 + 0.7 * byte, 110 + 0.5 * byte];
const colour = (name, ink) => (ink ? PALETTE[name % PALETTE.length] : SHADES(name));
const ISING = [[29, 53, 87], [241, 236, 222]];

export async function mount(root, context) {
  await useStyle();
  const { settings, curves, limits } = await context.call("start");
  let running = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  let restarts = 0, sweeps = 1, outstanding = false, left = false, frame = null;
  let series = { sweep: [], energy: [], magnetisation: [] };
  let visited = [];

  const canvas = h("canvas", { class: "picture square", role: "img", "aria-label": "The states of the lattice" });
  const facts = h("dl", { class: "facts", id: "facts" });
  const charts = ["byTemperature", "ofMagnetisation", "energyTime", "magnetisationTime"].map(() => h("div", {}));

  const stream = context.stream("frames", (message) => {
    if (message instanceof ArrayBuffer) show(message);
    else context.tell(message.error, "error");
    outstanding = false;
    // A hidden tab asks for nothing.
    if (running && !left) requestAnimationFrame(() => ask());
  }, (closed) => { if (!closed) context.tell("The explorer was stopped.", "error"); });

  function ask(moved = sweeps) {
    if (outstanding || left) return;
    outstanding = true;
    stream.say({ settings, sweeps: running ? moved : 0, restarts });
  }

  function change(name, value, fresh = false) {
    settings[name] = value;
    context.tell("");
    if (fresh) { series = { sweep: [], energy: [], magnetisation: [] }; visited = []; }
    ask(0);
  }

  const critical = () => (frame ? frame.critical_temperature : limits.critical_temperature);
  const temperature = slider("Temperature", { min: limits.coldest, max: limits.hottest, step: 0.001,
    value: settings.temperature, name: "temperature", digits: 3 }, (x) => change("temperature", x));
  const states = choice("States", [2, 3, 4, 5, 6, 7, 8].map((k) => [k, k]), settings.states,
    (k) => change("states", Number(k), true));
  states.hidden = settings.kind === "ising";
  const play = button("", () => { running = !running; label(); ask(); }, { class: "primary", id: "play" });
  const label = () => { play.textContent = running ? "Pause" : "Run"; play.setAttribute("aria-pressed", running); };
  label();

  const controls = panel("Lattice",
    h("div", { class: "buttons" }, play,
      button("One sweep", () => { if (!outstanding) { running = true; ask(1); running = false; label(); } }),
      button("Start anew", () => { restarts += 1; series = { sweep: [], energy: [], magnetisation: [] }; ask(0); })),
    temperature,
    button("To the critical temperature", () => {
      const t = Math.round(1000 * critical()) / 1000;
      temperature.set(t);
      change("temperature", t);
    }),
    more("Model and moves", choice("Model", [["ising", "Ising"], ["potts", "Potts"]], settings.kind, (kind) => {
      states.hidden = kind === "ising";
      change("kind", kind, true);
    }),
    states,
    choice("Moves", METHODS, settings.method, (x) => change("method", x)),
    choice("Side", [...new Set([...SIZES, settings.size])].sort((a, b) => a - b).map((n) => [n, `${n} x ${n}`]),
      settings.size, (n) => change("size", Number(n), true)),
    choice("Start", [["random", "random states"], ["cold", "all alike"]], settings.start, (x) => change("start", x, true)),
    choice("Colours", [["states", "by state"], ["regions", "by size of region"]], settings.view, (x) => change("view", x)),
    slider("Sweeps for each frame", { min: 1, max: 100, step: 1, value: sweeps, name: "sweeps", digits: 0 },
      (n) => { sweeps = n; })));

  function show(buffer) {
    const length = new DataView(buffer).getUint32(0, true);
    frame = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    const bytes = new Uint8Array(buffer, 4 + length);
    const side = frame.settings.size;
    const ising = frame.settings.kind === "ising";
    paintBytes(canvas, bytes, side, side, frame.settings.view === "regions" ? SHADES
      : ising ? (b) => ISING[b] : (b) => colour(b, true));
    canvas.dataset.sweeps = frame.sweeps;
    canvas.dataset.temperature = frame.settings.temperature;
    const count = frame.energy.length;
    frame.energy.forEach((e, k) => {
      series.sweep.push(frame.sweeps - count + k + 1);
      series.energy.push(e);
      series.magnetisation.push(frame.magnetisation[k]);
    });
    for (const name of Object.keys(series)) series[name].splice(0, Math.max(0, series[name].length - KEPT));
    const now = frame.averages;
    if (now) {
      visited = visited.filter((one) => one.temperature !== frame.settings.temperature);
      visited.push({ temperature: frame.settings.temperature, ...now });
      visited.splice(0, Math.max(0, visited.length - 200));
    }
    tell(now);
    draw();
  }

  function tell(now) {
    const told = (name) => !now ? "not yet" :
      `${number(now[name].mean, 5)}${now[name].error === null ? "" : ` ± ${number(now[name].error, 2)}`}`;
    const rows = [
      ["Sweeps", frame.sweeps],
      ["Energy of a site", told("energy")],
      ["Magnetisation", told("magnetisation")],
      ["Settled", !now ? "not yet" : now.converged ? "yes" : "not yet: the errors count the drift"],
      ["Critical temperature", number(frame.critical_temperature, 6)],
      ["Largest region", percent(frame.largest_region)],
      ["Mean region of a site", `${number(frame.mean_region, 4)} sites`],
      ["Regions", frame.regions],
    ];
    if (frame.exact) {
      rows.splice(2, 0, ["Onsager, exact", number(frame.exact.energy, 6)]);
      rows.splice(4, 0, ["Yang, exact", number(frame.exact.magnetisation, 6)]);
    }
    replace(facts, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  }

  function draw() {
    const ising = frame.settings.kind === "ising";
    const t = frame.settings.temperature;
    const curve = (name) => !ising ? [] : [{ kind: "exact", points: curves.temperature.map((u, k) => [u, curves[name][k]]) }];
    const dots = (name) => visited.map((one) => ({ x: one.temperature, y: one[name].mean, error: one[name].error ?? 0,
      kind: one.temperature === t ? "now" : "past" }));
    const span = [Math.min(0.5, t), Math.max(5, t)];
    const level = (name) => (!frame.exact || !series.sweep.length ? [] : [{ kind: "exact",
      points: [[series.sweep[0], frame.exact[name]], [series.sweep.at(-1), frame.exact[name]]] }]);
    const time = (name) => ({ lines: [...level(name), { kind: "now", points: series.sweep.map((s, k) => [s, series[name][k]]) }],
      x: { label: "sweeps" } });
    replace(charts[0], chart("Energy by temperature", { lines: curve("energy"), dots: dots("energy"), marks: [frame.critical_temperature],
      x: { label: "temperature", range: span }, y: { label: "energy of a site" } }));
    replace(charts[1], chart("Magnetisation by temperature", { lines: curve("magnetisation"), dots: dots("magnetisation"),
      marks: [frame.critical_temperature], x: { label: "temperature", range: span }, y: { label: "magnetisation", range: [-0.04, 1.04] } }));
    replace(charts[2], chart("Energy by sweep", { ...time("energy"), y: { label: "energy of a site" } }));
    replace(charts[3], chart("Magnetisation by sweep", { ...time("magnetisation"), y: { label: "magnetisation", range: [-0.04, 1.04] } }));
  }

  replace(root, h("div", { class: "work" },
    h("div", {}, controls),
    h("div", { class: "wide roomy" },
      panel("States", canvas, takeCanvas(context, "states", canvas)),
      panel("What is measured", facts, h("p", { class: "note" }, "Averages over the later half of the sweeps since the last change.")),
      panel("Energy beside Onsager's curve", charts[0], charts[2]),
      panel("Magnetisation beside Yang's curve", charts[1], charts[3]))));
  ask(running ? sweeps : 0);
  return () => { left = true; stream.close(); };
}
