/** The check of `errand doctor` that says which calls go through which forward proxy. Nothing that is printed is a secret. */
import { configuredProxy, proxyFor } from "../../client/proxied-fetch.ts";
import type { ForwardProxy } from "../../util/proxy.ts";
import type { Found } from "../discover.ts";
import { toFailure } from "../failure.ts";
import type { CliHost } from "../host.ts";
import type { Check } from "./check.ts";

const VARIABLES = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"] as const;

/** Nothing where no proxy is set. */
export function* proxyChecks({ childEnv, env }: CliHost, { url }: Found): Generator<Check> {
  const set = VARIABLES.filter((name) => childEnv[name]);
  if (set.length > 0) {
    yield checked("proxy", () => {
      const proxy = url === undefined ? null : proxyFor(url, childEnv);
      return proxy === null
        ? `requests to the broker go directly, although ${set.join(" and ")} is set (a local address, or one that NO_PROXY names)`
        : `requests to the broker go through ${described(proxy)}`;
    });
  }
  const { egressProxy } = env;
  if (egressProxy === undefined) return;
  yield checked("egress_proxy", () => {
    const proxy = configuredProxy(egressProxy, "ERRAND_EGRESS_PROXY");
    return `calls of a broker here to callbacks, push notifications and push agents, and of 'errand relay' to its server, go through ${described(proxy)}`;
  });
}

function checked(check: "proxy" | "egress_proxy", describe: () => string): Check {
  try {
    return { check, status: "ok", detail: describe() };
  } catch (thrown) {
    const { error } = toFailure(thrown, "errand doctor");
    if (!error) throw thrown;
    return { check, status: "fail", detail: error.message, remedy: error.recovery, category: error.category };
  }
}

const described = ({ place, variable, authorization }: ForwardProxy): string =>
  `${place} (${variable}${authorization === undefined ? "" : ", with a user and password"})`;
