import { session } from "../session/session.ts";
import { lazy } from "./lazy.tsx";
import { Shell } from "./shell.tsx";

const SignIn = lazy((later) => later.SignIn);
const LinkQuestion = lazy((later) => later.LinkQuestion, null);

/** The whole page: the sign-in, or the views. */
export function App() {
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
