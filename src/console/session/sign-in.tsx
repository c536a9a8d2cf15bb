import { useSignal } from "@preact/signals";
import { Logo } from "../app/logo.tsx";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";
import { endedBecause, signIn } from "./session.ts";

export function SignIn() {
  const token = useSignal("");
  const isUnknown = useSignal(false);
  const { isRunning, error, run } = useAction();
  const submit = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      isUnknown.value = false;
      isUnknown.value = !(await signIn(token.value.trim()));
    });
  };
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <h1>
          <Logo /> Errand
        </h1>
        <p>Hand work to agents, see who works on what, and answer what they ask you.</p>
        {endedBecause.value !== null && (
          <p class="problem" role="alert">
            {endedBecause.value}
          </p>
        )}
        {/* Password managers file the token under it. */}
        <input type="text" name="username" autocomplete="username" value="token" hidden readOnly />
        <label>
          <span>Token</span>
          <input
            type="password"
            name="token"
            autocomplete="current-password"
            placeholder="errand_…"
            required
            autofocus
            value={token.value}
            onInput={(event) => {
              token.value = event.currentTarget.value;
            }}
          />
        </label>
        {isUnknown.value && (
          <p class="problem" role="alert">
            <strong>The broker does not know this token.</strong> It is not complete, has expired, or was
            revoked. Copy all of it, or use one of the ways below.
          </p>
        )}
        <Problem error={error} />
        <button type="submit" class="primary" disabled={isRunning}>
          Sign in
        </button>
        <div class="hint">
          <p>
            <b>At the broker's machine:</b> open the link that <code>npm start</code> prints, or another by{" "}
            <code>errand sessions link</code>. Each signs in once.
          </p>
          <p>
            <b>Elsewhere:</b> ask the operator for a link, or for a token.{" "}
            <code>errand invite NAME --approver</code> makes a token for somebody who answers questions,{" "}
            <code>errand invite NAME</code> for somebody who delegates.
          </p>
        </div>
      </form>
    </main>
  );
}
