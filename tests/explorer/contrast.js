// Texts that stand out too little from what lies behind them: the colours that are computed, and the ratio of their
// luminances, which is to be at least 4.5 (WCAG 2).
(() => {
  const parse = (text) => { const x = text.match(/[\d.]+/g).map(Number); return x.length < 4 ? [...x, 1] : x; };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const ground = (e) => {
    const behind = e.parentElement ? (getComputedStyle(e).backgroundColor.endsWith(", 0)") || parse(getComputedStyle(e).backgroundColor)[3] < 1
      ? ground(e.parentElement) : [0, 0, 0, 1]) : [255, 255, 255, 1];
    return over(parse(getComputedStyle(e).backgroundColor), behind);
  };
  const light = (c) => [0, 1, 2].map((i) => c[i] / 255).map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const found = [];
  const tell = (what, ink, paper) => {
    const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(`${what}: ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
  };
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || e.closest(":disabled, .canvas, script, option, noscript") || !e.checkVisibility()) continue;
    tell(`${e.tagName}.${e.className} ${e.textContent.trim().slice(0, 30)}`, over(parse(getComputedStyle(e).color), ground(e)), ground(e));
  }
  for (const text of document.querySelectorAll(".node text")) {
    const row = text.closest(".row")?.querySelector(".hit");
    const box = parse(getComputedStyle(text.closest(".node").querySelector(".box")).fill);
    const behind = row && getComputedStyle(row).fill !== "rgba(0, 0, 0, 0)" ? over(parse(getComputedStyle(row).fill), box) : box;
    if (text.closest(".beyond")) continue;
    tell(`node ${text.textContent}`, parse(getComputedStyle(text).fill), behind);
  }
  return [...new Set(found)];
})()
