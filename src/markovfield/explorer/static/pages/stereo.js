// Depth from two views: the disparity of each pixel, with and without the prior.
import { h, number, percent, replace, styles } from "../dom.js";
import { button, choice, decodingBadge, facts, fromBase64, latest, paintBytes, panel, seconds, settled, slider, toBase64, useStyle } from "./shared/controls.js";
import { filePicker, pixelsOf, withChannels } from "./shared/pixels.js";
import { codeFold, takeCanvas } from "./shared/take.js";

// From far (dark) to near (bright), told apart in grey as well.
const STOPS = [[40, 32, 90], [45, 95, 145], [50, 150, 135], [140, 200, 85], [250, 230, 80]];
function shade(x) {
  const at = Math.max(0, Math.min(0.9999, x)) * (STOPS.length - 1), k = Math.floor(at), t = at - k;
  return STOPS[k].map((c, i) => c + (STOPS[k + 1][i] - c) * t);
}

export async function mount(root, context) {
  await useStyle();
  await styles("pages/picture.css");
  const start = await context.call("start");
  const settings = { ...start.settings, noise: 0.02 };
  const own = { left: null, right: null };
  let left = false;
  const canvases = Object.fromEntries(["left", "right", "disparity", "alone", "truth"].map((name) => [name, h("canvas", { class: "picture", role: "img", "aria-label": name })]));
  const told = h("div", {}), said = h("div", { class: "said", role: "status", "aria-live": "polite" });
  const scale = h("canvas", {}), most = h("span", {});
  const views = () => (own.left && own.right ? { rows: own.left.rows, columns: own.left.columns, channels: own.left.channels,
    left: toBase64(own.left.bytes), right: toBase64(own.right.bytes) } : {});
  const asked = () => ({ ...settings, ...views() });
  const code = codeFold(context, () => context.call("code", { ...settings, right: own.left && own.right ? true : undefined }));

  const ask = latest(async () => {
    try {
      const found = await context.call("match", asked());
      if (left) return;
      context.calm();
      show(found);
      code.refresh();
    } catch (error) { if (!left) context.tell(error.message, "error"); }
  });
  const soon = settled(() => ask(), 150);

  function show(found) {
    const [rows, columns] = found.shape;
    const grey = (b) => [b, b, b], depth = (b) => (b === 255 ? [128, 128, 128] : shade(b / found.most));
    for (const name of ["left", "right"]) paintBytes(canvases[name], fromBase64(found[name]), rows, columns, grey);
    for (const name of ["disparity", "alone", "truth"]) {
      truth.hidden = !found.truth;
      if (found[name]) paintBytes(canvases[name], fromBase64(found[name]), rows, columns, depth);
    }
    paintBytes(scale, new Uint8Array(64), 1, 64, (_, k) => shade(k / 64));
    most.textContent = found.most;
    root.dataset.answers = Number(root.dataset.answers ?? 0) + 1;
    root.dataset.changed = found.changed;
    replace(said, decodingBadge(found.decoding));
    replace(told, facts([
      ["Decoded by", `${found.decoding.method.replaceAll("_", " ")} in ${seconds(found.decoding.seconds)}`],
      ["Score", number(found.decoding.score, 7)],
      ["Gap to the bound", found.decoding.gap === null ? "no bound" : number(found.decoding.gap, 3)],
      ["Changed by the prior", `${found.changed} of ${rows * columns} pixels`],
      found.error === undefined ? null : ["Wrong pixels", h("span", { id: "error" }, percent(found.error))],
      found.error === undefined ? null : ["Wrong without prior", percent(found.error_alone)],
      found.nearest > found.most ? ["Out of reach", `the truth goes to ${found.nearest}, the model's max_disparity is ${found.most}`] : null,
    ]));
  }

  const set = (name) => (value) => { settings[name] = value; soon(); };
  const pick = (name) => (blob) => pixelsOf(blob, start.limits).then((picture) => {
    own[name] = withChannels(picture, 1);
    if (own.left && own.right) ask();
    else context.tell(`Now the ${name === "left" ? "right" : "left"} view.`);
  }, (error) => context.tell(error.message, "error"));
  const truth = panel("Truth (grey: hidden)", canvases.truth);
  replace(root, h("div", { class: "work turned" },
    h("div", { class: "side" },
      panel("Prior", choice("Smoothness", start.smoothness.map((name) => [name, name.replaceAll("_", " ")]), settings.smoothness, set("smoothness")),
        slider("Weight", { min: 0, max: 4, step: 0.05, value: settings.weight, name: "weight" }, set("weight")),
        slider("Truncation", { min: 0.5, max: 10, step: 0.5, value: settings.truncation, name: "truncation", digits: 1 }, set("truncation"))),
      panel("Views", slider("Noise of the random dots", { min: 0, max: 0.3, step: 0.01, value: settings.noise, name: "noise" }, set("noise")),
        filePicker("Another left view", pick("left")), filePicker("Another right view", pick("right")),
        h("div", { class: "buttons" }, button("Random dots again", () => { own.left = own.right = null; ask(); })), code)),
    h("div", { class: "wide" },
      panel("Disparities", canvases.disparity, h("div", { class: "scale" }, "far 0", scale, most, " near"), takeCanvas(context, "disparities", canvases.disparity)),
      panel("The answer", said, told), panel("Each pixel by itself", canvases.alone), truth,
      panel("Left view", canvases.left), panel("Right view", canvases.right))));
  ask();
  return () => { left = true; soon.cancel(); };
}
