/** Starts the console in the page. */
import { render } from "preact";
import { config } from "zod";
import { App } from "./app/app.tsx";
import { takeCode } from "./app/route.ts";
import { followTheme } from "./app/theme.ts";
import { resumeSession } from "./session/session.ts";

// zod would try to compile its checks to code, which the page's security policy forbids.
config({ jitless: true });
followTheme();
void resumeSession(takeCode());
// A link that is opened in a tab with this page changes only the hash.
addEventListener("hashchange", () => {
  const code = takeCode();
  if (code !== null) void resumeSession(code);
});

const place = document.getElementById("console");
if (place) render(<App />, place);
