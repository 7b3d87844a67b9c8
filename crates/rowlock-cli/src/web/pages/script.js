// Live updates, times that go on, and keys. Pages work without it.
"use strict";
(() => {
  const find = (what, within = document) => within.querySelector(what);
  const all = (what, within = document) => [...within.querySelectorAll(what)];

  // Times go on between two updates, by the server's clock.
  const ahead = Date.parse(document.body.dataset.now) - Date.now() || 0;
  const coarse = (s) =>
    s < 60 ? s + " s" : s < 3600 ? Math.floor(s / 60) + " m" : s < 86400 ? Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " m" : Math.floor(s / 86400) + " d";
  const tell = () => {
    for (const time of all("time[datetime]")) {
      const s = Math.trunc((Date.now() + ahead - Date.parse(time.dateTime)) / 1000);
      const words = s === 0 ? "now" : s > 0 ? coarse(s) + " ago" : "in " + coarse(-s);
      if (time.textContent !== words) time.textContent = words;
    }
  };
  setInterval(tell, 1000);

  // A part of the page that somebody works in stays as it is: also one in which something was chosen.
  const inUse = (part) => {
    const at = document.activeElement;
    const typing = part.contains(at) && at.matches("input, textarea, select");
    return typing || find("input:checked:not([checked]), .sure[open]", part) || !document.getSelection().isCollapsed;
  };
  const nameOf = (at) => at.id || at.getAttribute("href") || at.getAttribute("action") || "";
  const replace = (old, fresh) => {
    if (inUse(old) || old.innerHTML === fresh.innerHTML) return;
    const open = all("details", old).map((each) => each.open);
    const at = old.contains(document.activeElement) ? document.activeElement : null;
    const row = find("tr.at", old);
    const rowAt = row ? all("tr[data-row]", old).indexOf(row) : -1;
    old.replaceChildren(...[...fresh.childNodes].map((node) => document.importNode(node, true)));
    const folds = all("details", old);
    if (folds.length === open.length) folds.forEach((each, n) => (each.open = open[n]));
    if (at) all("a, button, summary", old).find((each) => nameOf(each) === nameOf(at) && each.textContent === at.textContent)?.focus();
    all("tr[data-row]", old)[rowAt]?.classList.add("at");
    tell();
  };
  const pulse = find("#pulse");
  const say = (words, lost) => {
    pulse.hidden = false;
    pulse.textContent = words;
    pulse.classList.toggle("lost", lost);
  };

  let stream = null;
  // What is new since the page was read is told at once.
  let told = document.body.dataset.told;
  let asking = false;
  let again = false;
  let last = Date.now();
  let later = 0;
  const refresh = async () => {
    if (asking) {
      again = true;
      return;
    }
    // A page that reads much says how many seconds it wants to rest.
    const rest = Math.max(0, ...all("[data-live]").map((part) => Number(part.dataset.live))) * 1000;
    const left = last + rest - Date.now();
    if (left > 0) {
      clearTimeout(later);
      later = setTimeout(refresh, left);
      return;
    }
    last = Date.now();
    asking = true;
    try {
      // What was done is told once.
      const url = new URL(location.href);
      url.searchParams.delete("note");
      const answer = await fetch(url, { headers: { Accept: "text/html" } });
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of all("[data-live]")) {
          const fresh = page.getElementById(part.id);
          if (fresh) replace(part, fresh);
        }
        told = page.body.dataset.told;
      }
    } catch {
      // The stream notices too, and tries again.
    }
    asking = false;
    if (again) {
      again = false;
      refresh();
    }
  };

  // Heartbeats, ticks and sinks move without a word.
  setInterval(() => {
    if (stream && Date.now() - last > 10000) refresh();
  }, 1000);

  // A hidden page listens to nothing: browsers allow few connections.
  let wait = 1000;
  let retry = 0;
  const listen = () => {
    clearTimeout(retry);
    if (stream || document.hidden || !find("[data-live]")) return;
    stream = new EventSource("/events?told=" + told);
    stream.onopen = () => {
      if (wait > 1000) refresh();
      wait = 1000;
      say("live", false);
    };
    stream.onmessage = (event) => {
      if (event.data !== told) refresh();
    };
    stream.onerror = () => {
      stream?.close();
      stream = null;
      say("not connected, trying again", true);
      retry = setTimeout(listen, wait);
      wait = Math.min(wait * 2, 30000);
    };
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      stream?.close();
      stream = null;
    } else {
      listen();
      refresh();
    }
  });
  listen();

  // Keys
  const help = find("#help");
  const keys = find("#keys");
  keys.hidden = false;
  keys.addEventListener("click", () => help.showModal());
  const step = (by) => {
    const rows = all("tr[data-row]");
    if (!rows.length) return;
    const now = rows.findIndex((row) => row.classList.contains("at"));
    const next = Math.max(0, Math.min(rows.length - 1, now < 0 ? 0 : now + by));
    rows[now]?.classList.remove("at");
    rows[next].classList.add("at");
    (find("a.id", rows[next]) ?? rows[next]).focus();
  };
  let after = "";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.target;
    const typing = at.matches?.("textarea, select, input:not([type=checkbox]):not([type=radio])");
    if (typing) {
      if (event.key === "Escape") at.blur();
      return;
    }
    const before = after;
    after = "";
    if (help.open) {
      if (event.key === "?") help.close();
      return;
    }
    if (before === "g") {
      if (event.key === "n") location.href = "/jobs/new";
      const place = all("a[data-key]").find((each) => each.dataset.key === event.key);
      if (place) place.click();
      return;
    }
    switch (event.key) {
      case "g":
        after = "g";
        return;
      case "?":
        help.showModal();
        break;
      case "/": {
        const field = find("#find");
        if (field) field.focus();
        else location.href = "/jobs";
        break;
      }
      case "j":
        step(1);
        break;
      case "k":
        step(-1);
        break;
      case "x": {
        const box = find("tr.at input[type=checkbox]");
        if (!box) return;
        box.checked = !box.checked;
        break;
      }
      default:
        return;
    }
    event.preventDefault();
  });

  // What was done is told once, and not again by a bookmark.
  if (new URLSearchParams(location.search).has("note")) {
    const url = new URL(location.href);
    url.searchParams.delete("note");
    history.replaceState(null, "", url);
  }
})();
