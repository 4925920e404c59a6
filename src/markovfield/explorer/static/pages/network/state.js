// Evidence in the address, so that back, forward and reload find it: s=3.1,5.0 observed, d=2.1 set, l=4:0.2:0.8 likelihoods.
// w is the method, where one was chosen. m names the variables all of it is about: after the model's file has changed into
// another one, numbers would mean others.

export function signature(model) {
  let hash = 2166136261;
  for (const { name, states } of model.variables) {
    for (const text of [name, ...states]) {
      for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
      hash = Math.imul(hash ^ 31, 16777619);
    }
  }
  return (hash >>> 0).toString(36);
}

export function writeEvidence(evidence) {
  const pairs = (those) => Object.entries(those).map(([v, k]) => `${v}.${k}`).join(",");
  const parts = [["s", pairs(evidence.states)], ["d", pairs(evidence.do)],
    ["l", Object.entries(evidence.likelihoods).map(([v, x]) => [v, ...x].join(":")).join(",")]];
  return parts.filter(([, text]) => text).map(([key, text]) => `${key}=${text}`).join("&");
}

export function writeState(store) {
  const text = writeEvidence(store.evidence);
  const method = store.method === "auto" ? "" : `w=${store.method}`;
  return text || method ? [text, method, `m=${store.signature}`].filter(Boolean).join("&") : "";
}

const partsOf = (text) => Object.fromEntries(text.split("&").map((part) => part.split("=", 2)));

// The method, or the usual one.
export function readMethod(text, store) {
  const { w } = partsOf(text);
  return store.model.methods.includes(w) ? w : "auto";
}

// Evidence, or null for what says nothing about this model.
export function readState(text, store) {
  const parts = partsOf(text);
  if (parts.m !== store.signature) return null;
  const found = { states: {}, likelihoods: {}, do: {} };
  const card = (v) => store.model.variables[v]?.states.length ?? 0;
  const items = (key) => (parts[key] ?? "").split(",").filter(Boolean);
  for (const [key, kind] of [["s", "states"], ["d", "do"]]) {
    for (const item of items(key)) {
      const [v, k] = item.split(".").map(Number);
      if (Number.isInteger(k) && k >= 0 && k < card(v)) found[kind][v] = k;
    }
  }
  for (const item of items("l")) {
    const [v, ...vector] = item.split(":").map(Number);
    if (vector.length === card(v) && vector.length && vector.every((x) => x >= 0 && x <= 1)) found.likelihoods[v] = vector;
  }
  for (const v of Object.keys(found.do)) { delete found.states[v]; delete found.likelihoods[v]; }
  for (const v of Object.keys(found.states)) delete found.likelihoods[v];
  return found;
}

// Evidence by names, for a model that was read again and is another one now.
export function byName({ model, evidence }) {
  const { variables } = model;
  return {
    states: Object.entries(evidence.states).map(([v, k]) => [variables[v].name, variables[v].states[k]]),
    do: Object.entries(evidence.do).map(([v, k]) => [variables[v].name, variables[v].states[k]]),
    likelihoods: Object.entries(evidence.likelihoods).map(([v, vector]) => [variables[v].name, variables[v].states, vector]),
  };
}

// The same as numbers of a model, and the names of variables whose evidence it has no place for. What is called as another
// variable, or has other states, is left out as well.
export function fromNames(named, { model }) {
  const found = { states: {}, likelihoods: {}, do: {} }, lost = [];
  const only = (those, wanted) => (those.indexOf(wanted) === those.lastIndexOf(wanted) ? those.indexOf(wanted) : -1);
  const names = model.variables.map(({ name }) => name);
  for (const kind of ["states", "do"]) {
    for (const [name, state] of named[kind]) {
      const v = only(names, name), k = v < 0 ? -1 : only(model.variables[v].states, state);
      if (k < 0 || (kind === "do" && !model.causal)) lost.push(name);
      else found[kind][v] = k;
    }
  }
  for (const [name, states, vector] of named.likelihoods) {
    const v = only(names, name);
    if (v < 0 || model.variables[v].states.join("\n") !== states.join("\n")) lost.push(name);
    else found.likelihoods[v] = vector;
  }
  return { found, lost };
}
