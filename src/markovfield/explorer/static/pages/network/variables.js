// The list of all variables, with search; the way to what is not drawn.
import { h, percent, replace } from "../../dom.js";

export function variableList(store, show) {
  const search = h("input", { type: "search", placeholder: "Search  ( / )", "aria-label": "Search variables",
    autocomplete: "off", spellcheck: "false", oninput: () => filter() });
  const count = h("span", { class: "count" });
  const rows = store.model.variables.map(({ name }, v) => {
    const best = h("span", { class: "best" });
    const bar = h("span", { class: "fill" });
    const row = h("li", { role: "option", id: `variable-${v}`, "data-v": v, "aria-selected": "false", title: name },
      h("span", { class: "name" }, name), best, h("span", { class: "track" }, bar));
    return { row, best, bar, key: name.toLowerCase() };
  });
  const list = h("ul", { role: "listbox", "aria-label": "Variables", tabindex: "0" }, rows.map(({ row }) => row));
  let visible = rows;

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    visible = rows.filter(({ row, key }) => {
      const hit = words.every((word) => key.includes(word));
      row.hidden = !hit;
      return hit;
    });
    count.textContent = words.length ? `${visible.length} of ${rows.length}` : `${rows.length} variables`;
  }

  function update() {
    rows.forEach((parts, v) => {
      const now = store.now(v);
      if (!now) return;
      const best = now.indexOf(Math.max(...now));
      const text = `${store.states(v)[best]} ${percent(now[best])}`;
      if (parts.text !== text) {
        parts.best.textContent = parts.text = text;
        parts.best.title = text;
        parts.bar.style.width = `${100 * now[best]}%`;
      }
      const seen = v in store.evidence.do ? "done" : store.isSeen(v) ? "seen" : "";
      if (parts.seen !== seen) parts.row.dataset.seen = parts.seen = seen;
    });
  }

  function choose(v) {
    if (store.picker) store.picker(v);
    else {
      store.select(v);
      show(v);
    }
  }

  list.addEventListener("click", (event) => {
    const row = event.target.closest("li");
    if (row) choose(Number(row.dataset.v));
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -Infinity, End: Infinity }[event.key];
    if (step) {
      const at = visible.findIndex(({ row }) => Number(row.dataset.v) === store.selected);
      const next = visible[Math.max(0, Math.min(visible.length - 1, at + step))];
      // Looking through the list picks nothing; Enter does.
      if (next) store.select(Number(next.row.dataset.v));
      event.preventDefault();
    } else if ((event.key === "Enter" || event.key === " ") && store.selected !== null) {
      choose(store.selected);
      event.preventDefault();
    } else if (event.key === "Delete" || event.key === "Backspace") {
      if (store.selected !== null && store.pieces) store.forget(store.selected);
    } else if (/^[1-9]$/.test(event.key) && store.selected !== null) {
      const state = Number(event.key) - 1;
      if (state < store.states(store.selected).length) store.toggle(store.selected, state);
    }
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && visible.length) {
      choose(Number(visible[0].row.dataset.v));
      list.focus();
    }
    else if (event.key === "Escape") { search.value = ""; filter(); }
    else if (event.key === "ArrowDown") {
      if (visible.length) store.select(Number(visible[0].row.dataset.v));
      list.focus();
    }
    else return;
    event.preventDefault();
  });
  store.on("answer", update);
  let selected = null;
  store.on("select", (v) => {
    if (selected !== null) rows[selected].row.setAttribute("aria-selected", "false");
    selected = v;
    if (v === null) {
      list.removeAttribute("aria-activedescendant");
      return;
    }
    rows[v].row.setAttribute("aria-selected", "true");
    list.setAttribute("aria-activedescendant", `variable-${v}`);
    rows[v].row.scrollIntoView({ block: "nearest" });
  });
  filter();
  return { element: h("div", { class: "list" }, h("div", { class: "searching" }, search, count), list), search };
}
