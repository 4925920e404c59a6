// The shell: tabs of pages, the theme, reading the model again.
import { h, replace, stylesOff } from "./dom.js";
import { ask, stream } from "./server.js";

const THEMES = ["system", "light", "dark"];
const place = (id) => document.getElementById(id);
let subject = null;
let leave = null;
let current = null;
let moved = null;

function tell(sentence, kind = "note") {
  const line = place("told");
  line.className = sentence ? kind : "";
  line.textContent = sentence ?? "";
}

function remembered(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

function showTheme(theme) {
  document.documentElement.dataset.theme = theme;
  place("theme").textContent = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" }[theme];
  try { localStorage.setItem("theme", theme); } catch { /* private windows */ }
}

// The address says the page, and after a question mark what the page wants to find again: #network?s=3.1
function address() {
  const [name, ...rest] = location.hash.slice(1).split("?");
  return { name, state: rest.join("?") };
}

async function open(name) {
  const root = place("page");
  leave?.();
  leave = null;
  moved = null;
  current = name;
  for (const tab of place("tabs").children) {
    tab.setAttribute("aria-selected", tab.dataset.page === name);
    tab.tabIndex = tab.dataset.page === name ? 0 : -1;
  }
  replace(root);
  stylesOff();
  for (const kept of Object.keys(root.dataset)) delete root.dataset[kept];
  root.dataset.page = name;
  if (!location.hash) history.replaceState(null, "", `#${name}`);
  else if (address().name !== name) history.pushState(null, "", `#${name}`);
  try {
    const module = await import(`./pages/${name}.js`);
    if (current !== name) return;
    const context = {
      subject,
      tell,
      // What was wrong is right now; other news stay.
      calm: () => { if (place("told").className === "error") tell(""); },
      call: (call, asked, signal) => ask(name, call, asked, signal),
      stream: (which, onMessage, onEnd) => stream(name, which, onMessage, onEnd),
      state: () => (address().name === name ? address().state : ""),
      // An entry of the history, so that back and forward work; onState hears of both.
      remember: (state) => {
        if (current === name && state !== address().state) history.pushState(null, "", state ? `#${name}?${state}` : `#${name}`);
      },
      onState: (f) => { moved = f; },
    };
    leave = (await module.mount(root, context)) ?? null;
  } catch (error) {
    tell(error.message, "error");
  }
}

function showTabs() {
  const tabs = subject.pages.map((page) =>
    h("button", { type: "button", role: "tab", "data-page": page.name, "aria-controls": "page",
      onclick: () => open(page.name) }, page.title));
  replace(place("tabs"), tabs);
  place("tabs").hidden = tabs.length < 2;
  place("tabs").onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = tabs.findIndex((tab) => tab === document.activeElement);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    next.focus();
    next.click();
  };
}

async function start(again) {
  subject = await ask("explorer", again ? "reload" : "subject");
  document.title = `${subject.name} - Markovfield`;
  place("name").textContent = subject.name;
  place("name").title = subject.kind;
  place("reload").hidden = !subject.file;
  showTabs();
  const names = subject.pages.map((page) => page.name);
  const wanted = address().name;
  if (!names.length) replace(place("page"), h("p", { class: "empty" }, `There is no page for a ${subject.kind} yet.`));
  else await open(names.includes(wanted) ? wanted : names[0]);
}

const failed = (error) => tell(error.message, "error");

window.addEventListener("popstate", () => {
  const { name, state } = address();
  if (!subject?.pages.some((page) => page.name === name)) return;
  if (name !== current) open(name);
  else moved?.(state);
});

showTheme(THEMES.includes(remembered("theme")) ? remembered("theme") : "system");
place("theme").onclick = () =>
  showTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
// What the page says of the new model stands behind the news; what went wrong stands alone.
function startAgain(ask, sentence) {
  tell("");
  return start(ask).then(() => {
    const line = place("told");
    if (line.className !== "error") tell([sentence, line.textContent].filter(Boolean).join(" "));
  }, failed);
}
place("reload").onclick = () => startAgain(true, "The model was read again.");
start(false).then(() => {
  stream("explorer", "watch", (message) => {
    if (message.error) tell(message.error, "error");
    else if (message.version !== subject.version) {
      startAgain(false, "The model's file has changed and was read again.");
    }
  }, () => tell("The explorer was stopped.", "error"));
  document.documentElement.dataset.ready = "yes";
}, failed);
