/**
 * Browsers of other sites are kept out: a foreign Origin is refused, and so is a foreign Host where the broker
 * listens on this machine alone (a name that was rebound to it). Limit: no CORS answers; an allowed origin needs a
 * proxy that gives them.
 */
import { ErrandError } from "../schema/errors.ts";

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

const nameOf = (host: string): string | undefined =>
  URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : undefined;

/** `allowed` are origins (`https://ops.example`) or bare hosts, beside the broker's own. */
export function originGuard(listensOn: string, allowed: readonly string[]) {
  const isLocal = LOOPBACK.includes(listensOn) || listensOn === "::1";
  const allowedHosts = allowed.map((one) => (URL.canParse(one) ? new URL(one).hostname : nameOf(one)));
  return (origin: string | undefined, host: string | undefined): void => {
    const name = nameOf(host ?? "");
    if (isLocal && (name === undefined || !(LOOPBACK.includes(name) || allowedHosts.includes(name)))) {
      throw refused("host");
    }
    if (origin === undefined || allowed.includes(origin)) return;
    const originName = URL.canParse(origin) ? new URL(origin).hostname : undefined;
    if (originName !== undefined && (originName === name || allowedHosts.includes(originName))) return;
    throw refused("origin");
  };
}

const refused = (what: string): ErrandError =>
  new ErrandError("forbidden", `This ${what} is not allowed.`, {
    details: { setting: "ERRAND_ALLOWED_ORIGINS" },
  });
