// What a page's policy has refused.
window.refused = 0;
document.addEventListener("securitypolicyviolation", () => refused++);
// What has moved without having changed: a part that was replaced by a newer one may take another room.
window.moved = [];
window.renewed = false;
addEventListener("DOMContentLoaded", () => {
  const renew = new MutationObserver(() => (window.renewed = true));
  for (const part of document.querySelectorAll("[data-live]")) renew.observe(part, { childList: true });
});
new PerformanceObserver((list) => {
  if (window.renewed) return;
  for (const { sources } of list.getEntries()) moved.push(sources.map(({ node }) => node?.outerHTML?.slice(0, 80)));
}).observe({ type: "layout-shift", buffered: true });
// What it listens to.
window.listened = [];
window.EventSource = class extends EventSource {
  constructor(url) {
    super(url);
    listened.push(url);
  }
};
