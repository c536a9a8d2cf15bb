/**
 * Browsers of other sites are kept out: a foreign Origin is refused. Limit: a browser on this machine is
 * told apart by its origin only; everything that matters needs a token as well.
 */
import { ErrandError } from "../schema/errors.ts";

/** `allowed` are origins (`https://ops.example`) or bare hosts, beside the broker's own. */
export function originGuard(allowed: readonly string[]) {
  return (origin: string | undefined, host: string | undefined): void => {
    if (origin === undefined || allowed.includes(origin)) return;
    const originHost = URL.canParse(origin) ? new URL(origin).host : undefined;
    if (originHost !== undefined && (originHost === host || allowed.includes(originHost))) return;
    throw new ErrandError("forbidden", "This origin is not allowed.", {
      details: { setting: "ERRAND_ALLOWED_ORIGINS" },
    });
  };
}
