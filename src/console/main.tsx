/** Starts the console in the page. */
import { render } from "preact";
import { config } from "zod";
import { lazy, loadLater } from "./app/lazy.tsx";
import { takeCode } from "./app/route.ts";
import { Shell } from "./app/shell.tsx";
import { followTheme } from "./app/theme.ts";
import { reasonOf, resumeSession, session, stayOut } from "./session/session.ts";

const SignIn = lazy((later) => later.SignIn);
const LinkQuestion = lazy((later) => later.LinkQuestion, null);

/** The whole page: the sign-in, or the views. */
function App() {
  if (session.value === undefined) return <p class="loading whole">Signing in …</p>;
  if (session.value === null) return <SignIn />;
  return (
    <>
      {/* Nothing of one session is left in the next. */}
      <Shell key={session.value.id} />
      <LinkQuestion />
    </>
  );
}

// zod would try to compile its checks to code, which the page's security policy forbids.
config({ jitless: true });
followTheme();

/** Signs in with the stored session, then by the code of a link, if there is one. */
async function start(code: string | null): Promise<void> {
  if (!session.peek()) await resumeSession();
  try {
    if (code !== null) await (await loadLater()).openLink(code);
  } catch (error) {
    if (!session.peek()) stayOut(reasonOf(error));
  }
  // Nobody is signed in, and nothing said why.
  session.value ??= null;
}
void start(takeCode());
// A link that is opened in a tab with this page changes only the hash.
addEventListener("hashchange", () => {
  const code = takeCode();
  if (code !== null) void start(code);
});

const place = document.getElementById("console");
if (place) render(<App />, place);
