"use strict";
// Tables are searched by their box and sorted by a click, or by Enter; the address keeps both: #globals=text,globals:2
function filter(id, text) {
  const wanted = text.toLowerCase();
  for (const row of document.querySelectorAll("#" + id + " tbody tr"))
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
}
function sort(id, column, down) {
  const body = document.querySelector("#" + id + " tbody");
  const key = (row) => row.children[column].dataset.key ?? row.children[column].textContent;
  const rows = Array.from(body.children);
  const numeric = rows.every((row) => key(row) === "" || !Number.isNaN(Number(key(row))));
  rows.sort((a, b) => (numeric ? Number(key(a)) - Number(key(b)) : key(a).localeCompare(key(b))) * (down ? -1 : 1));
  body.append(...rows);
  document.querySelectorAll("#" + id + " th").forEach((head, index) => {
    if (index === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
}
const state = new Map();
function remember() {
  history.replaceState(null, "", "#" + Array.from(state, ([name, value]) => name + encodeURIComponent(value)).join(","));
}
for (const box of document.querySelectorAll("input[data-table]"))
  box.addEventListener("input", () => {
    filter(box.dataset.table, box.value);
    state.set(box.dataset.table + "=", box.value);
    remember();
  });
for (const table of document.querySelectorAll("table"))
  table.querySelectorAll("th").forEach((head, column) => {
    const choose = () => {
      const down = state.get(table.id + ":") === String(column);
      sort(table.id, column, down);
      state.set(table.id + ":", down ? column + "d" : String(column));
      remember();
    };
    head.addEventListener("click", choose);
    head.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    });
  });
// The stacks: a box that is clicked is as wide as the picture, and what it has called with it; callers stay to be clicked.
const WIDTH = 1000, LETTER = 6.5, SMALLEST = 40;
const boxes = Array.from(document.querySelectorAll("#stacks g"));
function zoom(from, width) {
  for (const box of boxes) {
    const left = (Number(box.dataset.x) - from) * WIDTH / width, right = left + Number(box.dataset.width) * WIDTH / width;
    const x = Math.max(left, 0), visible = Math.min(right, WIDTH) - x;
    box.style.display = visible > 0.01 ? "" : "none";
    const rect = box.querySelector("rect"), text = box.querySelector("text");
    rect.setAttribute("x", x);
    rect.setAttribute("width", Math.max(visible, 0));
    text.setAttribute("x", x + 3);
    text.textContent = visible >= SMALLEST ? box.dataset.label.slice(0, Math.floor(visible / LETTER)) : "";
  }
}
for (const box of boxes) {
  const choose = () => zoom(Number(box.dataset.x), Number(box.dataset.width));
  box.addEventListener("click", choose);
  box.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") zoom(0, WIDTH); });
for (const part of location.hash.slice(1).split(",")) {
  const found = /^(\w+)([=:])(.*)$/.exec(part);
  const table = found && document.getElementById(found[1]);
  if (!table || table.tagName !== "TABLE") continue;
  let value = found[3];
  try {
    value = decodeURIComponent(value);
  } catch {
    // an address that the user typed: taken as it is
  }
  state.set(found[1] + found[2], value);
  if (found[2] === ":") {
    const column = parseInt(value, 10) || 0;
    if (column < table.querySelectorAll("th").length) sort(found[1], column, value.endsWith("d"));
  }
  else {
    filter(found[1], value);
    document.querySelector('input[data-table="' + found[1] + '"]').value = value;
  }
}
