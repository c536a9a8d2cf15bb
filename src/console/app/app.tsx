import { session } from "../session/session.ts";
import { SignIn } from "../session/sign-in.tsx";
import { Shell } from "./shell.tsx";

/** The whole page: the sign-in, or the views. */
export function App() {
  if (session.value === undefined) return <p class="loading whole">Signing in …</p>;
  return session.value === null ? <SignIn /> : <Shell />;
}
