// Classes of pixels; what the brush paints is evidence, and the answer follows every stroke.
import { h, number, percent, replace, styles } from "../dom.js";
import { badge, button, choice, decodingBadge, facts, fromBase64, latest, paintBytes, PALETTE, panel, seconds, settled, slider, toBase64, useStyle } from "./shared/controls.js";
import { Brush, NONE } from "./picture/brush.js";
import { filePicker, pixelsOf, sent, withChannels } from "./shared/pixels.js";
import { codeFold, takeCanvas } from "./shared/take.js";

const VIEWS = [["labels", "classes"], ["colours", "mean colour of each class"], ["unsure", "how unsure"], ["alone", "each pixel by itself"]];
const COLOURS = { strokes: "learnt from the strokes", model: "those of the model", picture: "found in the whole picture" };

export async function mount(root, context) {
  await useStyle();
  await styles("pages/picture.css");
  const start = await context.call("start");
  const crf = start.kind === "GridCRF";
  const settings = crf ? { strength: 1, scale: "unit" } : { ...start.settings };
  let picture = null, found = null, view = "labels", left = false, noise = 0.4, source = start.file ? "file" : start.samples[0];
  const count = () => (crf ? start.classes.length : settings.n_classes);
  const nameOf = (k) => (crf ? start.classes[k] : count() === 2 ? ["background", "foreground"][k] : `class ${k + 1}`);

  const soon = settled(() => ask(), 60);
  const brush = new Brush(() => soon());
  brush.kind = Math.min(1, count() - 1);
  const result = h("canvas", { class: "picture", role: "img", "aria-label": "The classes of the pixels" });
  const told = h("div", {}), said = h("div", { class: "said", role: "status", "aria-live": "polite" }), classes = h("div", { class: "classes", role: "group", "aria-label": "Brush" });
  const asked = () => ({ ...sent(picture), ...settings, strokes: brush.empty ? undefined : toBase64(brush.strokes) });
  const code = codeFold(context, () => context.call("code", asked()));

  const ask = latest(async () => {
    if (!picture || left) return;
    try {
      const answer = await context.call("paint", asked());
      if (left) return;
      found = answer;
      context.calm();
      show();
      code.refresh();
    } catch (error) { if (!left) context.tell(error.message, "error"); }
  });

  function take(fresh) {
    picture = withChannels(fresh, start.channels);
    found = null;
    brush.show(picture);
    for (const canvas of [brush.canvas, result]) canvas.style.aspectRatio = `${picture.columns} / ${picture.rows}`;
    if (fresh.scaled) context.tell(`The picture has ${fresh.scaled.join(" x ")} pixels; it is shown with ${picture.rows} x ${picture.columns}.`);
    ask();
  }

  const failed = (error) => context.tell(error.message, "error");
  const pick = (blob) => pixelsOf(blob, start.limits).then((fresh) => { source = "own"; sampling(); take(fresh); }, failed);
  async function sample() {
    try {
      const { data, ...size } = await context.call("sample", { name: source, noise });
      if (!left) take({ ...size, bytes: fromBase64(data), scaled: null });
    } catch (error) { failed(error); }
  }

  function show() {
    const bytes = fromBase64(found.labels), alone = fromBase64(found.alone), sure = fromBase64(found.probability);
    const [rows, columns] = found.shape;
    const colours = { labels: (_, k) => PALETTE[bytes[k]], alone: (_, k) => PALETTE[alone[k]], colours: (_, k) => found.colours[bytes[k]],
      unsure: (_, k) => { const x = 255 - sure[k]; return [30 + 0.85 * x, 30 + 0.75 * x, 60 + 0.2 * x]; } }[view];
    paintBytes(result, bytes, rows, columns, colours);
    Object.assign(result.dataset, { painted: found.painted, changed: found.changed, first: bytes[0], ones: bytes.reduce((n, b) => n + (b === 1), 0) });
    root.dataset.answers = Number(root.dataset.answers ?? 0) + 1;
    replace(said, decodingBadge(found.decoding), h("span", {}, "probabilities"), badge(found.marginals.guarantee),
      found.marginals.converged ? null : h("span", { class: "badge bad" }, "not converged"));
    replace(told, facts([
      ["Decoded by", `${found.decoding.method.replaceAll("_", " ")} in ${seconds(found.decoding.seconds)}`],
      ["Score", number(found.decoding.score, 7)],
      ["Gap to the bound", found.decoding.gap === null ? "no bound" : number(found.decoding.gap, 3)],
      ["Probabilities by", `${found.marginals.method.replaceAll("_", " ")} in ${seconds(found.marginals.seconds)}`],
      ["Colours of classes", COLOURS[found.colours_from] + (found.settled ? "" : ", not settled yet")],
      ["Painted pixels", found.painted],
      ["Changed by neighbours", `${found.changed} of ${rows * columns} pixels (${percent(found.changed / (rows * columns))})`],
    ]));
  }

  function choose(kind) {
    if (kind !== NONE && kind >= count()) return;
    brush.kind = kind;
    listClasses();
  }
  brush.onkind = choose;

  function listClasses() {
    const swatch = (k) => h("i", { style: { backgroundColor: `rgb(${PALETTE[k].join(" ")})` } });
    replace(classes, Array.from({ length: count() }, (_, k) => h("button", { type: "button", "aria-pressed": brush.kind === k, "data-class": k,
      onclick: () => choose(k) }, swatch(k), nameOf(k))),
    h("button", { type: "button", "aria-pressed": brush.kind === NONE, onclick: () => choose(NONE) }, "rubber"));
  }

  const set = (name) => (value) => { settings[name] = value; soon(); };
  const noiseSlider = slider("Noise", { min: 0, max: 1.5, step: 0.05, value: noise, name: "noise" }, (x) => { noise = x; resample(); });
  const resample = settled(sample, 200);
  const sources = [...(start.file ? [["file", start.file.name]] : []), ...start.samples.map((name) => [name, `sample: ${name}`]), ["own", "another file"]];
  const picker = filePicker("A picture from this machine", pick);
  const sourceChoice = choice("Picture", sources, source, (name) => { source = name; sampling(); if (name === "file") fromFile(); else if (name !== "own") sample(); });
  const sampling = () => { noiseSlider.hidden = !start.samples.includes(source); picker.hidden = source !== "own"; sourceChoice.input.value = source; };
  const fromFile = () => pixelsOf(new Blob([fromBase64(start.file.data)], { type: start.file.kind }), start.limits).then(take, failed);

  const model = crf
    ? [slider("Strength of edges", { min: 0, max: 3, step: 0.05, value: 1, name: "strength" }, set("strength")),
      choice("Numbers of the picture", [["unit", "from 0 to 1"], ["bytes", "from 0 to 255"]], "unit", set("scale")),
      h("p", {}, "1 is as it was learned; at 0 every pixel stands alone.")]
    : [slider("Coupling", { min: 0, max: 6, step: 0.05, value: settings.coupling, name: "coupling" }, set("coupling")),
      slider("Contrast", { min: 0, max: 6, step: 0.1, value: settings.contrast, name: "contrast", digits: 1 }, set("contrast")),
      choice("Classes", Array.from({ length: start.limits.classes - 1 }, (_, k) => [k + 2, k + 2]), settings.n_classes, (k) => {
        settings.n_classes = Number(k);
        if (brush.strokes.some((x) => x !== NONE && x >= count())) brush.clear();
        if (brush.kind !== NONE) brush.kind = Math.min(brush.kind, count() - 1);
        listClasses();
        soon();
      }),
      choice("Neighbours", [[4, "4"], [8, "8, with the diagonal ones"]], settings.connectivity, (k) => set("connectivity")(Number(k)))];

  replace(root, h("div", { class: "work turned" },
    h("div", { class: "side" },
      panel("Brush", classes, slider("Size", { min: 1, max: 12, step: 1, value: brush.size, name: "size", digits: 0 }, (x) => { brush.size = x; }),
        h("div", { class: "buttons" }, button("Undo", () => { if (brush.undo()) soon(); }), button("Clear", () => { brush.clear(); soon(); }))),
      panel("Model", model),
      panel("Source", sourceChoice, noiseSlider, picker, code)),
    h("div", { class: "wide" },
      panel("Picture", brush.canvas, h("p", {}, "Paint on it: what is painted is known.")),
      panel("Result", choice("Show", VIEWS, view, (name) => { view = name; if (found) show(); }), result, takeCanvas(context, "result", result)),
      h("div", { class: "span" }, panel("The answer", said, told)))));
  listClasses();
  sampling();
  if (start.file) fromFile(); else sample();
  return () => { left = true; soon.cancel(); resample.cancel(); };
}
