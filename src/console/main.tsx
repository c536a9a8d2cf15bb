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

const place = document.getElementById("console");
if (place) render(<App />, place);
