"""What the HTML page does beside being read: its tables sort by a column, and on paper folds are open.

A header becomes a button, so the keyboard reaches it, and says in `aria-sort` how the column is sorted: up,
down, and as it was written. A number sorts by its size, its unit and SI prefix included; what is no number
comes last. Without the script the tables are plain ones. It calls nothing outside and builds no markup.
"""

from __future__ import annotations

SCRIPT = r"""
(function () {
  "use strict";
  var SIZES = { ns: 1e-9, "\u00b5s": 1e-6, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, day: 86400,
    days: 86400, KiB: 1024, MiB: 1048576, GiB: 1073741824 };
  var AMOUNT = /^[<>\u2264\u2265~]*\s*([-+\u2212]?(?:\d[\d,]*)?\.?\d+(?:e[-+]?\d+)?)\s*(.*)/i;
  var UNIT = /^(ns|\u00b5s|us|ms|s|min|h|days?|KiB|MiB|GiB)(?![\w\/])/;
  var NEXT = { none: "ascending", ascending: "descending", descending: "none" };

  function size(text) {  // of the number that a text begins with; NaN for none
    var found = AMOUNT.exec(text.trim());
    if (!found) return NaN;
    var unit = UNIT.exec(found[2]);
    return parseFloat(found[1].replace(/,/g, "").replace("\u2212", "-")) * (unit ? SIZES[unit[1]] : 1);
  }

  function compared(a, b, numbers) {
    if (!numbers) return a.text.localeCompare(b.text, undefined, { numeric: true });
    return isNaN(a.size) ? 0 : a.size - b.size;
  }

  function sort(body, rows, column, how) {
    var keys = rows.map(function (row) {
      var text = row.cells[column] ? row.cells[column].textContent : "";
      return { row: row, text: text, size: size(text) };
    });
    var filled = keys.filter(function (key) { return key.text.trim() !== ""; });
    var numbers = filled.filter(function (key) { return !isNaN(key.size); }).length * 2 > filled.length;
    if (how !== "none") keys.sort(function (a, b) {
      var last = numbers ? isNaN(a.size) - isNaN(b.size) : 0;
      return last || (how === "ascending" ? compared(a, b, numbers) : compared(b, a, numbers));
    });
    keys.forEach(function (key) { body.appendChild(key.row); });
  }

  document.querySelectorAll("table").forEach(function (table) {
    var body = table.tBodies[0], heads = Array.from(table.querySelectorAll("thead th"));
    var rows = body ? Array.from(body.rows) : [];
    if (rows.length < 2) return;
    heads.forEach(function (head, column) {
      if (!head.textContent.trim()) return;
      var button = document.createElement("button");
      button.type = "button";
      button.title = "Sort by this column";
      button.append.apply(button, Array.from(head.childNodes));
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", function () {
        var how = NEXT[head.getAttribute("aria-sort")];
        heads.forEach(function (other) {
          if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
        });
        head.setAttribute("aria-sort", how);
        sort(body, rows, column, how);
      });
    });
  });

  var opened = [];
  addEventListener("beforeprint", function () {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    opened.forEach(function (fold) { fold.open = true; });
  });
  addEventListener("afterprint", function () {
    opened.forEach(function (fold) { fold.open = false; });
  });
})();
"""
