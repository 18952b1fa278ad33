// A service worker: after the first visit the page works offline. With a connection every file comes from the server,
// so that a page that was built again, or another one at this address, is never shown from memory.

const KEPT = "privsweep";

addEventListener("install", (event) => {
  const first = ["./", "page.css", "start.js", "engine/engine.js", "icon.svg"];
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(first)));
});

addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
  event.respondWith(
    fetch(request).then(
      (reply) => {
        if (!reply.ok) return reply;
        const copy = reply.clone();
        event.waitUntil(caches.open(KEPT).then((cache) => cache.put(request, copy)));
        return reply;
      },
      async (error) => {
        const found = await caches.match(request);
        if (found) return found;
        throw error;
      },
    ),
  );
});
