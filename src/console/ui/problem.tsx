import { ErrandApiError } from "../../client/errors.ts";

/** An error where it happened: what failed, and what to do next. */
export function Problem({ error }: { readonly error: unknown }) {
  if (error === null || error === undefined) return null;
  const message = error instanceof Error ? error.message : String(error);
  const recovery = error instanceof ErrandApiError ? error.recovery : "";
  return (
    <p class="problem" role="alert">
      <strong>{/[.!?…]$/.test(message) ? message : `${message}.`}</strong> {recovery}
    </p>
  );
}
