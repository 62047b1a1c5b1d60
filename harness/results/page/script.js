
"use strict";
// The page can be read without this. It filters, copies, and opens what a link leads into.
const filter = document.getElementById("filter");
const [words, outcome, told] = ["input", "select", "output"].map(name => filter.querySelector(name));
const FEW = 400;
let rows;

function load() {
  rows ??= Array.from(document.querySelectorAll("[data-o]"), element => {
    const name = element.matches("tr") ? element.firstElementChild : element.querySelector("summary");
    const suite = element.closest(".suite");
    return {
      element, suite,
      chunk: element.closest(".chunk"),
      text: `${suite ? suite.id.slice(6) + ":" : ""}${name.textContent}`.toLowerCase(),
      outcomes: element.dataset.o.split(" "),
    };
  });
  return rows;
}

function apply() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  const filtered = wanted.length > 0 || outcome.value !== "";
  const parts = new Map();
  let cases = 0;
  for (const row of load()) {
    const shown = wanted.every(word => row.text.includes(word)) && (!outcome.value || row.outcomes.includes(outcome.value));
    if (row.element.hidden === shown) row.element.hidden = !shown;
    for (const part of [row.chunk, row.suite]) if (part) parts.set(part, (parts.get(part) ?? 0) + shown);
    cases += shown && row.suite ? 1 : 0;
  }
  for (const [part, count] of parts) {
    part.hidden = filtered && count === 0;
    if (part.matches("details")) part.open = filtered && count > 0 && cases <= FEW;
  }
  told.textContent = filtered ? `${cases} cases` : "";
}

function reveal() {
  // No decoding: our own anchors need none, and what is malformed would throw.
  const element = location.hash && document.getElementById(location.hash.slice(1));
  if (!element) return;
  for (let outer = element; outer; outer = outer.parentElement) {
    outer.hidden = false;
    if (outer.matches("details")) outer.open = true;
  }
  element.scrollIntoView();
}

for (const command of document.querySelectorAll(".command")) {
  const button = document.createElement("button");
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    const code = command.querySelector("code");
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
    } catch {
      // Not every browser lets a page that came from a file.
      button.textContent = "press Ctrl-C";
    }
  });
  command.append(button);
}

filter.hidden = false;
filter.addEventListener("input", apply);
filter.addEventListener("submit", event => event.preventDefault());
addEventListener("hashchange", reveal);
// A link to where we are already changes no hash.
addEventListener("click", event => {
  if (event.target.closest("a")?.hash === location.hash) reveal();
});
reveal();
