// Curves of a fit while it runs: the server tells of every step, the button asks the fit to stop.
import { h, number, replace } from "../dom.js";
import { button, choice, facts, panel, seconds, useStyle } from "./shared/controls.js";
import { chart } from "./shared/chart.js";
import { drawing } from "./shared/take.js";

// A run that has said nothing for so long may be at its end.
const QUIET = 3000;

export async function mount(root, context) {
  await useStyle();
  const runs = new Map();
  let order = [], chosen = "last", stopping = false, heard = 0, frame = 0;
  const view = { x: "step", scale: "linear", from: "all" };
  const place = h("div", {}), told = h("div", { "aria-live": "polite" }), table = h("div", { class: "scroll" });

  const stream = context.stream("curves", (message) => {
    if (message.error) { context.tell(message.error, "error"); return; }
    for (const run of message.runs) runs.set(run.number, run);
    order = message.order;
    for (const known of [...runs.keys()]) if (!order.includes(known)) runs.delete(known);
    stopping = message.stopping;
    heard = performance.now() - 1000 * message.quiet;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(draw);
  }, (closed) => { if (!closed) context.tell("The explorer was stopped.", "error"); });

  const stop = button("Stop the fit", async () => {
    try {
      await context.call("stop");
      context.tell("Asked to stop: the fit ends at its next step and keeps what it has.");
    } catch (error) { context.tell(error.message, "error"); }
  }, { class: "primary", id: "stop" });
  const current = () => runs.get(chosen === "last" ? order.at(-1) : chosen);
  const state = (run) => (run.stopped ? "stopped" : run.number !== order.at(-1) || performance.now() - heard > QUIET
    ? "quiet: ended, or a long step" : stopping ? "stopping" : "running");

  function draw() {
    const run = current();
    stop.disabled = !run || stopping;
    root.dataset.steps = run?.steps ?? 0;
    if (!run) {
      replace(place, h("p", { id: "waiting" }, "Waiting for a fit: pass the log as its callback."),
        h("pre", { class: "code", tabindex: "0" }, "log = mf.explorer.TrainingLog()\nwith mf.explore(log):\n    model.fit(X, y, callback=log)"));
      replace(told);
      replace(table);
      return;
    }
    const at = view.x === "step" ? 0 : 1;
    const skip = view.from === "tail" ? Math.floor(run.points.length / 2) : 0;
    const points = run.points.slice(skip);
    const low = Math.min(...run.points.flatMap((p) => [p[2], p[3]]).filter((v) => v !== null));
    const up = (v) => (v === null ? NaN : view.scale === "log" ? Math.log10(Math.max(v - low, 1e-16)) : v);
    const line = (which, kind) => ({ kind, points: points.filter((p) => p[which] !== null && (view.scale !== "log" || p[which] > low))
      .map((p) => [p[at], up(p[which])]) });
    const bounded = points.some((p) => p[3] !== null);
    const others = order.filter((n) => n !== run.number).slice(-4).map((n) => ({ kind: "other",
      points: view.scale === "log" ? [] : runs.get(n).points.filter((p) => p[2] !== null).map((p) => [p[at], p[2]]) }));
    const shown = [line(2, "now"), ...(bounded ? [line(3, "bound")] : [])];
    const made = chart(`Objective of ${run.name}`, { lines: [...(view.from === "all" ? others : []), ...shown],
      dots: shown[0].points.length ? [{ x: shown[0].points.at(-1)[0], y: shown[0].points.at(-1)[1], kind: "now" }] : [],
      x: { label: view.x === "step" ? "iterations" : "seconds" },
      y: { label: view.scale === "log" ? "log10 (objective - least)" : "objective" } });
    replace(place, drawing(context, "objective", made),
      h("p", {}, bounded ? "The solid line is the objective, the dashed one its bound." : "The solid line is the objective.",
        view.from === "all" && others.length ? " Pale lines are earlier runs." : ""));
    const last = run.points.at(-1) ?? [null, null, null, null];
    const first = run.points.find((p) => p[2] !== null);
    replace(told, facts([
      ["Run", run.name], ["State", h("span", { id: "state" }, state(run))], ["Steps", run.steps],
      ["Seconds", last[1] === null ? "?" : seconds(last[1])], ["Objective", number(last[2], 8)],
      first && last[2] !== null && run.points.length > 1 ? ["Changed by", number(last[2] - first[2], 5)] : null,
      last[3] === null ? null : ["Bound", number(last[3], 8)],
      last[3] === null || last[2] === null ? null : ["Gap", number(Math.abs(last[2] - last[3]), 4)],
    ]));
    replace(table, h("table", { class: "table" }, h("thead", {}, h("tr", {}, ["Run", "Steps", "Objective"].map((t) => h("th", {}, t)))),
      h("tbody", {}, [...order].reverse().map((n) => {
        const one = runs.get(n);
        const name = h("button", { type: "button", "aria-pressed": one === run, onclick: () => { chosen = n === order.at(-1) ? "last" : n; draw(); } }, one.name);
        return h("tr", {}, h("td", {}, name), h("td", {}, one.steps), h("td", {}, one.points.length ? number(one.points.at(-1)[2], 6) : ""));
      }))));
  }

  const set = (name) => (value) => { view[name] = value; draw(); };
  replace(root, h("div", { class: "work" },
    h("div", { class: "side" },
      panel("Fit", h("div", { class: "buttons" }, stop), told),
      panel("Drawing", choice("Along", [["step", "iterations"], ["seconds", "seconds"]], view.x, set("x")),
        choice("Scale", [["linear", "objective"], ["log", "logarithm of what is left"]], view.scale, set("scale")),
        choice("Part", [["all", "whole run"], ["tail", "later half"]], view.from, set("from")))),
    h("div", { class: "wide" }, panel("Objective", place), panel("Runs", table))));
  draw();
  const watching = setInterval(() => {
    const run = current();
    const line = root.querySelector("#state");
    if (run && line) line.textContent = state(run);
  }, 1000);
  return () => { clearInterval(watching); cancelAnimationFrame(frame); stream.close(); };
}
