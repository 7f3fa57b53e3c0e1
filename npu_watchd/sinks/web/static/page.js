// Keeps the page up to date without loading it anew: asks for it, and changes only what is other than before.
// Without this script the page is the same, and loads itself anew now and then.
"use strict";
(() => {
  const EVERY_MS = 5000, LOST_EVERY_MS = 10000, PATIENCE_MS = 8000;
  const HISTORY_EVERY_MS = 60000, HISTORY_OLD_MS = 300000, HOURS = 24;
  const COUNTERS = {
    npu_device_memory_errors_total: "memory",
    npu_device_pcie_errors_total: "PCIe",
    npu_device_hccs_errors_total: "HCCS",
    npu_device_roce_errors_total: "RoCE",
  };
  const BEFORE_ERRORS = ".ecc ~ .ecc";
  const MOVING = ["header", "main", "footer"];
  const us = document.querySelector("script").getAttribute("src");
  const histories = new Map();
  let askedHistoryMs = -Infinity, answeredMs = Date.now(), askedMs = Date.now();
  let busy = false, timer = 0, title = document.title;

  async function ask(path) {
    const stop = new AbortController();
    const limit = setTimeout(() => stop.abort(), PATIENCE_MS);
    try {
      const answer = await fetch(path, {cache: "no-store", credentials: "same-origin", signal: stop.signal});
      return {status: answer.status, text: await answer.text()};
    } finally {
      clearTimeout(limit);
    }
  }

  async function update() {
    clearTimeout(timer);
    if (busy || document.hidden) return;
    busy = true;
    askedMs = Date.now();
    let trouble = "";
    try {
      trouble = await refresh();
    } catch (error) {
      trouble = error.name === "AbortError" ? `no answer within ${PATIENCE_MS / 1000} s` : "no connection";
    } finally {
      busy = false;
    }
    say(trouble);
    timer = setTimeout(update, trouble ? LOST_EVERY_MS : EVERY_MS);
  }

  // What is wrong with the answer; nothing where it is shown now.
  async function refresh() {
    const {status, text} = await ask("/");
    if (status !== 200) return `HTTP ${status}`;
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const theirs = fresh.querySelector("script[src]");
    if (!theirs || MOVING.some((part) => !fresh.querySelector(`body > ${part}`))) return "the answer is not this page";
    if (theirs.getAttribute("src") !== us) location.reload();  // another version of the daemon
    adorn(fresh);
    for (const part of MOVING) morph(document.querySelector(`body > ${part}`), fresh.querySelector(`body > ${part}`));
    title = fresh.title;
    answeredMs = Date.now();
    readHistory();
    return "";
  }

  function say(trouble) {
    const lost = document.getElementById("lost");
    const words = trouble && `The daemon has not answered since ${clock(answeredMs)} (${trouble}). ` +
      "What stands below is the past. On the node: systemctl status npu-watchd, journalctl -u npu-watchd.";
    if (lost.textContent !== words) lost.textContent = words;
    if (lost.hidden === Boolean(trouble)) lost.hidden = !trouble;
    document.body.classList.toggle("past", Boolean(trouble));
    const shown = trouble ? `no answer · ${title}` : title;
    if (document.title !== shown) document.title = shown;
  }

  // Makes `old` like `fresh`; what is alike already is not touched, so focus, scrolling and selections stay.
  function morph(old, fresh) {
    if (old.isEqualNode(fresh)) return;
    if (old.nodeType !== Node.ELEMENT_NODE) {
      old.nodeValue = fresh.nodeValue;
      return;
    }
    for (const {name, value} of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    for (const {name} of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    }
    let next = old.firstChild;
    for (const child of fresh.childNodes) {
      const twin = twinOf(child, next);
      if (!twin) {
        old.insertBefore(document.importNode(child, true), next);
        continue;
      }
      while (next !== twin) next = dropped(next);
      next = twin.nextSibling;
      morph(twin, child);
    }
    while (next) next = dropped(next);
  }

  function dropped(node) {
    const next = node.nextSibling;
    node.remove();
    return next;
  }

  // Things that have a name are found by it, others by their place.
  function twinOf(child, next) {
    if (!child.id) return next && next.nodeName === child.nodeName && !next.id ? next : null;
    for (let node = next; node; node = node.nextSibling) if (node.id === child.id) return node;
    return null;
  }

  async function readHistory() {
    if (Date.now() - askedHistoryMs < HISTORY_EVERY_MS) return;
    askedHistoryMs = Date.now();
    for (const metric of Object.keys(COUNTERS)) {
      try {
        const {status, text} = await ask(`/api/v1/history?metric=${metric}&since=${HOURS}h`);
        if (status === 200) histories.set(metric, {...JSON.parse(text), readMs: Date.now()});
      } catch {
        // It stays unknown, and the page itself says when nobody answers.
      }
    }
    adorn(document);
  }

  // The devices' errors by the hour: a column of its own, once anything is known of them.
  function adorn(page) {
    const pace = page.getElementById("pace");
    if (pace) pace.textContent = `It keeps itself up to date, every ${EVERY_MS / 1000} s while you look.`;
    const table = page.querySelector("#devices table");
    if (!table || !histories.size) return;
    const name = `Errors, ${HOURS} h`, titles = table.tHead.rows[0];
    if (!titles.querySelector(".errors")) {
      const head = page.createElement("th");
      titles.querySelector(BEFORE_ERRORS).after(head);
      head.scope = "col";
      head.className = "errors";
      head.textContent = name;
    }
    for (const row of table.tBodies[0].rows) {
      let cell = row.querySelector("td.errors");
      if (!cell) {
        cell = page.createElement("td");
        row.querySelector(BEFORE_ERRORS).after(cell);
      }
      cell.className = "errors";
      cell.dataset.title = name;
      cell.replaceChildren(...errors(page, row.cells[0].textContent));
    }
  }

  function errors(page, deviceId) {
    const found = growth(deviceId);
    if (typeof found === "string") {
      const dash = page.createElement("span");
      dash.className = "none";
      dash.title = found;
      dash.textContent = "–";
      return [dash];
    }
    const total = [...found.kinds.values()].reduce((sum, count) => sum + count, 0);
    const kinds = [...found.kinds].map(([kind, count]) => `${kind} ${count}`).join(", ");
    const told = total ? `${total} errors: ${kinds}; the last was seen ${clock(found.lastS * 1000)}` : "no errors";
    const words = `Of ${span(found.from)}: ${told}`;
    const count = page.createElement(total ? "strong" : "span");
    count.textContent = ` ${total}${found.partly ? "+" : ""}`;
    return [drawing(page, found, words + (found.partly ? "; not all is known" : "")), count];
  }

  // By the hour, the newest last; words where nothing can be said.
  function growth(deviceId) {
    const hours = new Array(HOURS).fill(0), kinds = new Map();
    let known = false, partly = histories.size < Object.keys(COUNTERS).length;
    let sinceS = Infinity, lastS = 0, atS = 0;
    for (const [metric, history] of histories) {
      if (Date.now() - history.readMs > HISTORY_OLD_MS) return "the history has not been readable for minutes";
      partly ||= history.cut || history.unreadable > 0 || history.written === false;
      atS = Math.max(atS, history.at);
      for (const series of history.series) {
        if (series.labels.device_id !== deviceId) continue;
        known = true;
        sinceS = Math.min(sinceS, series.since);
        for (const point of series.points) {
          const hour = HOURS - 1 - Math.floor((history.at - point.last) / 3600);
          if (hour < 0) continue;
          hours[Math.min(hour, HOURS - 1)] += point.grown;
          const {kind: sort, severity, link} = series.labels;
          const kind = `${COUNTERS[metric]} ${sort || severity || link || ""}`.trim();
          kinds.set(kind, (kinds.get(kind) || 0) + point.grown);
          lastS = Math.max(lastS, point.last);
        }
      }
    }
    if (!known) return "none of its counters has a history yet";
    return {hours, kinds, partly, lastS, from: Math.max(0, Math.min(1, (atS - sinceS) / 3600 / HOURS))};
  }

  // A bar an hour, a step of height for each power of ten; the line is the time of which anything is known.
  function drawing(page, {hours, from}, words) {
    const box = {viewBox: `0 0 ${HOURS * 4} 20`, width: 67, height: 14, class: "spark"};
    const svg = shape(page, "svg", {...box, role: "img", "aria-label": words});
    svg.appendChild(shape(page, "title", {})).textContent = words;
    const begin = Math.floor(HOURS * 4 * (1 - from));
    const line = {x: begin, y: 19, width: Math.max(1, HOURS * 4 - begin), height: 1, class: "line"};
    svg.appendChild(shape(page, "rect", line));
    hours.forEach((count, hour) => {
      if (count <= 0) return;
      const height = Math.min(18, Math.round(5 + 4 * Math.log10(Math.max(1, count))));
      svg.appendChild(shape(page, "rect", {x: hour * 4, y: 19 - height, width: 3, height}));
    });
    return svg;
  }

  function shape(page, name, attributes) {
    const made = page.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  function span(share) {
    const minutes = Math.floor(share * HOURS * 60);
    if (minutes >= HOURS * 60) return `the last ${HOURS} h`;
    return `${minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`}, which is all that is known`;
  }

  function clock(ms) {
    return `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && Date.now() - askedMs > EVERY_MS) update();
  });
  adorn(document);
  readHistory();
  timer = setTimeout(update, EVERY_MS);
})();
