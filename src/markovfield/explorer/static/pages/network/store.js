// What this tab knows: evidence, the selected variable, the answer. The server keeps no evidence: tabs are independent.
import { byName, fromNames, readMethod, readState, signature, writeState } from "./state.js";

// A request that a newer one waits for is given up after so many milliseconds.
const PATIENCE = 400;
// Changes closer together than this make one entry of the browser's history.
const PAUSE = 300;
const MOST_PAST = 200;
const NOTHING = { states: {}, likelihoods: {}, do: {} };
// What this tab asked last, by names: the page is made anew when the model's file has changed.
let last = null;

export class Store {
  constructor(context, model) {
    this.context = context;
    this.model = model;
    this.offsets = [0];
    for (const { states } of model.variables) this.offsets.push(this.offsets.at(-1) + states.length);
    this.method = readMethod(context.state(), this);
    this.selected = null;
    this.answer = null;
    this.prior = null;
    this.priorKey = null;
    this.past = [];
    this.listeners = { answer: new Set(), select: new Set(), evidence: new Set(), picker: new Set(), busy: new Set() };
    this.asking = null;
    this.running = null;
    this.wanted = false;
    this.picker = null;
    this.signature = signature(model);
    this.evidence = this.start(context.state());
    // The last question that was answered: what a failure goes back to.
    this.good = { evidence: structuredClone(NOTHING), method: "auto", past: 0 };
    context.onState((state) => {
      clearTimeout(this.saving);
      this.past.push(this.evidence);
      this.gesture = false;
      this.evidence = readState(state, this) ?? structuredClone(NOTHING);
      this.method = readMethod(state, this);
      this.refresh();
    });
  }

  // What the address says; where it speaks of the model as it was before, what it meant by names.
  start(text) {
    const told = readState(text, this);
    if (told || !text || !last || !text.endsWith(`m=${last.signature}`)) return told ?? structuredClone(NOTHING);
    const { found, lost } = fromNames(last.named, this);
    if (lost.length) {
      const one = lost.length === 1;
      this.lost = `The evidence on ${lost.join(", ")} was left out: the model has no such variable${one ? "" : "s"} or state${one ? "" : "s"} any more.`;
    }
    return found;
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

  // Probabilities of a variable's states, now and without evidence, and their standard errors where they are estimates.
  now(v) { return this.answer?.values.slice(this.offsets[v], this.offsets[v + 1]) ?? null; }
  before(v) { return this.prior?.slice(this.offsets[v], this.offsets[v + 1]) ?? null; }
  errors(v) { return this.answer?.standard_errors?.slice(this.offsets[v], this.offsets[v + 1]) ?? null; }

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

  // `going` says that a gesture goes on, a slider under the finger: undo takes back the whole of it.
  change(edit, going = false) {
    const copy = structuredClone(this.evidence);
    edit(copy);
    if (!this.gesture) this.past.push(this.evidence);
    if (this.past.length > MOST_PAST) this.past.shift();
    this.gesture = going;
    this.evidence = copy;
    return this.refresh();
  }

  // A variable that is set by intervention stays so, in the state that is clicked.
  toggle(v, state) {
    if (v in this.evidence.do) return this.intervene(v, state);
    return this.change((e) => {
      const same = e.states[v] === state;
      delete e.likelihoods[v];
      delete e.states[v];
      if (!same) e.states[v] = state;
    });
  }

  // Equal likelihoods say nothing, so they are none.
  likelihood(v, vector, going = false) {
    return this.change((e) => {
      delete e.states[v];
      delete e.likelihoods[v];
      if (vector.some((x) => x !== vector[0])) e.likelihoods[v] = vector;
    }, going);
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
    this.gesture = false;
    return this.refresh();
  }

  select(v) {
    this.selected = v;
    this.emit("select", v);
  }

  // What takes clicks on variables instead of selecting them; null gives them back.
  pick(picker) {
    this.picker = picker;
    this.emit("picker", picker);
  }

  // ---- answers ------------------------------------------------------------------------------------------------------

  // One request at a time, and the last change wins: what was clicked meanwhile is asked for in one.
  refresh() {
    this.emit("evidence");
    this.wanted = true;
    if (this.running) {
      const asking = this.asking;
      setTimeout(() => { if (this.wanted && asking === this.asking) asking.abort(); }, PATIENCE);
    } else this.running = this.work().finally(() => { this.running = null; });
    return this.running;
  }

  async work() {
    while (this.wanted) {
      this.wanted = false;
      const { evidence, method } = this;
      const past = this.past.length;
      this.asking = new AbortController();
      this.stopped = false;
      // What takes long says that it is being done.
      const slow = setTimeout(() => this.emit("busy", true), PATIENCE);
      const start = performance.now();
      try {
        const answer = await this.call("posteriors", { evidence, method }, this.asking.signal);
        await this.freshPrior(method, this.asking.signal);
        this.answer = answer;
        this.answer.milliseconds = performance.now() - start;
        this.good = { evidence, method, past };
        last = { signature: this.signature, named: byName({ model: this.model, evidence }) };
        if (!this.wanted) {
          this.context.tell([this.lost, ...answer.doubts].filter(Boolean).join(" "));
          this.lost = null;
          this.save();
        }
        this.emit("answer");
      } catch (error) {
        if (this.stopped) this.fail(new Error("The computation was stopped"), evidence, method);
        else if (!this.wanted && error.name !== "AbortError") this.fail(error, evidence, method);
      } finally {
        clearTimeout(slow);
        this.emit("busy", false);
      }
    }
  }

  // Somebody does not want to wait.
  stop() {
    this.stopped = true;
    this.asking?.abort();
  }

  fail(error, evidence, method) {
    if ((evidence === this.good.evidence && method === this.good.method) || error.gone) {
      this.context.tell(error.message, "error");
      return;
    }
    // Without an answer there is nothing to go back to, but a question without evidence.
    if (!this.answer && this.stopped) {
      this.context.tell(`${error.message}: the panel Plan has other methods.`, "error");
      return;
    }
    this.evidence = this.good.evidence;
    this.method = this.good.method;
    this.past.length = Math.min(this.past.length, this.good.past);
    this.gesture = false;
    this.emit("evidence");
    this.context.tell(`${error.message}; the last change was taken back.`, "error");
    if (this.answer) this.emit("answer");
    else this.wanted = true;
  }

  // The bars behind: without evidence and interventions, by the same method.
  async freshPrior(method, signal) {
    if (this.priorKey === method) return;
    try {
      this.prior = (await this.call("posteriors", { evidence: NOTHING, method }, signal)).values;
    } catch (error) {
      if (error.name === "AbortError" || error.gone) throw error;
      this.prior = null;
    }
    this.priorKey = method;
  }

  save() {
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.context.remember(writeState(this)), PAUSE);
  }

  // A change of the method is a question like another.
  choose(method) {
    this.method = method;
    return this.refresh();
  }

  leave() {
    clearTimeout(this.saving);
    this.asking?.abort();
  }
}
