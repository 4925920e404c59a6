// What this tab knows: evidence, the selected variable, the answer. The server keeps no evidence: tabs are independent.

export class Store {
  constructor(context, model) {
    this.context = context;
    this.model = model;
    this.offsets = [0];
    for (const { states } of model.variables) this.offsets.push(this.offsets.at(-1) + states.length);
    this.evidence = { states: {}, likelihoods: {}, do: {} };
    this.method = "auto";
    this.selected = null;
    this.answer = null;
    this.prior = null;
    this.priorKey = null;
    this.past = [];
    this.listeners = { answer: new Set(), select: new Set(), evidence: new Set() };
    this.asking = null;
    this.picker = null;
    this.remember = `evidence:${location.pathname}`;
    this.recall();
  }

  on(what, f) {
    this.listeners[what].add(f);
    return () => this.listeners[what].delete(f);
  }

  emit(what, detail) {
    for (const f of this.listeners[what]) f(detail);
  }

  name(v) { return this.model.variables[v].name; }
  states(v) { return this.model.variables[v].states; }
  call(name, asked = {}, signal = undefined) { return this.context.call(name, asked, signal); }
  asked(more = {}) { return { evidence: this.evidence, ...more }; }

  // Probabilities of a variable's states, now and without evidence.
  now(v) { return this.answer?.values.slice(this.offsets[v], this.offsets[v + 1]) ?? null; }
  before(v) { return this.prior?.slice(this.offsets[v], this.offsets[v + 1]) ?? null; }

  // How far the distribution of a variable has moved: total variation.
  moved(v) {
    if (!this.answer || !this.prior) return 0;
    let sum = 0;
    for (let i = this.offsets[v]; i < this.offsets[v + 1]; i++) sum += Math.abs(this.answer.values[i] - this.prior[i]);
    return sum / 2;
  }

  get pieces() {
    const { states, likelihoods } = this.evidence;
    return Object.keys(this.evidence.do).length + Object.keys(states).length + Object.keys(likelihoods).length;
  }

  isSeen(v) { return v in this.evidence.states || v in this.evidence.likelihoods; }

  // ---- changes ------------------------------------------------------------------------------------------------------

  change(edit) {
    const copy = structuredClone(this.evidence);
    edit(copy);
    this.past.push(this.evidence);
    this.evidence = copy;
    return this.refresh(true);
  }

  toggle(v, state) {
    return this.change((e) => {
      const same = e.states[v] === state;
      delete e.likelihoods[v];
      delete e.states[v];
      if (!same) e.states[v] = state;
    });
  }

  likelihood(v, vector) {
    return this.change((e) => {
      delete e.states[v];
      e.likelihoods[v] = vector;
    });
  }

  intervene(v, state) {
    return this.change((e) => {
      const same = e.do[v] === state;
      delete e.do[v];
      delete e.states[v];
      delete e.likelihoods[v];
      if (!same) e.do[v] = state;
    });
  }

  forget(v) {
    return this.change((e) => { for (const part of Object.values(e)) delete part[v]; });
  }

  clear() {
    return this.change((e) => { e.states = {}; e.likelihoods = {}; e.do = {}; });
  }

  undo() {
    if (!this.past.length) return undefined;
    this.evidence = this.past.pop();
    return this.refresh(false);
  }

  select(v) {
    this.selected = v;
    this.emit("select", v);
  }

  // ---- answers ------------------------------------------------------------------------------------------------------

  async refresh(revert = false) {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    this.emit("evidence");
    const start = performance.now();
    try {
      const answer = await this.call("posteriors", this.asked({ method: this.method }), asking.signal);
      if (asking !== this.asking) return;
      await this.freshPrior(asking.signal);
      if (asking !== this.asking) return;
      this.answer = answer;
      this.answer.milliseconds = performance.now() - start;
      this.context.tell("");
      this.keep();
      this.emit("answer");
    } catch (error) {
      if (error.name === "AbortError" || asking !== this.asking) return;
      if (revert && this.past.length) {
        this.evidence = this.past.pop();
        this.emit("evidence");
        this.context.tell(`${error.message}; the last change was taken back.`, "error");
      } else this.context.tell(error.message, "error");
    }
  }

  // The bars behind: without evidence and interventions, by the same method.
  async freshPrior(signal) {
    const key = this.method;
    if (this.priorKey === key) return;
    const nothing = { states: {}, likelihoods: {}, do: {} };
    this.prior = (await this.call("posteriors", { evidence: nothing, method: this.method }, signal)).values;
    this.priorKey = key;
  }

  keep() {
    try {
      sessionStorage.setItem(this.remember, JSON.stringify({ names: this.signature(), evidence: this.evidence }));
    } catch { /* private windows */ }
  }

  signature() { return this.model.variables.map((v) => `${v.name}:${v.states.length}`).join("|"); }

  // After a reload of the page the evidence is still there, if the variables are the same.
  recall() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(this.remember));
      if (kept?.names === this.signature()) this.evidence = kept.evidence;
    } catch { /* nothing was kept */ }
  }
}
