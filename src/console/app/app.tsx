import { session } from "../session/session.ts";
import { lazy } from "./lazy.tsx";
import { Shell } from "./shell.tsx";

const SignIn = lazy((later) => later.SignIn);

/** The whole page: the sign-in, or the views. */
export function App() {
  if (session.value === undefined) return <p class="loading whole">Signing in …</p>;
  // Nothing of one session is left in the next.
  return session.value === null ? <SignIn /> : <Shell key={session.value.id} />;
}
