/**
 * The checks of `errand doctor` on what notifications need: links that a phone can open, and a mail server. Limit: the addresses
 * of a network are tried from this machine only; a firewall may still be between them and a phone.
 */
import { networkInterfaces } from "node:os";
import * as z from "zod";
import { Http } from "../../client/http.ts";
import type { Status } from "../../schema/status.ts";
import { isLoopback } from "../../util/proxy.ts";
import type { Check } from "./check.ts";

const ANSWER_MS = 1000;
const MOST = 4;
const SET_URL = "Set ERRAND_PUBLIC_URL to a URL of the broker that a phone can open.";
const NO_MAIL =
  "not set up: to send notifications by mail, set ERRAND_SMTP_URL and ERRAND_MAIL_FROM where the broker runs";

/** `url`: where this program reaches the broker. */
export async function* reachChecks(
  url: string,
  { notifications, url: publicUrl }: Status,
  interfaces = networkInterfaces,
): AsyncGenerator<Check> {
  if (notifications === undefined) return;
  yield notifications.links ? linkCheck(publicUrl) : await noLinks(url, interfaces);
  yield notifications.mail
    ? { check: "mail", status: "ok", detail: "a mail server is set; 'errand notify test' tries it" }
    : { check: "mail", status: "skip", detail: NO_MAIL };
}

function linkCheck(publicUrl: string): Check {
  const detail = `notifications link to ${publicUrl}`;
  if (!isLoopback(new URL(publicUrl).hostname)) return { check: "links", status: "ok", detail };
  return {
    check: "links",
    status: "warn",
    detail: `${detail}, which only the broker's machine can open`,
    remedy: SET_URL,
  };
}

async function noLinks(url: string, interfaces: typeof networkInterfaces): Promise<Check> {
  const found = isLoopback(new URL(url).hostname) ? await answering(new URL(url), interfaces) : [];
  const here = found.length === 0 ? "" : `; in this network the broker answers at ${found.join(", ")}`;
  const detail = `not set up: notifications have no links until ERRAND_PUBLIC_URL is one that a phone can open${here}`;
  return { check: "links", status: "skip", detail };
}

/** The URLs with this machine's addresses in its networks at which a broker answers. */
async function answering(url: URL, interfaces: typeof networkInterfaces): Promise<string[]> {
  const addresses = Object.values(interfaces()).flatMap((of = []) =>
    of.flatMap(({ internal, family, address }) => (!internal && family === "IPv4" ? [address] : [])),
  );
  const urls = addresses.slice(0, MOST).map((address) => `${url.protocol}//${address}:${url.port || 80}`);
  const tried = await Promise.all(
    urls.map(async (one) => {
      const http = new Http({ url: one, retryForMs: 0 });
      const call = { path: "/healthz", timeoutMs: ANSWER_MS, anonymous: true };
      return http.request(z.object({ status: z.string() }), call).then(
        () => [one],
        () => [],
      );
    }),
  );
  return tried.flat();
}
