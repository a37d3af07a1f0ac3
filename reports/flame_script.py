"""What a flame graph does when it is pointed at, clicked, typed into: the script inside the SVG.

It reads everything from the boxes and calls nothing outside. It holds no < and no &, so that its text is the
same as XML and inside an HTML page.
"""

from __future__ import annotations

SCRIPT = """
(function (svg) {
  "use strict";
  var get = function (selector) { return svg.querySelector(selector); };
  var frame = get(".boxes"), input = get("input"), button = get("button");
  var sum = get(".sum"), about = get(".about"), hint = about.textContent;
  var sets = frame.dataset.sets.split(";");

  // Boxes stand in the order of the tree: a box, then all below it, then its next sibling.
  var boxes = Array.from(svg.querySelectorAll(".b")).map(function (box, at) {
    var text = box.querySelector("text"), tail = text.querySelector("tspan");
    return {
      at: at, box: box, text: text, tail: tail, up: Number(box.dataset.p),
      row: Number(box.getAttribute("aria-level")),
      counts: box.dataset.n.split(" ").map(Number),
      left: parseFloat(box.getAttribute("x")), width: parseFloat(box.getAttribute("width")),
      name: text.firstChild.data, place: tail ? tail.textContent : "",
      words: box.querySelector("title").textContent, look: box.getAttribute("class"),
      shown: parseFloat(box.getAttribute("width")), off: false, said: text.textContent
    };
  });
  var zoomed = boxes[0], pointed = boxes[0], letter = 6.7;

  function inside(box) {  // the box and all below it
    var end = boxes.findIndex(function (other) { return other.at > box.at ? box.row >= other.row : false; });
    return boxes.slice(box.at, end > 0 ? end : boxes.length);
  }

  function put(box, left, width, name) {
    box.off = false;
    box.shown = width;
    box.box.setAttribute("x", left + "%");
    box.box.setAttribute("width", width + "%");
    box.box.setAttribute("class", box.look + name);
  }

  function zoom(box) {
    zoomed = box;
    boxes.forEach(function (other) { other.off = true; });
    inside(box).forEach(function (other) {
      put(other, (other.left - box.left) * 100 / box.width, other.width * 100 / box.width, "");
    });
    for (var up = boxes[box.up]; up; up = boxes[up.up]) put(up, 0, 100, " above");
    boxes.forEach(function (other) { if (other.off) other.box.setAttribute("class", other.look + " off"); });
    button.disabled = box === boxes[0];
    fit();
    search();
  }

  // Each box shows as much of its name as it has room for: with its line, alone, cut in the middle, nothing.
  function fit() {
    var pixels = frame.getBoundingClientRect().width / 100;
    boxes.forEach(function (box) {
      if (box.off) return;
      var room = Math.floor((pixels * box.shown - 7) / letter), name = box.name;
      if (name.length > room) {
        var end = Math.floor((room - 1) / 3);
        name = room > 2 ? name.slice(0, room - 1 - end) + "\\u2026" + (end ? name.slice(-end) : "") : "";
      }
      var place = (name + box.place).length > room ? "" : box.place;
      if (name + place === box.said) return;  // each change costs the browser a layout
      box.said = name + place;
      box.text.firstChild.data = name;
      if (box.tail) box.tail.textContent = place;
    });
  }

  // A stack counts once however many of its boxes are found: what is below a found box is in it already.
  function search() {
    var wanted = input.value.trim().toLowerCase(), covered = Infinity;
    var total = sets.map(function () { return 0; });
    svg.classList.toggle("finds", wanted !== "");
    boxes.forEach(function (box) { box.box.classList.remove("m"); });
    sum.textContent = "";
    if (wanted === "") return;
    inside(zoomed).forEach(function (box) {
      if (covered >= box.row) covered = Infinity;
      if (!box.words.split("\\n")[0].toLowerCase().includes(wanted)) return;
      box.box.classList.add("m");
      if (covered === Infinity) {
        covered = box.row;
        box.counts.forEach(function (count, at) { total[at] += count; });
      }
    });
    sum.textContent = "found in " + sets.map(function (name, at) {
      var of = zoomed.counts[at], share = of ? (100 * total[at] / of).toFixed(1) + " %" : "none";
      return total[at].toLocaleString("en") + " of " + of.toLocaleString("en") + name + ": " + share;
    }).join("; ");
  }

  function say(box) { about.textContent = box ? box.words : hint; }

  function walk(key) {  // the arrow keys; sideways to what has the same caller
    if (key === "ArrowUp") return boxes[pointed.up];
    if (key === "ArrowDown") {
      return inside(pointed).find(function (other) { return other.up === pointed.at; });
    }
    var beside = boxes.filter(function (other) { return other.up === pointed.up ? !other.off : false; });
    return beside[beside.indexOf(pointed) + (key === "ArrowRight" ? 1 : -1)];
  }

  function point(box) {
    pointed.box.setAttribute("tabindex", "-1");
    pointed = box;
    box.box.setAttribute("tabindex", "0");
    say(box);
  }

  function boxOf(event) {
    var found = event.target.closest(".b");
    return found ? boxes.find(function (box) { return box.box === found; }) : null;
  }

  frame.addEventListener("pointerover", function (event) { say(boxOf(event)); });
  frame.addEventListener("pointerleave", function () { say(null); });
  frame.addEventListener("focusin", function (event) { point(boxOf(event)); });
  frame.addEventListener("click", function (event) {
    var box = boxOf(event);
    if (box) zoom(box);
  });
  frame.addEventListener("keydown", function (event) {
    var key = event.key;
    if (key === "Enter" || key === " ") zoom(pointed);
    else if (key === "Escape") zoom(boxes[0]);
    else if (key.startsWith("Arrow")) {
      var next = walk(key);
      if (next) next.box.focus();
    } else return;
    event.preventDefault();
  });
  input.addEventListener("input", search);
  button.addEventListener("click", function () { zoom(boxes[0]); });

  get(".still").remove();
  svg.querySelectorAll(".live").forEach(function (part) { part.removeAttribute("display"); });
  boxes[0].box.setAttribute("tabindex", "0");
  button.disabled = true;
  letter = boxes[0].text.getComputedTextLength() / boxes[0].text.textContent.length || letter;
  new ResizeObserver(fit).observe(svg);  // a fold that is opened changes the size, too
  fit();
})(document.currentScript.parentNode);
"""
