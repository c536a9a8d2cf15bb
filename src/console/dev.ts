/** Only in `npm run dev`: reloads the page when it was bundled again. */

const EVERY_MS = 1_000;

let shown: string | undefined;

async function look(): Promise<void> {
  const response = await fetch(location.pathname, { cache: "no-store" });
  if (!response.ok) return;
  const page = await response.text();
  shown ??= page;
  if (page !== shown) location.reload();
}

// While the gateway restarts, there is nothing to see.
setInterval(() => void look().catch(() => undefined), EVERY_MS);
