/** The addresses that the page's policy (Trusted Types) lets become a script: those of its own workers. */
import type {} from "trusted-types";

const admitted = new Set<string>();

/** Call it before the address is used. */
export function admitScript(address: string): string {
  if (admitted.size === 0)
    window.trustedTypes?.createPolicy("default", {
      createScriptURL: (url) => {
        if (!admitted.has(url)) throw new TypeError("not the address of a worker");
        return url;
      },
    });
  admitted.add(address);
  return address;
}
