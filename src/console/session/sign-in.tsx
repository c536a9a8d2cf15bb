import { useSignal } from "@preact/signals";
import { Logo } from "../app/logo.tsx";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";
import { endedBecause, signIn } from "./session.ts";

export function SignIn() {
  const token = useSignal("");
  const { isRunning, error, run } = useAction();
  const submit = (event: Event) => {
    event.preventDefault();
    void run(() => signIn(token.value.trim()));
  };
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <h1>
          <Logo /> Errand
        </h1>
        <p>See who works on what, and answer what waits for you.</p>
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
        <Problem error={error} />
        <button type="submit" class="primary" disabled={isRunning}>
          Sign in
        </button>
        <p class="hint">
          <code>npx errand sessions link</code> prints a link that signs in. The operator's token is in the
          broker's data directory: <code>cat .errand/operator-token</code>. The operator makes tokens for
          others: <code>npx errand token create caller:alice</code>.
        </p>
      </form>
    </main>
  );
}
