// Text that is pasted, its labels and their probabilities, transitions and features.
import { h, number, percent, replace, styles } from "../dom.js";
import { badge, bar, button, choice, field, latest, PALETTE, panel, remembered, settled, useStyle, weightBar } from "./shared/controls.js";
import { heat } from "./shared/heat.js";
import { codeFold, drawing } from "./shared/take.js";

// A label that is less likely is drawn as unsure.
const UNSURE = 0.7, MOST_COLUMNS = 80;

// B-PER and I-PER are of one colour; O has none.
const kind = (label) => (/^[BIESLU][-_]/.test(label) ? label.slice(2) : label);
const outside = (label) => label === "O" || label === "_";

function colours(labels) {
  const kinds = [...new Set(labels.map(kind))].filter((label) => !outside(label));
  return (label, alpha) => {
    const at = kinds.indexOf(kind(label));
    return at < 0 ? "transparent" : `rgb(${PALETTE[at % PALETTE.length].join(" ")} / ${alpha})`;
  };
}

export async function mount(root, context) {
  await useStyle();
  await styles("pages/tagger.css");
  const about = await context.call("about");
  const paint = colours(about.labels);
  let found = null, chosen = [0, 0], left = false;

  const labelsAt = h("div", {}), tokenAt = h("div", {}), bestAt = h("div", {}), heatAt = h("div", {}), featuresAt = h("div", {});
  const said = h("div", { class: "said", role: "status", "aria-live": "polite" });
  const form = choice("Read as", about.forms.map(({ name, text }) => [name, text]), about.forms[0].name, () => ask());
  form.hidden = about.forms.length < 2;
  const text = remembered("tagger-text", h("textarea", { rows: 7, spellcheck: "false", name: "text", placeholder: example() }));
  const count = h("input", { type: "number", min: 1, max: 20, value: 3 });

  function example() {
    const first = about.forms[0].name;
    if (first === "columns") return `${about.columns.join(" ")} of a token on each line`;
    return about.forms[0].text;
  }

  const asked = () => ({ text: text.value, form: form.input.value, n_best: Math.max(1, Math.min(20, Number(count.value) || 1)) });
  const code = codeFold(context, () => context.call("code", asked()));
  const ask = latest(async () => {
    if (!text.value.trim()) { found = null; show(); return; }
    try {
      const answer = await context.call("tag", asked());
      if (left) return;
      found = answer;
      context.calm();
      if (!found.sentences[chosen[0]]?.tokens[chosen[1]]) chosen = [0, 0];
      show();
      code.refresh();
    } catch (error) { if (!left) context.tell(error.message, "error"); }
  });
  const soon = settled(ask, 350);
  text.addEventListener("input", soon);
  text.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask(); });
  count.addEventListener("change", () => ask());

  function choose(s, t, focus) {
    chosen = [s, t];
    show();
    if (focus) labelsAt.querySelector('.token[aria-pressed="true"]')?.focus();
  }

  function step(event, s, t) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const tokens = found.sentences[s].tokens.length;
    if (t + by >= 0 && t + by < tokens) choose(s, t + by, true);
    else if (found.sentences[s + by]) choose(s + by, by > 0 ? 0 : found.sentences[s + by].tokens.length - 1, true);
  }

  function show() {
    root.dataset.answers = Number(root.dataset.answers ?? 0) + 1;
    if (!found) {
      replace(labelsAt, h("p", {}, "Paste a text: its labels follow as it is written."));
      for (const place of [tokenAt, bestAt, heatAt, said]) replace(place);
      return;
    }
    const [s, t] = chosen, sentence = found.sentences[s], token = sentence.tokens[t];
    replace(labelsAt, found.sentences.map((one, i) => h("div", { class: "sentence", role: "group", "aria-label": `Sentence ${i + 1}` }, one.tokens.map((x, j) =>
      h("button", { type: "button", class: `token ${x.probability < UNSURE ? "unsure" : ""}`, "aria-pressed": i === s && j === t,
        "aria-label": `${x.word}: ${x.label}, ${percent(x.probability)}`, title: `${x.label} ${percent(x.probability)}`,
        tabindex: i === s && j === t ? 0 : -1, "data-label": x.label,
        style: { backgroundColor: paint(x.label, 0.28), borderColor: outside(x.label) ? "" : paint(x.label, 0.9) },
        onclick: () => choose(i, j, true), onkeydown: (event) => step(event, i, j) }, x.word, h("small", {}, x.label))))),
    legend());
    replace(said, badge(sentence.guarantee), `sentence ${s + 1} of ${found.sentences.length}`,
      sentence.log_partition === null ? null : h("span", {}, `log Z ${number(sentence.log_partition, 6)}`),
      h("span", {}, `best labelling ${percent(sentence.n_best[0]?.probability)}`));
    const reasons = token.reasons.slice(0, 12), most = Math.max(1e-12, ...reasons.map(([, w]) => Math.abs(w)));
    replace(tokenAt, h("h3", {}, `${token.word}: ${token.label}`),
      h("div", { id: "marginals" }, token.labels.map(([label, share]) => bar(label, share))),
      reasons.length ? [h("h3", {}, `What speaks for ${token.label}`), reasons.map(([name, weight]) => weightBar(name, weight, most))]
        : h("p", {}, "No attribute of this token has a weight for its label."));
    const best = sentence.n_best[0]?.labels ?? [];
    replace(bestAt, h("ol", { class: "ranked" }, sentence.n_best.map((one, k) => h("li", {}, `${k + 1}. ${percent(one.probability)} `,
      one.labels.map((label, j) => [k && label !== best[j] ? h("mark", {}, label) : label, " "])))));
    const labels = [...new Set(sentence.tokens.flatMap((x) => x.labels.filter(([, p]) => p > 1e-4).map(([label]) => label)))];
    labels.sort((a, b) => found.labels.indexOf(a) - found.labels.indexOf(b));
    const columns = sentence.tokens.slice(0, MOST_COLUMNS);
    replace(heatAt, drawing(context, "marginals", heat("Probability of each label at each token", { rows: labels, columns: columns.map((x) => x.word),
      values: labels.map((label) => columns.map((x) => x.labels.find(([one]) => one === label)?.[1] ?? 0)) })),
    sentence.tokens.length > MOST_COLUMNS ? h("p", {}, `The first ${MOST_COLUMNS} tokens.`) : null);
  }

  const legend = () => h("div", { class: "legend" }, [...new Set(found.sentences.flatMap((one) => one.tokens.map((x) => kind(x.label))))]
    .filter((label) => !outside(label)).slice(0, 24).map((label) => h("span", {}, h("i", { style: { backgroundColor: paint(label, 0.6) } }), label)),
  h("span", {}, `dashed: less than ${percent(UNSURE)}`));

  const named = Object.keys(about.features);
  const features = choice("Label", named.map((name) => [name, name]), named[0], showFeatures);
  function showFeatures(label) {
    const listed = about.features[label] ?? [];
    const most = Math.max(1e-12, ...listed.map(([, w]) => Math.abs(w)));
    replace(featuresAt, listed.length ? listed.map(([name, weight]) => weightBar(name, weight, most)) : h("p", {}, "This label has no features."));
  }
  if (named.length) showFeatures(named[0]);

  replace(root, h("div", { class: "work" },
    h("div", { class: "side" }, panel("Text", form, field("Text", text), field("n best", count),
      h("div", { class: "buttons" }, button("Tag", () => ask(), { class: "primary", id: "tag" }),
        button("Clear", () => { text.value = ""; text.dispatchEvent(new Event("input")); text.focus(); })),
      h("p", {}, `${about.kind}, ${about.labels.length} labels.`), code)),
    h("div", { class: "wide" },
      h("div", { class: "span" }, panel("Labels", said, labelsAt)),
      panel("Token", tokenAt), panel("Best labellings", bestAt),
      h("div", { class: "span" }, panel("Probabilities of labels", heatAt)),
      about.transitions === null ? null : panel("Transitions", drawing(context, "transitions", heat("Weights of transitions between labels", {
        rows: about.transition_labels, columns: about.transition_labels, values: about.transitions, signed: true, rowTitle: "from", columnTitle: "to" }))),
      named.length ? panel("Features", features, featuresAt) : null)));
  show();
  if (text.value.trim()) ask();
  return () => { left = true; soon.cancel(); };
}
